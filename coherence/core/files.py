"""Opening files with care: new ones for their owner alone, none through a link, nothing that is no regular file."""

from __future__ import annotations

import errno
import io
import os
import stat
from pathlib import Path
from typing import IO, Any

# None of the two is known on Windows, where no other user may plant a link or a pipe.
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_NO_WAIT = getattr(os, "O_NONBLOCK", 0)
_PLAIN = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)

_KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFCHR: "a device", stat.S_IFBLK: "a device", stat.S_IFSOCK: "a socket"}


def make_folder(folder: Path) -> None:
    """Make a folder and those above it that are missing, for their owner alone; what is there keeps its rights."""
    if not folder.is_dir():
        make_folder(folder.parent)
        folder.mkdir(mode=0o700, exist_ok=True)


def check_output(path: str | Path) -> None:
    """Refuse to write through a symbolic link, or into something that is no regular file.

    Raises
    ------
    OSError
        It is one of these; the message says what to do.
    """
    try:
        found = os.lstat(path)
    except OSError:  # nothing is there, or opening it says more
        return
    if stat.S_ISLNK(found.st_mode):
        leads = os.path.realpath(path)
        raise OSError(errno.ELOOP, f"this is a symbolic link, and none is written through; name {leads} itself")
    _check_kind(found)


def check_folder(folder: Path) -> None:
    """Refuse to write into a folder that is a symbolic link.

    Raises
    ------
    OSError
        It is one.
    """
    if folder.is_symlink():
        check_output(folder)


def open_output(path: str | Path, mode: str = "wb") -> IO[Any]:
    """Open a file for writing bytes: ``wb``, ``ab`` or ``r+b``; a new one has the mode 0600.

    Raises
    ------
    OSError
        As :func:`check_output`, or it cannot be opened.
    """
    check_output(path)
    wanted = {"wb": os.O_WRONLY | os.O_CREAT | os.O_TRUNC, "ab": os.O_WRONLY | os.O_CREAT | os.O_APPEND}
    flags = wanted.get(mode, os.O_RDWR)
    # Looked at again once it is open: somebody may have put another one in its place meanwhile.
    return open(_checked(os.open(path, flags | _NO_LINK | _NO_WAIT | _PLAIN, 0o600)), mode)


def open_new(path: str | Path) -> IO[bytes]:
    """Make a file for its owner alone, for writing bytes.

    Raises
    ------
    FileExistsError
        There is one, a link among others.
    OSError
        It cannot be made.
    """
    return open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _PLAIN, 0o600), "wb")


def open_input(path: str | Path) -> io.BufferedReader:
    """Open a regular file for reading; a pipe would be waited for.

    Raises
    ------
    OSError
        It is something else, or cannot be opened.
    """
    _check_kind(os.stat(path))
    return open(_checked(os.open(path, os.O_RDONLY | _NO_WAIT | _PLAIN)), "rb")


def _checked(descriptor: int) -> int:
    try:
        _check_kind(os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _check_kind(found: os.stat_result) -> None:
    if stat.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not stat.S_ISREG(found.st_mode):
        kind = _KINDS.get(stat.S_IFMT(found.st_mode), "no file")
        raise OSError(errno.EINVAL, f"this is {kind}; name a regular file")
