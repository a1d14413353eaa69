"""Port and token of the daemon's HTTP door, as a file in its state folder keeps them."""

from __future__ import annotations

import os
import random
import re
import secrets
import socket
import stat
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec

from coherence.core.errors import CoherenceError

FILE = "http.json"
"""Name of the file; without it, the daemon opens no port."""

HOST = "127.0.0.1"
"""Address that the port belongs to, and no other."""

PORTS = range(20_000, 32_000)
"""Ports to choose from: below those that systems give to outgoing connections."""

TRIES = 50
"""Ports that are tried until one is free."""

_URL = re.compile(r"http://127\.0\.0\.1:\d+/coherence/[a-z-]+/(?:steer|observe)")
_LISTENS = "0A"
_OURS = ("0100007F", "00000000")
"""Addresses, as the kernel's table has them, that answer for 127.0.0.1."""

Mode: TypeAlias = Literal["steer", "observe"]


class HttpPlace(msgspec.Struct, frozen=True):
    """Place at which the daemon answers hooks over HTTP, and what they must show.

    Parameters
    ----------
    port : int
        On the loopback address.
    token : str
        A hook without it is not answered.
    """

    port: int
    token: str

    def hook(self, host: str, mode: Mode, timeout_s: int) -> dict[str, Any]:
        """Return the hook of a client, as its settings have it.

        Examples
        --------
        >>> HttpPlace(20_000, "t").hook("claude-code", "steer", 5)["url"]
        'http://127.0.0.1:20000/coherence/claude-code/steer'
        """
        headers = {"Authorization": f"Bearer {self.token}"}
        url = f"http://{HOST}:{self.port}{path_of(host, mode)}"
        return {"type": "http", "url": url, "headers": headers, "timeout": timeout_s}


def path_of(host: str, mode: Mode) -> str:
    """Return the path to which a client's hooks post."""
    return f"/coherence/{host}/{mode}"


def is_http_hook(hook: dict[str, Any]) -> bool:
    """Tell whether a hook is one that the daemon of this package answers over HTTP.

    Examples
    --------
    >>> is_http_hook(HttpPlace(20_000, "t").hook("claude-code", "observe", 5)), is_http_hook({"url": "http://x.org"})
    (True, False)
    """
    url = hook.get("url")
    return isinstance(url, str) and _URL.fullmatch(url) is not None


def read_place(folder: Path) -> HttpPlace | None:
    """Return the place that a state folder names, ``None`` if it names none.

    Raises
    ------
    CoherenceError
        If others can read the file, or it is damaged.
    """
    path = folder / FILE
    try:
        found = os.lstat(path)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
            raise CoherenceError(f"{path} must be a file that only you can read: delete it, then coherence init --http")
        return msgspec.json.decode(path.read_bytes(), type=HttpPlace)
    except FileNotFoundError:
        return None
    except msgspec.DecodeError as error:
        raise CoherenceError(f"{path} is damaged ({error}): delete it, then coherence init --http") from error


def choose_place(folder: Path) -> HttpPlace:
    """Return the place of a state folder; if it has none, a free port and a new token, which are not kept yet.

    Raises
    ------
    CoherenceError
        As :func:`read_place`, or if no port is free.
    """
    return read_place(folder) or HttpPlace(_free_port(), secrets.token_urlsafe(32))


def keep_place(folder: Path, place: HttpPlace) -> None:
    """Write a place into a state folder; a daemon that runs opens the port at once."""
    part = folder / f"{FILE}.part"
    part.unlink(missing_ok=True)
    with open(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(msgspec.json.encode(place))
    part.replace(folder / FILE)


def _free_port() -> int:
    for port in random.sample(PORTS, TRIES):
        with socket.socket() as line:
            try:
                line.bind((HOST, port))
            except OSError:
                continue
            return port
    raise CoherenceError(f"no port from {PORTS.start} to {PORTS.stop} is free; use the hooks without --http")


def owner_of(port: int, table: str = "/proc/net/tcp") -> int | None:
    """Return the user whose process listens on a port of this machine.

    Parameters
    ----------
    port : int
        On the loopback address, or on all.
    table : str
        The kernel's table of connections.

    Returns
    -------
    int or None
        ``None``: nobody listens, or the system does not tell.
    """
    try:
        lines = Path(table).read_text().splitlines()[1:]
    except OSError:
        return None
    for words in map(str.split, lines):
        address, _, number = words[1].partition(":")
        if address in _OURS and int(number, 16) == port and words[3] == _LISTENS:
            return int(words[7])
    return None
