"""Writing a file whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def write_atomically(path: str | Path, text: str) -> None:
    """Write a text as UTF-8 to a temporary file beside ``path``, then put it in its place.

    A device or a pipe cannot be replaced; it is written to.
    """
    target = Path(path).resolve()
    if target.exists() and not target.is_file():
        target.write_text(text, encoding="utf-8", newline="\n")
        return
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        # mkstemp() keeps others out; the file gets the rights of the old one, or those that open() would give.
        mode = target.stat().st_mode & 0o777 if target.exists() else 0o666 & ~_umask()
        os.chmod(name, mode)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise


def _umask() -> int:
    # it can only be read by setting it
    mask = os.umask(0)
    os.umask(mask)
    return mask
