"""Dumps that the installed packages write are read as those in tests/data/dumps, which an older version wrote."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from coherence.providers.readers import read_transcripts
from frameworks.dumps import WRITERS

pytestmark = pytest.mark.frameworks

KEPT = Path(__file__).parents[1] / "data" / "dumps"
PACKAGES = {
    "langchain": "langchain_core",
    "pydantic-ai": "pydantic_ai",
    "smolagents": "smolagents",
    "inspect": "inspect_ai",
}


def without_times(path: Path) -> list[Any]:
    return [
        [
            run.format,
            run.id,
            run.success,
            [msgspec.structs.replace(step, ts=None, latency_s=None) for step in run.steps],
        ]
        for run in read_transcripts(path)
    ]


@pytest.mark.parametrize("name", WRITERS)
def test_read_transcripts_reads_what_the_installed_package_writes(name: str, tmp_path: Path) -> None:
    pytest.importorskip(PACKAGES[name])
    # in a process of its own: the packages leave event loops and sockets open
    command = [sys.executable, str(Path(__file__).with_name("dumps.py")), str(tmp_path), name]
    subprocess.run(command, check=True, capture_output=True, timeout=300)
    written = sorted(path for path in tmp_path.iterdir() if path.is_file())
    assert written
    for path in written:
        assert without_times(path) == without_times(KEPT / path.name)
