"""Check of ``coherence doctor``: who answers the hooks that the client posts to a port."""

from __future__ import annotations

import http.client
import os
from contextlib import chdir
from pathlib import Path
from typing import Literal

from coherence.integrations.daemon.folder import control
from coherence.integrations.daemon.http_place import HOST, owner_of, read_place

ANSWER_S = 2.0
"""Seconds that whoever has the port may take."""

_AGAIN = "coherence init --yes"


def check_port(state: Path) -> tuple[Literal["OK", "WARN", "FAIL"], str, str]:
    """Return level, finding and mending command: whether the daemon itself answers on its port.

    The daemon is asked for a proof on its socket, which only this user can reach, and the port must know it. The token
    is shown to nobody.

    Parameters
    ----------
    state : Path
        State folder.
    """
    place = read_place(state)
    if place is None:
        return "OK", "no hook is posted", ""
    owner = owner_of(place.port)
    if owner is not None and owner != os.getuid():
        return "FAIL", f"port {place.port} belongs to user {owner}, who would get what is posted", _AGAIN
    with chdir("."):
        proof = control(state, "prove")
    if proof is None:
        return "WARN", f"port {place.port} is not answered: no daemon runs; the next session starts it", ""
    if proof["shut"]:
        return "FAIL", proof["shut"], _AGAIN
    if _answer(place.port, proof["word"]) != proof["answer"]:
        return "FAIL", f"another process answers on port {place.port}", _AGAIN
    return "OK", f"the daemon answers on port {place.port}", ""


def _answer(port: int, word: str) -> str:
    line = http.client.HTTPConnection(HOST, port, timeout=ANSWER_S)
    try:
        line.request("POST", "/", b"", {"Authorization": f"Bearer {word}"})
        return line.getresponse().read(1_000).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException) as error:
        return f"{type(error).__name__}: {error}"
    finally:
        line.close()
