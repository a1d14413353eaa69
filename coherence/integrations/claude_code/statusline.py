"""Status line of Claude Code: one line on how its session stands. Runs alone, without the package.

It is started as ``python -I -S statusline.py STATE_FOLDER [--json]`` each time the client draws the line, and only
reads. Whatever goes wrong, it prints one line and ends well.
"""

from __future__ import annotations

import _socket  # without what "socket" loads
import os
import stat
import sys
import time

TYPE_CHECKING = False  # as type checkers know it; "typing" would take as long as all the rest
if TYPE_CHECKING:
    from typing import Any

SOCKET, CONTROL = "daemon.sock", "coherence-control"
"""Name of the daemon's socket and first line of a command, as the hook and the daemon have them."""

ASK_S = 0.2
"""Seconds that the daemon may take."""

COLUMNS = 80
"""Most columns of the line."""

MAX_ANSWER = 1_000_000
"""Bytes of an answer."""

MAX_NUMBER = 1e12
"""Figures beyond it, and what is no number, are not known."""

COLOURS = {"green": "32", "yellow": "33", "orange": "38;5;208", "red": "31"}
"""Band and its colour, as terminals name it."""

NO_DAEMON, BUSY, UNSEEN = "no daemon", "the daemon is busy", "nothing seen yet"


def main(arguments: list[str]) -> int:
    """Print the line; return the exit status, which is 0 in any case."""
    try:
        payload = read_payload()
        state, agent = ask(arguments[0], payload)
        found = figures(payload, agent)
        if "--json" in arguments:
            import json

            line = json.dumps({"schema": "coherence.statusline/1", "daemon": state != NO_DAEMON, **found})
        else:
            line = draw(found, state)
    except Exception:
        line = "coherence: no status"  # the client would show nothing at all
    sys.stdout.buffer.write(line.encode("utf-8", "replace") + b"\n")
    sys.stdout.buffer.flush()
    return 0


def read_payload() -> dict[str, Any]:
    """Return what the client has written, empty if that is no JSON object or comes from a keyboard."""
    if sys.stdin.isatty():
        return {}
    try:
        found = read_json(sys.stdin.buffer.read())
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


_SCANNER = {
    "strict": True,
    "object_hook": None,
    "object_pairs_hook": None,
    "parse_float": float,
    "parse_int": int,
    "parse_constant": float,
}
"""Settings of the scanner, as ``json.JSONDecoder`` has them."""


def read_json(raw: bytes) -> Any:
    """Return the value of a JSON text; what follows the value is passed over.

    Raises
    ------
    ValueError
        If there is none.
    """
    text = raw.decode("utf-8", "replace").lstrip()
    try:
        from _json import make_scanner  # "json" itself takes longer than Python to start

        scan: Any = make_scanner(type("", (), _SCANNER))  # type: ignore[arg-type]  # it reads attributes
    except (ImportError, AttributeError, TypeError):
        from json import JSONDecoder

        scan = JSONDecoder().raw_decode
    try:
        return scan(text, 0)[0]
    except StopIteration as error:
        raise ValueError("no JSON") from error


def quoted(text: str) -> str:
    """Return a text as JSON."""
    try:
        from _json import encode_basestring_ascii
    except ImportError:
        from json.encoder import encode_basestring_ascii
    return encode_basestring_ascii(text)


def feed(payload: dict[str, Any]) -> str:
    """Return what the daemon is told of cost and context, as the rest of a JSON object."""
    found = figures(payload, {})
    cost, context = found["cost_usd"], found["context_percent"]
    told = [f'"cost": {{"total_cost_usd": {cost!r}}}'] if cost is not None else []
    told += [f'"context_window": {{"used_percentage": {context!r}}}'] if context is not None else []
    return f', "feed": {{{", ".join(told)}}}' if told else ""


