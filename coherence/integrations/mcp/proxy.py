"""Proxy of an MCP server on standard input and output, which senses and gates its tools."""

from __future__ import annotations

import os
import signal
import subprocess
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress

from coherence.integrations.mcp.tool_gate import ToolGate
from coherence.monitor.monitor import Monitor

MAX_SENSED = 16_000_000
"""Bytes of a server's line beyond which it goes on without being looked at."""

CHUNK = 1 << 16

DRAIN_S = 0.5
"""Seconds without output after which that of a server that has ended is over: another process may hold it open."""

SIGNALS = ("SIGTERM", "SIGINT", "SIGHUP")


class Lines:
    r"""Cut a stream of bytes into lines.

    Parameters
    ----------
    limit : int, optional
        Bytes beyond which a line is handed on in parts that are no whole line.

    Examples
    --------
    >>> lines = Lines()
    >>> [*lines.feed(b'{"a": '), *lines.feed(b'1}\n{"b"')], lines.rest()
    ([(b'{"a": 1}\n', True)], b'{"b"')
    """

    def __init__(self, limit: int | None = None) -> None:
        self._kept = bytearray()
        self._limit = limit
        self._in_parts = False

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bool]]:
        """Yield each line that is complete with ``data``, or part of one, and whether it is a whole line."""
        while data:
            line, end, data = data.partition(b"\n")
            self._kept += line + end
            if end:
                whole, self._in_parts = not self._in_parts, False
                yield self.rest(), whole
            elif self._in_parts or (self._limit is not None and len(self._kept) > self._limit):
                self._in_parts = True
                yield self.rest(), False

    def rest(self) -> bytes:
        """Return what is left, and forget it."""
        found = bytes(self._kept)
        self._kept.clear()
        return found


class Proxy:
    """Stand between a client and the server that it would have started.

    Everything passes both ways byte for byte, but a call of a tool that the monitor blocks. The server's standard error
    is the proxy's own.

    Parameters
    ----------
    command : sequence of str
        Starts the server.
    monitor : Monitor
        Of the agent that the client works for; the caller closes it.
    stdin, stdout : int
        File descriptors of the client.

    Raises
    ------
    OSError
        If the server cannot be started.
    """

    def __init__(self, command: Sequence[str], monitor: Monitor, *, stdin: int = 0, stdout: int = 1) -> None:
        self._gate = ToolGate(monitor)
        self._stdin, self._stdout = stdin, stdout
        self._client = threading.Lock()
        self._in_line = False
        self._reads_since: float | None = None
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)  # noqa: S603

    def run(self) -> int:
        """Pass messages until the server has ended; return its exit status, 128 and the signal if one ended it."""
        for name in SIGNALS:
            if hasattr(signal, name) and threading.current_thread() is threading.main_thread():
                signal.signal(getattr(signal, name), lambda number, _: self._signal(number))
        # daemons: nobody waits for a client that says nothing any more
        threading.Thread(target=self._from_client, name="coherence-mcp-client", daemon=True).start()
        reader = threading.Thread(target=self._from_server, name="coherence-mcp-server", daemon=True)
        reader.start()
        status = self.process.wait()
        while reader.is_alive() and not self._is_silent():
            reader.join(0.02)
        self._gate.end(f"the server ended with exit status {status}")
        return status if status >= 0 else 128 - status

    def _signal(self, number: int) -> None:
        with suppress(OSError):
            self.process.send_signal(number)

    def _is_silent(self) -> bool:
        since = self._reads_since
        return since is not None and time.monotonic() - since > DRAIN_S

    def _from_client(self) -> None:
        server = self.process.stdin
        assert server is not None
        lines = Lines()
        with suppress(OSError), server:  # a server that has ended
            while data := os.read(self._stdin, CHUNK):
                for line, _ in lines.feed(data):
                    self._judge(line, server.fileno())
            if rest := lines.rest():
                self._judge(rest, server.fileno())

    def _judge(self, line: bytes, server: int) -> None:
        passed = self._gate.from_client(line)
        if passed.back:
            self._tell(passed.back)
        _write(server, passed.on)

    def _from_server(self) -> None:
        server = self.process.stdout
        assert server is not None
        lines = Lines(MAX_SENSED)
        with suppress(OSError), server:  # a client that has gone; the server learns of it as it would without a proxy
            while data := self._read(server.fileno()):
                for part, whole in lines.feed(data):
                    if whole:
                        self._gate.from_server(part)
                        self._tell(part)
                    else:
                        self._tell_part(part)
            self._tell_part(lines.rest())
        with suppress(OSError):  # a closed number would become that of another file
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._stdout)

    def _read(self, server: int) -> bytes:
        self._reads_since = time.monotonic()
        data = os.read(server, CHUNK)
        self._reads_since = None
        return data

    def _tell(self, line: bytes) -> None:
        with self._client:
            _write(self._stdout, line)

    def _tell_part(self, part: bytes) -> None:
        """Write a part of a line; no other line may come before its end."""
        if not self._in_line:
            self._client.acquire()
            self._in_line = True
        _write(self._stdout, part)
        if part.endswith(b"\n"):
            self._in_line = False
            self._client.release()


def _write(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]
