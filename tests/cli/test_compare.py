"""``coherence compare`` as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from coherence import Monitor
from coherence.cli.main import main


def compare(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["compare", "--embedder", "hashing", *map(str, arguments)])


def line(name: str, *, stuck: bool, cost: float | None = None) -> str:
    """Return a run that lists four folders, or fails seven times at one."""
    steps: list[dict[str, Any]] = [{"role": "user", "content": "List the folders"}]
    for at in range(7 if stuck else 4):
        folder = "none" if stuck else f"folder {at}"
        call = {"name": "Bash", "arguments": {"command": f"ls '{folder}'"}}
        usage = {} if cost is None else {"usage": {"tokens_in": 100, "tokens_out": 10, "cost_usd": cost}}
        steps.append({"role": "assistant", "content": "", "tool_calls": [call], **usage})
        said = "ls: cannot access 'none'" if stuck else f"a{at}.txt b{at}.txt"
        steps.append({"role": "tool", "tool_name": "Bash", "tool_result": said, "is_error": stuck})
    return json.dumps({"id": name, "goal": "List the folders", "steps": steps}) + "\n"


@pytest.fixture(scope="module")
def sides(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve good runs in one file, twelve stuck ones in a folder of two files, and three good ones."""
    folder = tmp_path_factory.mktemp("sides")
    (folder / "good.jsonl").write_text("".join(line(f"good {at}", stuck=False) for at in range(12)))
    (folder / "few.jsonl").write_text("".join(line(f"few {at}", stuck=False) for at in range(3)))
    stuck = folder / "stuck" / "deeper"
    stuck.mkdir(parents=True)
    for part in range(2):
        (stuck / f"{part}.jsonl").write_text("".join(line(f"stuck {part} {at}", stuck=True) for at in range(6)))
    (stuck / "notes.txt").write_text("not a transcript")
    (folder / "stuck" / ".hidden.jsonl").write_text("{")
    return folder


def test_compare_shows_before_after_difference_and_verdict(sides: Path) -> None:
    result = compare(sides / "good.jsonl", sides / "stuck")
    assert result.exit_code == 0, result.output
    rows = {each.strip().split("  ")[0]: " ".join(each.split()) for each in result.stdout.splitlines() if each.strip()}
    assert result.stdout.startswith("12 runs before, 12 after\n")
    assert rows["runs warned or blocked"] == "runs warned or blocked 0% 100% +100% +100% to +100% 12, 12 worse"
    # 7 failed calls instead of none, and 15 steps (a request, 7 calls, 7 results) instead of 9
    assert rows["failed calls a run"] == "failed calls a run 0.0 7.0 +7.0 +7.0 to +7.0 12, 12 worse"
    assert rows["steps a run"].endswith("9.0 15.0 +6.0 +6.0 to +6.0 12, 12 changed")
    assert rows["cost a run (USD)"] == "cost a run (USD) unknown unknown 0, 0 not known"
    assert "one in twenty does by chance alone" in result.stdout
    assert [name for name in rows if name == "bash_retry"], "findings by rule"


def test_compare_fails_only_where_it_is_asked_to_and_worse(sides: Path) -> None:
    worse = compare(sides / "good.jsonl", sides / "stuck", "--fail-on", "worse")
    assert worse.exit_code == 1
    assert "error: worse: runs warned or blocked: 0% before, 100% after" in worse.stderr
    assert "error: worse: mean index: 0." in worse.stderr
    for other in ((sides / "stuck", sides / "good.jsonl"), (sides / "good.jsonl", sides / "good.jsonl")):
        assert compare(*other, "--fail-on", "worse").exit_code == 0


def test_compare_too_few_runs_fail_nothing_and_say_so(sides: Path) -> None:
    result = compare(sides / "few.jsonl", sides / "stuck", "--fail-on", "worse")
    assert result.exit_code == 0
    assert "note: 3 runs before and 12 after are too few: a side needs 10" in result.stdout
    warned = next(each for each in result.stdout.splitlines() if each.startswith("runs warned or blocked"))
    assert warned.split()[4:] == ["0%", "100%", "+100%", "3,", "12", "too", "few", "runs"]
    assert "warning: runs warned or blocked: nothing can be said, so that --fail-on worse passes it" in result.stderr


def test_compare_prints_the_same_json_each_time(sides: Path) -> None:
    first, second = (compare(sides / "good.jsonl", sides / "stuck", "--json") for _ in range(2))
    assert first.stdout == second.stdout
    document = json.loads(first.stdout)
    assert (document["before"], document["after"]) == (12, 12)
    assert document["worse"] == ["share.warned", "mean_index"]


def test_compare_reads_stores_and_costs(tmp_path: Path) -> None:
    for name, cost in (("before", 0.25), ("after", 0.5)):
        with Monitor(goal="List the files", store=tmp_path / f"{name}.db", embedder=False) as m:
            m.message("assistant", "I look.")
            m.usage(tokens_in=100, tokens_out=10, cost_usd=cost)
    result = compare(tmp_path / "before.db", tmp_path / "after.db", "--json")
    costs = {each["key"]: each for each in json.loads(result.stdout)["changes"]}["cost_usd"]
    assert (costs["before"]["value"], costs["after"]["value"], costs["difference"]["value"]) == (0.25, 0.5, 0.25)
    assert costs["verdict"] == "not known", "one run a side"


@pytest.mark.parametrize(
    ("after", "says"),
    [
        ("nowhere.jsonl", "does not exist"),
        ("empty", "holds no file that ends in .json, "),
        ("broken.jsonl", "broken.jsonl"),
    ],
)
def test_compare_bad_input_is_2_and_compares_nothing(sides: Path, tmp_path: Path, after: str, says: str) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "broken.jsonl").write_text("{")
    result = compare(sides / "few.jsonl", tmp_path / after)
    assert result.exit_code == 2
    assert says in " ".join(result.stderr.split())
    assert result.stdout == ""


def test_compare_several_processes_find_the_same(sides: Path) -> None:
    alone = compare(sides / "few.jsonl", sides / "few.jsonl")
    assert compare(sides / "few.jsonl", sides / "few.jsonl", "--jobs", 2).stdout == alone.stdout
