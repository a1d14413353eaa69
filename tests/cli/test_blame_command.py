"""``coherence blame`` as a person runs it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from coherence.cli.main import main

RUNS = Path(__file__).resolve().parents[1] / "data" / "runs"
WHOWHEN = RUNS / "whowhen.jsonl.gz"
HOSTILE = "\x1b[31mred\u202eevil\n\n" + "assume " * 30_000


def blame(*arguments: object, **env: str) -> Result:
    return CliRunner().invoke(main, ["blame", *map(str, arguments)], env=env)


def write(folder: Path, *steps: dict[str, Any], **more: Any) -> Path:
    path = folder / "run.jsonl"
    path.write_text(json.dumps({"id": "museum", "steps": steps} | more), encoding="utf-8")
    return path


def test_blame_a_run_is_shown_with_verdict_reasons_and_agents() -> None:
    result = blame(WHOWHEN, "--run", "whowhen/algorithm/114", "--top", 2)
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[:2] == ["whowhen/algorithm/114", "decided: step 1 of Verification_Expert stands out."]
    assert "about 50%" in lines[2]
    assert "always taking step 1 of so short a run was right in 26% to 37%." in " ".join(lines[2:4])
    assert lines[lines.index("") + 1].split() == ["step", "share", "agent", "why"]
    assert "assumption" in result.stdout
    assert "and 3 more steps (--top)" in lines
    four = blame(WHOWHEN, "--run", "whowhen/algorithm/114", "--top", 4)
    assert "and 1 more step (--top)" in four.stdout.splitlines()


@pytest.mark.slow
def test_blame_without_a_name_every_run_is_one_line() -> None:
    result = blame(WHOWHEN)
    lines = result.stdout.splitlines()
    assert len(lines) == 1 + 93 + 2
    assert lines[1].split() == ["decided", "0", "69%", "Excel_Expert", "whowhen/algorithm/1"]
    assert sum(line.startswith("undecided ") for line in lines) == 48


@pytest.mark.parametrize("columns", [80, 45, 20])
def test_blame_no_line_is_wider_than_the_terminal_and_names_and_paths_are_whole(tmp_path: Path, columns: int) -> None:
    paths = [f"/srv/app-{at}/releases/2024-11-0{at}/configuration/settings-production.yaml" for at in range(1, 4)]
    said = f"Let's assume that the settings are in {', '.join(paths)} as usual."
    steps: list[dict[str, Any]] = [
        {"role": "user", "content": "Where are the settings?"},
        {"role": "assistant", "content": said},
    ]
    name = "suite/a-very-long-model-name/user_task_0/important_instructions/injection_task_0/again"
    shown = blame(write(tmp_path, *steps, id=name), COLUMNS=str(columns)).stdout
    assert max(map(len, shown.splitlines())) <= max(columns, 40)
    lines = shown.splitlines()
    assert "".join(lines[: lines.index("")]).startswith(name)
    flat = "".join(shown.split())
    assert columns < 40 or all(path in flat for path in paths), shown
    if columns == 80:
        long = blame(write(tmp_path, steps[0], {**steps[1], "content": f"Assume /{'x' * 300}/the-file.yaml"})).stdout
        assert "the-file.yaml" in "".join(long.split())


def test_blame_a_successful_run_is_said_not_to_be_marked_as_failed(tmp_path: Path) -> None:
    path = write(tmp_path, {"role": "assistant", "content": "We assume 7."}, labels={"success": True})
    assert "not failed: the run is marked as a success" in blame(path).stdout


def test_blame_hostile_texts_stay_on_their_line(tmp_path: Path) -> None:
    steps = [{"role": "assistant", "content": HOSTILE, "agent": HOSTILE[:500]}, {"role": "tool", "content": "\ud800"}]
    result = blame(write(tmp_path, *steps, id="\x1b]0;title\x07" + "x" * 500))
    assert result.exit_code == 0, result.output
    assert not {"\x1b", "\x07", "\u202e"} & set(result.stdout)
    assert max(map(len, result.stdout.splitlines())) <= 80


def test_blame_an_unknown_run_lists_what_there_is() -> None:
    result = blame(WHOWHEN, "--run", "nope")
    assert result.exit_code == 2
    assert "whowhen/algorithm/1, " in result.output
    assert "and 88 more" in result.output


@pytest.mark.parametrize("command", ["blame", "score", "eval"])
def test_blame_slips_in_labels_and_ids_are_told_once(tmp_path: Path, command: str) -> None:
    path = tmp_path / "runs.jsonl"
    run = {"steps": [{"role": "assistant", "content": "ok"}], "labels": {"sucess": True, "success": True}}
    ids = ["a", "b", "c"] if command == "eval" else ["a", "a", "b"]
    path.write_text("".join(json.dumps(run | {"id": id}) + "\n" for id in ids))
    result = CliRunner().invoke(main, [command, str(path)])
    slip = f"warning: {path}: labels.sucess is not read; success is (run a and 2 others)"
    again = f"warning: {path}: the id 'a' comes again; the run is called 'a#2' (run a#2)"
    said = [line for line in result.stderr.splitlines() if line.startswith("warning:")]
    assert said == ([slip] if command == "eval" else [slip, again])


def test_blame_where_step_1_is_as_likely_the_overview_says_so(tmp_path: Path) -> None:
    said = ("I look at page a.", "I look at page b.", "The museum has tariffs for families and pupils too.")
    run = {"goal": "What does it cost?", "steps": [{"role": "assistant", "content": text} for text in said]}
    path = tmp_path / "runs.jsonl"
    path.write_text("".join(json.dumps({"id": name} | run) + "\n" for name in "ab"), encoding="utf-8")
    lines = blame(path).stdout.splitlines()
    assert lines[1].split()[:4] == ["undecided", "2", "or", "1"]
    assert "step 1 is as likely" in lines[-1]
    assert "step 1 is as likely" in " ".join(blame(path, "--run", "a").stdout.split())
