"""``coherence eval`` as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from coherence.cli.main import main

DATA = Path(__file__).resolve().parents[2] / "examples" / "data"
STEPS = [
    {"role": "user", "content": "Pay the rent"},
    {"role": "assistant", "content": "I pay", "tool_calls": [{"name": "pay", "arguments": {"to": "landlord"}}]},
    {"role": "tool", "content": "", "tool_name": "pay", "tool_result": "paid"},
    {"role": "assistant", "content": "Done"},
]


def evaluate(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["eval", "--embedder", "hashing", *map(str, arguments)])


def write(path: Path, *runs: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps({"steps": STEPS, **run}) + "\n" for run in runs), encoding="utf-8")
    return path


@pytest.fixture
def data(tmp_path: Path) -> Path:
    runs = [{"id": f"r{at}", "group": f"t{at // 2}", "labels": {"success": at % 3 > 0}} for at in range(18)]
    return write(tmp_path / "data.jsonl", *runs)


def scores(path: Path, header: dict[str, Any] | None = None) -> Path:
    lines: list[dict[str, Any]] = [] if header is None else [header]
    lines += [
        {"id": f"r{at}", "score": float(at % 3 == 0), "step_scores": [None, 0, 0, float(at % 3 == 0)]}
        for at in range(18)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.slow
def test_eval_the_tables_fit_80_columns_and_every_question_is_answered() -> None:
    result = evaluate(*sorted(DATA.glob("*.gz")))
    assert result.exit_code == 0, result.output
    assert max(map(len, result.stdout.splitlines())) <= 80
    for title in (
        "12 labelled runs of 11 tasks",
        "Hijacking call against legitimate calls",
        "Runs: hijacked against read it and resisted",
        "Runs: hijacked against not attacked",
        "Runs: failed against succeeded",
        "Decisive step of failed runs",
        "index*",
        "injection phrases",
    ):
        assert title in result.stdout
    assert "\x1b" not in result.output


def test_eval_json_holds_every_figure(data: Path) -> None:
    result = evaluate(data, "--metric", "repetition", "--metric", "index", "--json")
    found = json.loads(result.stdout)
    assert (found["runs"], found["tasks"], found["steps"], found["unused"]) == (18, 9, 72, 0)
    names = ["repetition", "index", "random", "length", "position", "injection phrases", "words far from goal"]
    assert [system["name"] for system in found["systems"]] == names
    assert [system["reference"] for system in found["systems"]] == [False, False, *[True] * 5]
    (section,) = found["sections"]
    assert (section["question"], section["cases"], section["bad"]) == ("failure", 18, 6)
    length = next(row for row in section["rows"] if row["system"] == "length")
    assert length["figures"]["auroc"] == {"value": 0.5, "low": 0.5, "high": 0.5}  # all runs have four steps
    assert length["differences"]["auroc"]["verdict"] == "inside the noise"


def test_eval_few_tasks_have_no_interval_and_that_is_said(tmp_path: Path) -> None:
    runs = [{"id": f"r{at}", "labels": {"success": at > 0}} for at in range(3)]
    few = write(tmp_path / "few.jsonl", *runs)
    line = "too few tasks for an interval, and for folds"
    table = evaluate(few, "--metric", "repetition").stdout
    assert line in table and "1 failed run and 2 runs that succeeded, of 3 tasks" in table
    (section,) = json.loads(evaluate(few, "--metric", "repetition", "--json").stdout)["sections"]
    assert {row["system"]: row["folds"] for row in section["rows"]}["length"] is None
    length = next(row for row in section["rows"] if row["system"] == "length")
    assert (section["note"], length["figures"]["auroc"]) == (line, {"value": 0.5, "low": None, "high": None})


def test_eval_scores_of_another_system_are_judged_alone_or_beside_a_metric(data: Path, tmp_path: Path) -> None:
    theirs = scores(tmp_path / "theirs.jsonl", {"system": "theirs", "fitted_on": "none"})
    found = json.loads(evaluate(data, "--scores", theirs, "--json").stdout)
    assert [system["name"] for system in found["systems"]][:2] == ["theirs", "random"]
    assert found["sections"][0]["rows"][0]["figures"]["auroc"]["value"] == 1.0
    beside = json.loads(evaluate(data, "--scores", theirs, "--metric", "repetition", "--json").stdout)
    assert [system["name"] for system in beside["systems"]][:2] == ["repetition", "theirs"]
    assert beside["sections"][0]["rows"][1]["differences"]["auroc"]["verdict"] == "worse"


def test_eval_scores_of_runs_that_are_not_there_are_told(data: Path, tmp_path: Path) -> None:
    theirs = scores(tmp_path / "theirs.jsonl", {"system": "theirs"})
    with theirs.open("a") as file:
        file.writelines(json.dumps({"id": f"other {at}", "score": 1}) + "\n" for at in range(5))
    result = evaluate(data, "--scores", theirs, "--json")
    assert result.exit_code == 0
    assert "5 ids that no run has, passed over: 'other 0', 'other 1', 'other 2' and 2 more" in result.stderr
    judged = json.loads(result.stdout)["systems"]
    assert (judged[0]["strangers"], judged[0]["first_strangers"]) == (5, ["other 0", "other 1", "other 2"])
    assert (judged[1]["strangers"], judged[1]["first_strangers"]) == (0, [])
    foreign = write(tmp_path / "foreign.jsonl", {"id": "else", "labels": {"success": True}})
    refused = evaluate(foreign, data, "--scores", write(tmp_path / "none.jsonl", {"id": "nobody", "score": 1}))
    assert refused.exit_code == 2 and "no run has one of its ids: 'nobody'" in refused.stderr


def test_eval_in_sample_beside_held_out_is_refused_unless_it_is_asked_for(tmp_path: Path) -> None:
    runs = [{"id": f"r{at}", "split": "dev", "labels": {"success": at % 3 > 0}} for at in range(18)]
    data = write(tmp_path / "data.jsonl", *runs)
    theirs = scores(tmp_path / "theirs.jsonl", {"system": "theirs", "fitted_on": "none"})
    result = evaluate(data, "--scores", theirs, "--metric", "repetition")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "error: repetition was fitted or tuned on the split 'dev'" in result.stderr
    assert "theirs was not" in result.stderr and "--in-sample-too" in result.stderr
    shown = evaluate(data, "--scores", theirs, "--metric", "repetition", "--in-sample-too")
    assert shown.exit_code == 0
    assert "repetition*" in shown.stdout and "* in-sample, too good" in shown.stdout
    # Scores fitted on the very same runs may stand beside.
    alike = scores(tmp_path / "alike.jsonl", {"system": "alike", "fitted_on": [f"run r{at}" for at in range(18)]})
    assert evaluate(data, "--scores", alike, "--metric", "repetition").exit_code == 0


def test_what_score_writes_eval_reads(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "steps.jsonl"
    written = CliRunner().invoke(
        main, ["score", "--embedder", "hashing", str(data), "--metric", "error_rate", "--step-scores", str(out)]
    )
    assert written.exit_code == 0, written.output
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    schema = {"schema": "coherence.score.step-scores/1"}
    assert lines[0] == {**schema, "system": "coherence error_rate", "fitted_on": "dev"}
    assert lines[1] == {**schema, "id": "r0", "score": 0.0, "step_scores": [None, None, None, 0.0]}
    found = json.loads(evaluate(data, "--scores", out, "--metric", "error_rate", "--json").stdout)
    theirs, ours = found["sections"][0]["rows"][1], found["sections"][0]["rows"][0]
    assert theirs["figures"] == ours["figures"]


def test_eval_score_writes_the_risk_of_the_index_where_no_metric_is_named(data: Path, tmp_path: Path) -> None:
    out, readings = tmp_path / "steps.jsonl", tmp_path / "readings.jsonl"
    arguments = ["score", "--embedder", "hashing", str(data), "--step-scores", str(out), "--jsonl", str(readings)]
    assert CliRunner().invoke(main, arguments).exit_code == 0
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert lines[0]["system"] == "coherence index"
    risks = [json.loads(line)["risk"] for line in readings.read_text().splitlines()]
    assert [score for line in lines[1:] for score in line["step_scores"]] == risks
    found = json.loads(evaluate(data, "--scores", out, "--metric", "index", "--json").stdout)
    assert found["sections"][0]["rows"][0]["figures"] == found["sections"][0]["rows"][1]["figures"]


@pytest.mark.parametrize(
    ("runs", "message"),
    [
        ([{"id": "a"}], "no labels to judge by"),
        ([{"id": "a", "labels": {"success": True}}], "the only case is good"),
        ([{"id": "a", "labels": {"success": 1}}], "data.jsonl:1: Expected `bool | null`"),
        ([{"id": "a"}, {"id": "a"}], "data.jsonl:2: the id 'a' is that of"),
        ([], "the file is empty"),
    ],
)
def test_eval_data_that_cannot_be_judged_is_status_two(
    tmp_path: Path, runs: list[dict[str, Any]], message: str
) -> None:
    result = evaluate(write(tmp_path / "data.jsonl", *runs))
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--metric", "nope"], "no metric is called 'nope'"),
        (["--embedder", "nope", "--metric", "index"], "no embedder is called 'nope'"),
        (["--target", "nope"], "--target"),
        (["--scores", "none.jsonl"], "none.jsonl: no such file"),
        (["--html", "no/such/folder/page.html"], "cannot write"),
        (["--config", "none.toml"], "--config"),
    ],
)
def test_eval_bad_usage_is_status_two(data: Path, arguments: list[str], message: str) -> None:
    result = evaluate(data, *arguments)
    assert (result.exit_code, result.stdout) == (2, "")
    assert message in result.stderr


def test_eval_score_writes_the_scores_of_one_metric_and_each_name_once(data: Path, tmp_path: Path) -> None:
    other, out = tmp_path / "other.jsonl", tmp_path / "steps.jsonl"
    other.write_bytes(data.read_bytes())
    for arguments, says in (
        ([str(other)], "two runs are called 'r0'"),
        (["--metric", "error_rate", "--metric", "cost"], "name one"),
    ):
        command = ["score", "--embedder", "hashing", str(data), *arguments, "--step-scores", str(out)]
        result = CliRunner().invoke(main, command)
        assert result.exit_code == 2 and says in result.stderr and not out.exists()


def test_eval_hostile_names_cannot_reach_the_terminal(tmp_path: Path) -> None:
    evil = "\x1b[2J[bold][/red]\u202e\ud800"
    runs = [{"id": f"r{at}", "source": evil + str(at % 2), "labels": {"success": at % 3 > 0}} for at in range(18)]
    data = write(tmp_path / "data.jsonl", *runs)
    theirs = scores(tmp_path / "theirs.jsonl", {"system": evil})
    result = evaluate(data, "--scores", theirs)
    assert result.exit_code == 0, result.output
    assert "[bold][/red]" in result.stdout  # text, and not an instruction to the table
    assert not [char for char in result.stdout if not char.isprintable() and char != "\n"]


def test_eval_huge_texts_and_silent_scores_are_judged(tmp_path: Path) -> None:
    steps = [*STEPS, {"role": "tool", "tool_name": "x", "tool_result": "word " * 200_000}]
    runs = [{"id": f"r{at}", "steps": steps, "labels": {"success": at > 0}} for at in range(2)]
    data = write(tmp_path / "data.jsonl", *runs)
    silent = tmp_path / "silent.jsonl"
    silent.write_text("".join(json.dumps({"id": f"r{at}", "score": None}) + "\n" for at in range(2)))
    result = evaluate(data, "--scores", silent, "--metric", "repetition", "--json")
    figures = json.loads(result.stdout)["sections"][0]["rows"][1]["figures"]
    assert figures["auroc"]["value"] == 0.5
    assert figures["per_100"]["value"] is None
