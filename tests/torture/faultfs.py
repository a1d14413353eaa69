"""A disk that fails on demand: the library before libc is compiled here, and a process under it carries out plans."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
import pytest

from torture.agent import Plan, Report

HERE = Path(__file__).parent
READ, SYNC = 1, 4
"""Classes of operations; faultfs.c has the others."""

EIO, ENOSPC, TORN = 1, 2, 3
"""Ways in which an operation fails; torn: its first half is done."""

FOR_EVER = 10**9


def built(folder: Path) -> Path:
    """Compile the library; skip the test where that cannot be done."""
    compiler = shutil.which("cc")
    if compiler is None or sys.platform != "linux":
        pytest.skip("needs Linux and a C compiler named cc")
    library = folder / "faultfs.so"
    subprocess.run(
        [
            compiler,
            "-O1",
            "-Wall",
            "-Werror",
            "-shared",
            "-fPIC",
            "-o",
            library,
            HERE / "faultfs.c",
            "-ldl",
            "-lpthread",
        ],
        check=True,
    )
    return library


class Disk:
    """Process whose children live on a disk that fails on demand.

    Parameters
    ----------
    folder : Path
        For the library.
    """

    def __init__(self, folder: Path) -> None:
        environment = {**os.environ, "LD_PRELOAD": str(built(folder)), "PYTHONPATH": os.pathsep.join(sys.path)}
        self._process = subprocess.Popen(
            [sys.executable, HERE / "agent.py"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
        )

    def run(self, plan: Plan) -> Report:
        """Carry out a plan."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(msgspec.json.encode(plan).decode() + "\n")
        self._process.stdin.flush()
        return msgspec.json.decode(self._process.stdout.readline(), type=Report)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.communicate()
