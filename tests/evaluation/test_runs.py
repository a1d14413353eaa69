"""Labelled runs are read, or refused with file and line."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from coherence.core.errors import TranscriptError
from coherence.evaluation.runs import read_labelled
from evaluation.builders import run

DATA = Path(__file__).resolve().parents[1] / "data" / "runs"
STEPS = [{"role": "user", "content": "Pay"}, {"role": "assistant", "content": "Paid"}]


def line(**fields: Any) -> str:
    return json.dumps({"id": "one", "steps": STEPS, **fields})


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def test_length_labels_task_source_and_split_stand_beside_the_run(tmp_path: Path) -> None:
    labels = {"success": False, "error_step": 1, "error_agent": "Bob", "anything": "else"}
    full = line(labels=labels, group="t1", source="bank", split="dev", meta={"suite": "rent", "model": "m"})
    (one,) = read_labelled([write(tmp_path / "runs.jsonl", full)])
    assert (one.id, one.group, one.source, one.part, one.split) == ("one", "t1", "bank", "bank/rent", "dev")
    assert (one.labels.success, one.labels.error_step, one.labels.error_agent) == (False, 1, "Bob")
    assert one.length == 2
    assert one.target == "step"


def test_attack_what_is_not_said_has_a_default(tmp_path: Path) -> None:
    (one,) = read_labelled([write(tmp_path / "bank.v1.jsonl", line())])
    assert (one.source, one.part, one.split, one.target, one.attack) == ("bank", "bank", None, None, None)
    assert one.group == "run one"  # each run is a task of its own


def test_read_labelled_several_files_plain_and_gzipped(tmp_path: Path) -> None:
    (tmp_path / "b.jsonl.gz").write_bytes(gzip.compress(line(id="two").encode()))
    runs = read_labelled([write(tmp_path / "a.jsonl", line()), tmp_path / "b.jsonl.gz"])
    assert [one.id for one in runs] == ["one", "two"]
    assert runs[1].place == f"{tmp_path / 'b.jsonl.gz'}:1"


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (line(id="x", labels={"success": "yes"}), "Expected `bool | null`, got `str` - at `$.labels.success`"),
        (line(id="x", labels={"error_step": 2}), "labels.error_step is 2, expected a step from 0 to 1"),
        (line(id="x", labels={"hijack_step": -1}), "labels.hijack_step is -1, expected"),
        (line(id="x", labels=[]), "$.labels"),
        (line(), "the id 'one' is that of"),
        (line(id="x", steps=[]), "a run without steps"),
        ("{", "not JSON"),
        ("[1]", "expected runs"),
    ],
)
def test_read_labelled_a_bad_line_is_named(tmp_path: Path, bad: str, message: str) -> None:
    path = write(tmp_path / "runs.jsonl", line(), bad, line(id="last"))
    with pytest.raises(TranscriptError) as caught:
        read_labelled([path])
    assert str(caught.value).startswith(f"{path}:2: ")
    assert message in str(caught.value)


def test_read_labelled_an_empty_file_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "empty.jsonl").touch()
    with pytest.raises(TranscriptError, match="the file is empty"):
        read_labelled([tmp_path / "empty.jsonl"])


def test_how_a_run_stood_to_an_attack() -> None:
    assert run("a", hijacked=True, attacked=True).attack == "hijacked"
    assert run("a", hijacked=False, attacked=True, injection_step=1).attack == "resisted"
    assert run("a", hijacked=False, attacked=True, injection_step=None).attack == "unseen"
    assert run("a", hijacked=False, attacked=True).attack == "resisted"  # nobody says where it was shown
    assert run("a", hijacked=False, attacked=False).attack == "untouched"
    assert run("a", success=True).attack is None


@pytest.mark.slow
def test_the_recorded_runs_are_read() -> None:
    runs = read_labelled(sorted(DATA.glob("*.gz")))
    assert len(runs) == 849 + 907 + 231 + 140 + 15 + 538 + 200
    kinds = [one.attack for one in runs if one.target == "hijack" and one.source == "agentdojo"]
    # 183 hijacked and 217 without attack, as their README says; 136 of the 200 others were shown the injection.
    assert [kinds.count(kind) for kind in ("hijacked", "resisted", "unseen", "untouched")] == [183, 136, 64, 217]
    assert [one.target for one in runs].count("step") == 93
    assert {one.split for one in runs} == {"dev"}
