"""Judgement of the JSON-RPC messages between an MCP client and a server: calls of tools are recorded, some refused."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable
from typing import Any, NamedTuple

from coherence.core.decisions import Decision
from coherence.core.readings import excerpt
from coherence.integrations.host_session import REFUSED, explained
from coherence.monitor.monitor import Monitor

MAX_REASON = 1_900
"""Characters of the reason of a refusal."""

MAX_OPEN = 10_000
"""Calls without a result that are remembered; the oldest are forgotten first."""

MAX_DIGITS = 4_000
"""Digits of an integer; a longer one is read as a float, for Python would refuse the message that holds it."""

TOO_DEEP = b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"coherence: nested too deeply"}}\n'
"""Answer to a message that no call can be found in, because it is nested too deeply."""


class Passed(NamedTuple):
    """Bytes that a message of the client becomes."""

    on: bytes
    """For the server."""
    back: bytes = b""
    """For the client, in the server's place."""


class _Open(NamedTuple):
    """A call that the server has, without its result."""

    call: str
    tool: str
    arguments: Any
    began: float


class ToolGate:
    """Record each call of a tool and its result, and refuse those that the monitor blocks.

    Messages go on byte for byte: only a refused call is taken out. A failure in here lets a message through.

    Parameters
    ----------
    monitor : Monitor
        Of the agent that the client works for.

    Examples
    --------
    >>> with Monitor(goal="List the files.", embedder=False) as m:
    ...     gate = ToolGate(m)
    ...     line = b'{"id": 1, "method": "tools/call", "params": {"name": "Bash", "arguments": ["rm -rf /"]}}'
    ...     passed = gate.from_client(line)
    >>> passed.on, b'"isError":true' in passed.back
    (b'', True)
    """

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._open: dict[str, _Open] = {}
        self._asking: list[_Open] = []
        self._lock = threading.Lock()

    def from_client(self, line: bytes) -> Passed:
        """Judge one line of the client."""
        try:
            message = _parsed(line)
            if isinstance(message, dict):
                refused = self._refusal(message)
                return Passed(line) if refused is None else Passed(b"", refused)
            if isinstance(message, list):
                return self._batch(line, message)
        except RecursionError:
            return Passed(b"", TOO_DEEP)
        except Exception as error:  # the agent goes on
            self._monitor.fault("mcp", error)
        return Passed(line)

    def from_server(self, line: bytes) -> None:
        """Record the results in one line of the server, which goes on as it is."""
        try:
            if self._open:
                message = _parsed(line)
                for each in message if isinstance(message, list) else [message]:
                    if isinstance(each, dict) and "method" not in each and "id" in each:
                        self._answered(each)
        except Exception as error:
            self._monitor.fault("mcp", error)

    def end(self, why: str) -> None:
        """Record that the calls without a result will never have one."""
        with self._lock:
            left = [*self._open.values(), *self._asking]
            self._open.clear()
            self._asking.clear()
        for each in left:
            self._failed(each, why, "ended")

    def _batch(self, line: bytes, messages: list[Any]) -> Passed:
        """Judge several messages at once, which earlier versions of the protocol allow."""
        refusals = [self._refusal(each) if isinstance(each, dict) else None for each in messages]
        if not any(refused is not None for refused in refusals):
            return Passed(line)
        rest = [each for each, refused in zip(messages, refusals, strict=True) if refused is None]
        on = json.dumps(rest).encode() + b"\n" if rest else b""
        return Passed(on, b"".join(refused for refused in refusals if refused is not None))

    def _refusal(self, message: dict[str, Any]) -> bytes | None:
        """Return the answer to a message that is refused; ``None``: it goes on."""
        params = message.get("params")
        method = message.get("method")
        if not isinstance(params, dict):
            return None
        if method == "notifications/cancelled" and (gone := self._taken(params.get("requestId"))) is not None:
            self._failed(gone, str(params.get("reason") or "the client cancelled the call"), "cancelled")
        tool = params.get("name")
        if method != "tools/call" or not isinstance(tool, str) or not tool:
            return None
        arguments = params.get("arguments")
        decision = self._monitor.check(tool, arguments)
        if not decision:
            return self._refused(message, decision)
        self._begin(message.get("id"), tool, arguments, asked="inputResponses" in params)
        return None

    def _refused(self, message: dict[str, Any], decision: Decision) -> bytes:
        if "id" not in message:  # a call that wants no answer
            return b""
        more = explained(decision, self._monitor)
        reason = decision.message.replace("; m.unblock() lets it through", "")
        text = excerpt(f"{REFUSED}: {reason}", MAX_REASON) + more
        result = {"content": [{"type": "text", "text": text}], "isError": True, "resultType": "complete"}
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result}
        return json.dumps(answer, separators=(",", ":")).encode() + b"\n"

    def _begin(self, id: object, tool: str, arguments: Any, *, asked: bool) -> None:
        with self._lock:
            # a call that has asked for something is sent again with the answer
            found = next((each for each in self._asking if asked and each[1:3] == (tool, arguments)), None)
            if found is not None:
                self._asking.remove(found)
        made = found or _Open(self._monitor.tool_call(tool, arguments), tool, arguments, time.monotonic())
        if id is None:
            return
        with self._lock:
            self._open[_key(id)] = made
            while len(self._open) > MAX_OPEN:
                del self._open[next(iter(self._open))]

    def _taken(self, id: object) -> _Open | None:
        with self._lock:
            return self._open.pop(_key(id), None)

    def _answered(self, message: dict[str, Any]) -> None:
        made = self._taken(message["id"])
        if made is None:
            return
        result, error = message.get("result"), message.get("error")
        if isinstance(result, dict) and result.get("resultType") == "input_required":
            with self._lock:
                self._asking = [*self._asking, made][-MAX_OPEN:]
        elif isinstance(result, dict):
            content = result.get("content") or result.get("structuredContent")
            failed = result.get("isError") is True
            self._monitor.tool_result(content, error=failed, call=made.call, duration_s=time.monotonic() - made.began)
        else:
            told = error.get("message") if isinstance(error, dict) else error
            kind = str(error.get("code")) if isinstance(error, dict) and "code" in error else None
            self._failed(made, str(told), kind)

    def _failed(self, made: _Open, why: str, kind: str | None) -> None:
        seconds = time.monotonic() - made.began
        self._monitor.tool_result(why, error=True, call=made.call, duration_s=seconds, error_type=kind)


def _key(id: object) -> str:
    """Return the id of a request so that 1 and "1" differ."""
    return json.dumps(id)


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= MAX_DIGITS else float(digits)


_DECODER: Callable[[str], Any] = json.JSONDecoder(parse_int=_integer, strict=False).decode


def _parsed(line: bytes) -> Any:
    """Return what a line says, read as leniently as any server may read it; ``None``: it is no JSON."""
    if not line.strip():
        return None
    try:
        return _DECODER(line.decode("utf-8", "replace").removeprefix("\ufeff").strip())
    except ValueError:
        return None
