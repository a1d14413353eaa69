"""Writing a file whole or not at all."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from coherence.core.files import check_output


def write_atomically(path: str | Path, text: str) -> None:
    """Write a text as UTF-8 to a temporary file beside ``path``, then put it in its place.

    A new file is for its owner alone; one that is replaced leaves its rights to the new one.

    Raises
    ------
    OSError
        It cannot be written, or is a symbolic link, a folder, a pipe or a device.
    """
    check_output(path)
    target = Path(os.path.abspath(path))
    descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
        with suppress(FileNotFoundError):  # a new file keeps the rights that mkstemp() gives: 0600
            os.chmod(name, target.stat().st_mode & 0o777)
        os.replace(name, target)
    except BaseException:
        os.unlink(name)
        raise
