from __future__ import annotations

import json
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


@pytest.mark.parametrize("end", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
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


def test_collect_takes_spans_and_events_at_once(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    command = [sys.executable, "-m", "coherence", "collect", "--otlp", "0", "--http", "0", "--embedder", "hashing"]
    with subprocess.Popen(
        [*command, "--store", str(store)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        otlp = re.match(r"OTLP on (http://127\.0\.0\.1:\d+), ", process.stderr.readline())
        http = re.match(r"events on (http://127\.0\.0\.1:\d+/v1/events), ", process.stderr.readline())
        assert otlp is not None and http is not None
        event = {"kind": "message", "session": "conv-1", "agent": "fixer", "role": "assistant", "text": "Done."}
        answers = []
        for url, body in (
            (f"{otlp[1]}/v1/traces", (SAMPLES / "semconv.otlp.json").read_bytes()),
            (http[1], json.dumps(event).encode()),
        ):
            request = urllib.request.Request(url, body, {"Content-Type": "application/json"})
            with urllib.request.urlopen(request, timeout=10) as answer:
                answers.append(json.load(answer))
        process.send_signal(signal.SIGTERM)
        try:
            process.communicate(timeout=30)
        finally:
            process.kill()
    assert process.returncode == 0
    assert answers[0] == {}
    assert [(each["agent"], each["session"]) for each in answers[1]["agents"]] == [("fixer", "conv-1")]
    with Store(store) as kept:  # both doors lead to one session
        [session] = kept.sessions()
        assert json.loads([*kept.events(session.id)][-2].data)["content"] == "Done."


def test_collect_wants_a_port(tmp_path: Path) -> None:
    result = CliRunner().invoke(main, ["collect", "--store", str(tmp_path / "a.db")])
    assert result.exit_code == 2
    assert "give --otlp PORT, --http PORT or both" in result.stderr


def test_collect_says_why_it_cannot_listen(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        for option in ("--otlp", "--http"):
            given = ["collect", option, str(port), "--store", str(tmp_path / "a.db"), "--embedder", "hashing"]
            result = CliRunner().invoke(main, given)
            assert result.exit_code == 2
            assert f"127.0.0.1:{port} cannot be listened on: Address already in use" in result.stderr