def ask(folder: str, payload: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return why nothing is known of a session, or an empty text, and how its main agent stands.

    The daemon is told on the way what the client counts.

    A folder that others may enter is no daemon's: somebody else could answer from it.
    """
    until, session = time.monotonic() + ASK_S, payload.get("session_id")
    line = _socket.socket(_socket.AF_UNIX)
    try:
        kept = os.lstat(folder)
        if not stat.S_ISDIR(kept.st_mode) or kept.st_uid != os.getuid() or kept.st_mode & 0o077:
            return NO_DAEMON, {}
        os.chdir(folder)  # the name of a socket must be short
        line.settimeout(ASK_S)
        line.connect(SOCKET)
    except OSError:
        line.close()
        return NO_DAEMON, {}
    answer = b""
    try:
        line.sendall(f'{CONTROL}\n{{"do": "status", "session": {quoted(str(session))}{feed(payload)}}}'.encode())
        line.shutdown(_socket.SHUT_WR)
        while len(answer) < MAX_ANSWER:
            line.settimeout(max(until - time.monotonic(), 0.001))
            part = line.recv(65_536)
            if not part:
                break
            answer += part
        sessions = read_json(answer)["sessions"]
        return ("", sessions[0]["agents"][0]) if sessions else (UNSEEN, {})
    except (OSError, ValueError, LookupError, TypeError):
        return BUSY, {}
    finally:
        line.close()


def figures(payload: dict[str, Any], agent: dict[str, Any]) -> dict[str, Any]:
    """Return what the line tells; ``None`` = not known.

    Parameters
    ----------
    payload : dict
        What the client has written; cost and context are in it.
    agent : dict
        One agent of the daemon's answer, empty if there is none.
    """
    known = agent.get("index") is not None
    cost, context = payload.get("cost"), payload.get("context_window")
    return {
        "band": agent.get("band") if known else None,
        "index": agent["index"] if known else None,
        "pressure": _number(agent.get("pressure")),
        "decision": agent.get("decision"),
        "cause": str(agent.get("cause") or ""),
        "context_percent": _number(context.get("used_percentage")) if isinstance(context, dict) else None,
        "cost_usd": _number(cost.get("total_cost_usd")) if isinstance(cost, dict) else None,
    }


def draw(found: dict[str, Any], state: str = "") -> str:
    """Return the line: no wider than the client's, with a dot in the band's colour, or its name where none is wanted.

    Parameters
    ----------
    found : dict
        From :func:`figures`.
    state : str
        Why nothing is known of the agent.
    """
    room = _room()
    parts = []
    if state:
        parts.append(f"coherence: {state}")
    elif found["index"] is None:
        parts.append("● no reading yet")
    else:
        band = str(found["band"])
        parts.append(f"{'●' if _is_coloured() else band} {found['index']:.2f}")
    if found["pressure"] is not None:
        parts.append(f"pressure {found['pressure']:.2f}")
    if found["context_percent"] is not None:
        parts.append(f"context {found['context_percent']:.0f}%")
    if found["cost_usd"] is not None:
        parts.append(f"${found['cost_usd']:.2f}")
    line = _cut(" · ".join(parts), room)
    cause = "".join(each if each.isprintable() else " " for each in found["cause"])
    left = room - _width(line) - 3
    if cause and left >= 10:
        line += f" · {_cut(cause, left)}"
    if line.startswith("●") and _is_coloured():
        line = f"\x1b[{COLOURS.get(str(found['band']), '90')}m●\x1b[0m{line[1:]}"
    return line


def _room() -> int:
    columns = os.environ.get("COLUMNS", "")
    return min(int(columns), COLUMNS) if columns.isdecimal() and int(columns) > 0 else COLUMNS


def _is_coloured() -> bool:
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _number(value: object) -> float | None:
    known = isinstance(value, int | float) and not isinstance(value, bool) and -MAX_NUMBER < value < MAX_NUMBER
    return value if known else None  # type: ignore[return-value]  # it is a number


def _cut(text: str, most: int) -> str:
    """Return the beginning of a text in no more than so many columns."""
    if _width(text) <= most:
        return text
    while _width(text) > most - 1:
        text = text[: -max((_width(text) - most) // 2, 1)]
    return f"{text.rstrip()}…"


def _width(text: str) -> int:
    """Return how many columns a terminal takes for a text."""
    if text.isascii():
        return len(text)
    import unicodedata  # where it is needed

    wide = sum(unicodedata.east_asian_width(each) in "WF" for each in text)
    return len(text) + wide - sum(unicodedata.combining(each) > 0 for each in text)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
