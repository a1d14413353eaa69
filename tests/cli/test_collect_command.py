from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest
from click.testing import CliRunner

from coherence.cli.main import main
from coherence.store.store import Store

SAMPLES = Path(__file__).parents[1] / "data" / "otlp"


@pytest.mark.parametrize("end", [signal.SIGINT, signal.SIGTERM])
def test_collect_records_what_is_posted_and_ends_cleanly(tmp_path: Path, end: signal.Signals) -> None:
    store = tmp_path / "runs.db"
    command = [
        sys.executable,
        "-m",
        "coherence",
        "collect",
        "--otlp",
        "0",
        "--store",
        str(store),
        "--embedder",
        "hashing",
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, "COLUMNS": "200"}
    ) as process:
        assert process.stderr is not None
        said = process.stderr.readline()
        found = re.match(r"OTLP on (http://127\.0\.0\.1:\d+), recorded in (.+)\n", said)
        assert found is not None
        assert found[2] == str(store)
        request = urllib.request.Request(
            f"{found[1]}/v1/traces",
            (SAMPLES / "semconv.otlp.json").read_bytes(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=10) as answer:
            assert (answer.status, answer.read()) == (200, b"{}")
        process.send_signal(end)
        try:
            out, err = process.communicate(timeout=30)
        finally:
            process.kill()  # so that a failure does not wait for ever
    assert process.returncode == 0
    assert err == "ends\n"
    lines = out.splitlines()
    assert re.fullmatch(r"fixer/conv-1: [01]\.\d\d (green|yellow|orange|red)", lines[0])
    assert re.fullmatch(r"fixer/conv-1: [01]\.\d\d (green|yellow|orange|red) at the end", lines[-1])
    with Store(store) as kept:
        assert [(row.agent, row.session) for row in kept.sessions()] == [("fixer", "conv-1")]


def test_collect_says_why_it_cannot_listen(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        given = ["collect", "--otlp", str(port), "--store", str(tmp_path / "a.db"), "--embedder", "hashing"]
        result = CliRunner().invoke(main, given)
    assert result.exit_code == 2
    assert f"127.0.0.1:{port} cannot be listened on: Address already in use" in result.stderr
