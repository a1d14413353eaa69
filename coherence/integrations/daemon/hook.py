"""Hook of a client: hands a payload to the daemon and prints its answer. Runs alone, without the package.

It is started as ``python -I -S hook.py STATE_FOLDER [--observe] [--host HOST]`` at each event, so that it loads what it
needs only.
Whatever goes wrong, the agent goes on: the payload is then kept in the spool, which the daemon reads when it starts.
"""

from __future__ import annotations

import _socket  # without enum and selectors, which "socket" loads: they take longer than all the rest
import os
import stat
import sys

SOCKET, SPOOL, BLOCKED, LOG, WAKING = "daemon.sock", "spool", "blocked", "daemon.log", "waking"
"""Names of what lies in the state folder."""

HEADER = "coherence-hook"
"""First word of a request; behind it the host, the build of the package and the mode, and a new line."""

CONNECT_S, ANSWER_S = 0.5, 4.0
"""Seconds that a hook waits for the daemon at most; the client lets it run for 5."""

WAKE_AGAIN_S = 10.0
"""Seconds after which a daemon that was started and did not come is started again."""

ENABLED = ("", "0", "false", "no", "off")
"""Values of ``COHERENCE_DISABLED`` that switch nothing off, as in the package."""

HOST = "claude-code"
"""Client that a hook belongs to where none is named."""

TAKEN = b"\n"
"""First byte of every answer of the daemon: without it the payload may be lost."""

MAX_ANSWER = 1_000_000
"""Bytes of an answer."""


def main(arguments: list[str]) -> int:
    """Handle one event; return the exit status, which is 0 in any case: the answer says what is refused."""
    if os.environ.get("COHERENCE_DISABLED", "").strip().lower() not in ENABLED or not arguments:
        return 0
    payload = sys.stdin.buffer.read()
    observe = "--observe" in arguments
    host = arguments[arguments.index("--host") + 1] if "--host" in arguments[:-1] else HOST
    try:
        enter(arguments[0])
        answer = ask(payload, observe=observe, host=host)
        if answer is None:
            keep(payload, observe=observe, host=host)
            wake()
            answer = b"" if observe else stored_answer(payload)
    except (OSError, ValueError, NotImplementedError) as error:  # the last: no system call for a new session
        sys.stderr.write(f"coherence: {error}\n")
        return 0
    sys.stdout.buffer.write(answer)
    sys.stdout.buffer.flush()
    return 0


def enter(folder: str) -> None:
    """Make the state folder the current one, since the name of a socket must be short.

    Raises
    ------
    PermissionError
        If it is not a folder for this user alone: somebody else could answer from it.
    """
    if not os.path.lexists(folder):
        os.makedirs(folder, mode=0o700)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        raise PermissionError(f"{folder} must be a folder that only you may enter: chmod 700 it, or name another one")
    os.chdir(folder)


def build() -> str:
    """Return what tells one installed version of the package from another."""
    return str(os.stat(__file__).st_mtime_ns)


def request(payload: bytes, *, observe: bool, host: str = HOST) -> bytes:
    """Return what is sent to the daemon, and kept in the spool."""
    return f"{HEADER} {host} {build()} {'observe' if observe else 'steer'}\n".encode() + payload


def ask(payload: bytes, *, observe: bool, host: str = HOST) -> bytes | None:
    """Return the daemon's answer; ``None`` if it was not reached, or ended before it had the payload.

    If it is too slow, the answer is empty and the payload is kept in the spool too: the daemon knows it again.
    """
    line = _socket.socket(_socket.AF_UNIX)
    try:
        line.settimeout(CONNECT_S)
        line.connect(SOCKET)
    except OSError:
        line.close()
        return None
    answer = b""
    try:
        line.settimeout(ANSWER_S)
        line.sendall(request(payload, observe=observe, host=host))
        line.shutdown(_socket.SHUT_WR)
        while len(answer) < MAX_ANSWER and (part := line.recv(65_536)):
            answer += part
    except TimeoutError:
        keep(payload, observe=observe, host=host)
        return b""
    except OSError:
        return None
    finally:
        line.close()
    return answer[len(TAKEN) :] if answer else None


def keep(payload: bytes, *, observe: bool, host: str = HOST) -> None:
    """Put a payload into the spool, whole or not at all."""
    import time  # where it is needed

    os.makedirs(SPOOL, mode=0o700, exist_ok=True)
    name = f"{SPOOL}/{time.time_ns():020}-{os.getpid()}"
    with open(os.open(f"{name}.part", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(request(payload, observe=observe, host=host))
    os.rename(f"{name}.part", f"{name}.payload")


def wake() -> None:
    """Start the daemon, unless another hook has just done so."""
    import time

    try:
        if time.time() - os.stat(WAKING).st_mtime < WAKE_AGAIN_S:
            return
        os.unlink(WAKING)
    except FileNotFoundError:
        pass
    try:
        os.close(os.open(WAKING, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return
    spawn()


def spawn(*options: str) -> int:
    """Start a daemon in the background, for the current folder and with its log there; return its process id."""
    return os.posix_spawn(
        sys.executable,
        [sys.executable, "-m", "coherence", "daemon", "run", "--state", os.getcwd(), *options],
        os.environ,
        file_actions=[
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ],
        setsid=True,
    )


def stored_answer(payload: bytes) -> bytes:
    """Return the answer to a call, or to all calls of an agent, that the daemon has refused before, else nothing."""
    if not os.path.isdir(BLOCKED):
        return b""
    import json

    try:
        asked = json.loads(payload)
        for key in (call_key(asked), agent_key(asked)):
            if os.path.exists(f"{BLOCKED}/{key}"):
                with open(f"{BLOCKED}/{key}", "rb") as file:
                    return file.read(MAX_ANSWER)
    except (OSError, ValueError, RecursionError, TypeError, AttributeError):
        pass
    return b""


def call_key(payload: dict[str, object]) -> str:
    """Return the name under which the refusal of a call is stored: the same call of the same session has it, too."""
    return _key(payload, "hook_event_name", "session_id", "tool_name", "tool_input")


def agent_key(payload: dict[str, object]) -> str:
    """Return the name under which the refusal of all calls of an agent is stored."""
    return _key(payload, "hook_event_name", "session_id", "agent_id")


def _key(payload: dict[str, object], *names: str) -> str:
    import hashlib
    import json

    asked = [payload.get(name) for name in names]
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
