"""``coherence score`` as a person runs it."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner, Result

from coherence import MetricInput, metric
from coherence.cli.main import main
from coherence.cli.options import FORMAT_NAMES
from coherence.core.registry import unregister
from coherence.providers.readers import FORMATS

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"
RUN = {
    "id": "oslo",
    "goal": "Book a flight to Oslo",
    "steps": [
        {"i": 0, "role": "user", "content": "Book a flight to Oslo"},
        {"i": 1, "role": "assistant", "content": "Searching a flight to Oslo"},
        {"i": 2, "role": "tool", "content": "", "tool_name": "search", "tool_result": "Oslo, 200 EUR"},
        {"i": 3, "role": "assistant", "content": "Booked"},
    ],
}


@pytest.fixture
def run_file(tmp_path: Path) -> Path:
    path = tmp_path / "run.jsonl"
    path.write_text(json.dumps(RUN) + "\n", encoding="utf-8")
    return path


def score(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["score", "--embedder", "hashing", *map(str, arguments)])


def test_score_off_a_terminal_a_run_is_one_line_with_the_bands_in_words(run_file: Path) -> None:
    result = score(run_file)
    assert result.exit_code == 0, result.output
    header, line = result.stdout.splitlines()
    assert header.split() == ["run", "steps", "now", "low", "press", "decision", "bands", "worst", "step", "and", "why"]
    assert line.startswith("oslo  4 ")
    assert "unknownx1 " in line
    assert "\x1b" not in result.output


def test_score_json_holds_what_the_table_shows(run_file: Path) -> None:
    summary = json.loads(score(run_file, "--json").stdout)
    (run,) = summary["runs"]
    assert (run["run_id"], run["steps"], run["format"]) == ("oslo", 4, "runs")
    assert run["lowest"] <= run["now"] <= 1
    assert run["bands"][0] == "unknown" and set(run["bands"][1:]) <= {"green", "yellow", "orange", "red"}
    assert summary["errors"] == []


def test_score_a_dash_is_standard_input_and_an_encoding_without_the_agents_characters_is_no_obstacle(
    run_file: Path,
) -> None:
    command = [sys.executable, "-m", "coherence", "score", "--embedder", "hashing", "-"]
    variables = {**os.environ, "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"}
    given = json.dumps({**RUN, "id": "Oslo é"}, ensure_ascii=False).encode()
    result = subprocess.run(command, check=True, capture_output=True, input=given, env=variables)
    line = score(run_file).stdout.splitlines()[1]
    assert result.stdout.decode("ascii").splitlines()[1].split() == ["Oslo", "?", *line.split()[1:]]


def test_score_jsonl_has_one_object_a_reading(run_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "readings.jsonl"
    assert score(run_file, "--jsonl", out).exit_code == 0
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [(line["run_id"], line["step"]) for line in lines] == [("oslo", step) for step in range(4)]
    keys = {"run_id", "step", "metrics", "coherence_index", "band", "cause", "scale", "coverage", "errors", "unknown"}
    keys |= {"schema", "risk", "pressure", "mode", "decision", "message"}
    assert all(line.keys() == keys for line in lines)
    assert lines[0]["metrics"]["goal_drift"] is None
    assert lines[0]["risk"] is None  # nothing is known yet
    assert lines[3]["risk"] == pytest.approx(1 - lines[3]["coherence_index"])
    assert 0 <= lines[3]["metrics"]["goal_drift"] <= 1


@pytest.mark.parametrize(("limit", "status"), [(0.0, 0), (1.0, 1)])
def test_score_a_crossed_threshold_is_status_one(run_file: Path, limit: float, status: int) -> None:
    assert score(run_file, "--fail-below", limit).exit_code == status


FAILING = [
    {"role": "assistant", "content": "I run it.", "tool_calls": [{"name": "bash", "arguments": {"command": "pytest"}}]},
    {"role": "tool", "tool_name": "bash", "content": "", "tool_result": "ImportError: no module x", "is_error": True},
]


@pytest.mark.parametrize(
    ("rounds", "worst", "warn", "block"), [(1, "continue", 0, 0), (5, "warn", 1, 0), (12, "block", 1, 1)]
)
def test_score_fail_on_is_status_one_from_that_decision_on(
    tmp_path: Path, rounds: int, worst: str, warn: int, block: int
) -> None:
    path = tmp_path / "run.jsonl"
    path.write_text(json.dumps({"id": "stuck", "goal": "run the tests", "steps": FAILING * rounds}) + "\n")
    (run,) = json.loads(score(path, "--json").stdout)["runs"]
    assert run["worst_decision"] == worst
    for kind, status in (("warn", warn), ("block", block)):
        result = score(path, "--fail-on", kind)
        assert result.exit_code == status
        assert (f"error: stuck: {worst} after step {run['decisions'].index(worst)}: " in result.stderr) == bool(status)
    assert score(path, "--fail-below", run["lowest"]).exit_code == 0
    assert score(path, "--fail-below", min(run["lowest"] + 0.001, 1.0)).exit_code == 1
    assert score(path, tmp_path / "none.json", "--fail-on", "block").exit_code == 2, "an unread file weighs more"


def test_score_a_bad_file_is_named_the_others_are_scored_and_the_status_is_two(run_file: Path, tmp_path: Path) -> None:
    bad = tmp_path / "bad.jsonl"
    bad.write_text(json.dumps(RUN) + "\n{not json\n" + json.dumps(RUN) + "\n", encoding="utf-8")
    result = score(bad, tmp_path / "none.json", run_file, "--fail-below", 0.0)
    assert result.exit_code == 2
    assert f"error: {bad}:2: not JSON" in result.stderr
    assert f"error: {tmp_path / 'none.json'}: " in result.stderr
    assert "oslo  4 " in result.stdout
    assert len(result.stdout.splitlines()) == 2


def test_score_an_output_that_cannot_be_written_is_named_and_the_table_is_shown(
    run_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tempfile.mkstemp", full)
    result = score(run_file, "--html", tmp_path / "out.html")
    assert result.exit_code == 2
    assert "out.html: cannot be written: No space left on device" in result.stderr
    assert "oslo  4 " in result.stdout


def test_score_a_reader_that_goes_away_is_no_traceback(run_file: Path) -> None:
    command = f'"{sys.executable}" -m coherence score "{run_file}" --embedder hashing --json | true'
    result = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--embedder", "nope"], "no embedder is called 'nope'; known: "),
        (["--embedder", "hashing:many"], "dimensions must be an int"),
        (["--embedder", "openai"], "missing"),
        (["--embedder", "sentence-transformers:none"], 'pip install "coherence-sensor[sentence-transformers]"'),
        (["--embedder", "openai:http://127.0.0.1:9/v1,none"], "http://127.0.0.1:9/v1/embeddings"),
        (["--metric", "nope"], "no metric is called 'nope'; known: "),
        (["--window", "0"], "--window"),
        (["--format", "nope"], "--format"),
        (["--fail-below", "2"], "--fail-below"),
        (["--html", "no/such/folder/report.html"], "cannot write"),
        (["--jsonl", "no/such/folder/out.jsonl"], "cannot write"),
    ],
)
def test_score_bad_usage_is_status_two_before_anything_is_scored(
    run_file: Path, arguments: list[str], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)  # as where the extra is not installed
    result = score(run_file, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr
    assert result.stdout == ""


def test_score_disabled_by_the_environment_it_says_so(run_file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COHERENCE_DISABLED", "1")
    result = score(run_file)
    assert (result.exit_code, result.stdout) == (2, "")
    assert "COHERENCE_DISABLED" in result.stderr


def test_score_hostile_texts_cannot_reach_the_terminal(tmp_path: Path) -> None:
    evil = {**RUN, "id": "\x1b]0;owned\x07", "steps": [*RUN["steps"], {"role": "assistant", "content": "\x1b[2J" * 9}]}
    path = tmp_path / "evil.jsonl"
    path.write_text(json.dumps(evil) + "\n", encoding="utf-8")
    result = score(path)
    assert result.exit_code == 0
    assert not [char for char in result.output if not char.isprintable() and char != "\n"]


def test_score_readings_with_errors_are_pointed_out(run_file: Path) -> None:
    @metric("always_fails", inverted=True)
    def always_fails(data: MetricInput) -> float:
        """Fail."""
        raise RuntimeError("no luck")

    try:
        result = score(run_file, "--metric", "always_fails")
    finally:
        unregister("always_fails")
    assert result.exit_code == 0
    assert "warning: oslo: 4 readings with errors; step 0: metric always_fails: RuntimeError: no luck" in result.stderr


def test_score_the_named_formats_are_those_of_the_readers() -> None:
    assert tuple(FORMATS) == FORMAT_NAMES


@pytest.mark.slow
def test_score_all_shipped_runs_are_read_and_scored() -> None:
    result = score(*sorted(DATA.glob("*.gz")), "--json")
    assert result.exit_code == 0
    runs = json.loads(result.stdout)["runs"]
    assert len(runs) == 12
    assert all(run["lowest"] is not None for run in runs)


@pytest.mark.slow
def test_score_the_demo_scores_the_shipped_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(main, ["demo", "--embedder", "hashing"])
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert len(lines) == 14  # header, 12 runs, and what became of them
    assert lines[-1].startswith("known outcomes: 7 runs went wrong: ") and "; 5 runs went well: " in lines[-1]
    assert (tmp_path / "report.html").stat().st_size > 10_000


def on_a_terminal(*arguments: str, **environment: str) -> str:
    """Run the command on a pseudo-terminal and return all it shows."""
    master, slave = pty.openpty()
    variables = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", **environment}
    variables.pop("CI", None)
    process = subprocess.Popen(
        [sys.executable, "-m", "coherence", *arguments], stdout=slave, stderr=slave, stdin=slave, env=variables
    )
    os.close(slave)
    shown = b""
    while select.select([master], [], [], 60)[0]:
        try:
            part = os.read(master, 65536)
        except OSError:  # the other side has closed
            break
        if not part:
            break
        shown += part
    os.close(master)
    assert process.wait(60) == 0, shown.decode()
    return shown.decode()


def test_score_on_a_terminal_there_is_colour_a_strip_and_a_legend(run_file: Path) -> None:
    shown = on_a_terminal("score", str(run_file), "--embedder", "hashing")
    assert "\x1b[" in shown
    assert "·" in shown and any(cell in shown for cell in "▂▄▆█")
    assert "green" in shown and "nothing to measure yet" in shown
    assert "scale events-5, which compares no meanings" in shown


def test_score_every_command_and_option_has_help() -> None:
    context = click.Context(main)
    for name in main.list_commands(context):
        command = main.get_command(context, name)
        assert command is not None and command.help
        for parameter in command.params:
            if isinstance(parameter, click.Option):
                assert parameter.help, f"{command.name} {parameter.name}"


def test_score_what_is_unknown_is_not_shown_as_perfect(run_file: Path, tmp_path: Path) -> None:
    """One step without a word, or only a user's, tells nothing: no index, and no threshold is passed."""
    empty, out = tmp_path / "empty.jsonl", tmp_path / "readings.jsonl"
    steps = {"silent": {"role": "assistant", "content": ""}, "user": {"role": "user", "content": "hi"}}
    empty.write_text(
        "".join(json.dumps({"id": id, "goal": "Do it", "steps": [step]}) + "\n" for id, step in steps.items())
    )
    result = score(empty, run_file, "--jsonl", out, "--fail-below", 0.01)
    assert result.exit_code == 1
    for name in steps:
        assert f"error: {name}: nothing was known after any step" in result.stderr
    assert "error: oslo" not in result.stderr
    assert [line.split()[2:4] for line in result.stdout.splitlines()[1:3]] == [["-", "-"], ["-", "-"]]
    lines = [json.loads(line) for line in out.read_text(encoding="utf-8").splitlines()]
    assert [(line["coherence_index"], line["band"], line["coverage"]) for line in lines[:3]] == [
        (None, "unknown", 0.0)
    ] * 3
    assert 0 <= lines[3]["coherence_index"] <= 1 and lines[3]["band"] == "green"  # oslo, step 1
    assert score(empty, "--fail-below", 0.0).exit_code == 0  # no index is below 0
