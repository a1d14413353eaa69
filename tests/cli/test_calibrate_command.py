"""``coherence calibrate`` as a person runs it, and a monitor with what it has written."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from coherence import Monitor
from coherence.cli import calibrate as calibrate_work
from coherence.cli.main import main
from coherence.core.registry import register, unregister
from coherence.core.scale import read_scale
from coherence.evaluation import own_runs
from coherence.evaluation.own_runs import ObservedStep
from coherence.providers import HashingEmbedder
from coherence.providers.transcript import Transcript
from coherence.sensor.embedding_cache import EmbeddingCache

RUNS, LABELS = 10, 5
WORDS = "login page test date field form user error session cookie token server reads writes checks".split()
OTHER = "recipe onion garlic oven butter flour sugar simmer plate basil".split()


def run(number: int, onset: int | None = None, **labels: Any) -> dict[str, Any]:
    """Return a run about one thing, or from a step on about another."""
    rng = random.Random(number)
    steps: list[dict[str, Any]] = []
    for at in range(26):
        words = OTHER if onset is not None and at >= onset else WORDS
        steps.append(
            {"role": "assistant", "content": f"I look at the {' '.join(rng.choices(words, k=6))} {number}.{at}"}
        )
    if onset is not None:
        labels |= {"derailed": True, "onset_step": onset}
    return {"id": f"run {number}", "goal": "Fix the login test of the user form", "steps": steps, "labels": labels}


def write(path: Path, runs: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(each) + "\n" for each in runs), "utf-8")
    return path


def calibrate(*arguments: object) -> Result:
    return CliRunner().invoke(main, ["calibrate", *map(str, arguments)])


@pytest.fixture(autouse=True, scope="module")
def observed() -> Iterator[None]:
    """Observe a run once, and be content with few: the same ones are calibrated on again and again."""
    once: dict[str, list[ObservedStep]] = {}
    observe = own_runs.observe

    def remembered(transcript: Transcript, cache: EmbeddingCache) -> list[ObservedStep]:
        key = f"{transcript.path} {transcript.id}"
        if key not in once:
            once[key] = observe(transcript, cache)
        return once[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own_runs, "observe", remembered)
        for name, number in (("RUNS_NEEDED", RUNS), ("STEPS_NEEDED", 250), ("LABELS_NEEDED", LABELS)):
            patch.setattr(own_runs, name, number)  # fewer take less time
        patch.setattr(calibrate_work, "LABELS_NEEDED", LABELS)
        yield


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("runs") / "good.jsonl", [run(number) for number in range(RUNS)])


@pytest.mark.slow
def test_calibrate_a_scale_of_unlabelled_runs_is_written_said_and_used(good: Path, tmp_path: Path) -> None:
    out = tmp_path / "scale.json"
    result = calibrate(good, "--embedder", "hashing", "--out", out)
    assert result.exit_code == 0, result.output
    scale = read_scale(out)
    assert scale.embedder == HashingEmbedder().fingerprint and scale.name.startswith("hashing-own-")
    lines = result.stdout.splitlines()
    assert lines[0].startswith("10 runs, 260 steps: 10 good, 0 off course")
    assert lines[1] == f"no label has moved the curves: that takes {LABELS} runs off course from a known step on"
    assert lines[3].split() == ["events-5", scale.name]
    assert f"({scale.name}: each run by a scale that was fitted without it)" in lines
    assert any(line.startswith("step_drift.change") for line in lines) and "calibration error" not in result.stdout
    assert result.stderr.endswith(f"scale: {out}\n")
    with Monitor(goal="Fix the login", embedder=HashingEmbedder(), config={"scale": out}) as m:
        for at in range(6):
            m.message("assistant", f"I look at the login page, part {at}.")
        m.decide()
        assert m.latest is not None and m.latest.scale == scale.name
        assert m.latest.explain().splitlines()[0].endswith(f"; scale {scale.name}, fitted on your own runs")
    for embedder in (HashingEmbedder(32), False):
        with pytest.raises(ValueError, match=f"scale '{scale.name}' was fitted with the embedder 'hashing"):
            Monitor(embedder=embedder, config={"scale": out})


@pytest.mark.slow
def test_calibrate_labels_are_used_and_what_they_are_worth_is_shown(good: Path, tmp_path: Path) -> None:
    runs = [run(100 + number, onset=13) | {"group": number // 2} for number in range(LABELS)]
    bad = write(tmp_path / "bad.jsonl", runs)
    result = calibrate(good, bad, "--embedder", "hashing", "--out", tmp_path / "scale.json")
    assert result.exit_code == 0, result.output
    lines = result.stdout.splitlines()
    assert lines[1] == "labels have moved the curves"
    before, after = next(line.split()[-2:] for line in lines if line.startswith("AUROC"))
    assert float(after) >= 0.9 > float(before)
    assert any(line.startswith("runs off course that were") and line.endswith(" of 5") for line in lines)
    assert any(line.startswith("calibration error") for line in lines)
    assert any(line.endswith("each run by a scale that was fitted without its task)") for line in lines)


def test_calibrate_a_store_is_read_as_score_reads_it(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    for number in range(2):
        with Monitor(agent="coder", goal="Fix the login", store=store, embedder=False) as m:
            m.message("assistant", "I read the test.")
            m.outcome(success=number == 0)
    result = calibrate(store, "--embedder", "hashing", "--out", tmp_path / "scale.json")
    assert result.exit_code == 2 and "error: 1 good run with 1 good step" in result.stderr


class Unnamed(HashingEmbedder):
    """An embedder that does not say which one it is."""

    def __init__(self) -> None:
        super().__init__()
        self.fingerprint = None  # type: ignore[assignment]  # wrong on purpose


def test_calibrate_what_cannot_be_done_is_said_and_nothing_is_written(good: Path, tmp_path: Path) -> None:
    out = tmp_path / "scale.json"
    few = write(tmp_path / "few.jsonl", [run(number) for number in range(3)])
    broken = tmp_path / "broken.jsonl"
    broken.write_text("{")
    register(Unnamed, group="embedders", name="unnamed")
    try:
        for arguments, says in (
            (
                (few, "--embedder", "hashing"),
                "3 good runs with 78 good steps; a scale needs at least 10 good runs and 250",
            ),
            ((good, broken, "--embedder", "hashing"), "broken.jsonl"),
            ((good, "--embedder", "unnamed"), "unnamed has no fingerprint"),
            ((good, "--embedder", "nothing"), "nothing"),
            ((good,), "Missing option '--embedder'"),
        ):
            result = calibrate(*arguments, "--out", out)
            assert result.exit_code == 2 and says in " ".join(result.stderr.split()), result.stderr
    finally:
        unregister("unnamed", group="embedders")
    assert not out.exists()
    result = calibrate(good, "--embedder", "hashing", "--out", good)
    assert result.exit_code == 2 and "would write over the input" in " ".join(result.stderr.split())
