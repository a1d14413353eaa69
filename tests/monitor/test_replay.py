"""A session computed again from its recording alone."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from coherence import Fleet, Monitor, MonitorConfig, Store
from coherence.core.readings import FrozenDict, MetricInput
from coherence.core.scale import Curve, Scale, scale_text
from coherence.monitor.replay import Replay, ReplayError, Report
from coherence.monitor.session_header import read_beginning
from coherence.providers import HashingEmbedder
from coherence.providers.readers import read_transcripts
from coherence.report.score import score_transcript
from coherence.sensor.embedding_cache import EmbeddingCache
from coherence.state.reducer import AgentState
from coherence.store.rows import SessionRow
from coherence.testing import CountingEmbedder

ROOT = Path(__file__).resolve().parents[2]
WORDS = "the agent reads a file and runs tests again because one failed with an import error in line parser".split()


def live(m: Monitor, steps: int, seed: int = 0) -> None:
    """Let an agent do all that can happen to it."""
    rng = random.Random(seed)

    def words(n: int) -> str:
        return " ".join(rng.choices(WORDS, k=n))

    for at in range(steps):
        call = m.tool_call(rng.choice(("Bash", "Read", "Edit")), {"command": words(3), "at": at})
        m.tool_result(words(rng.randint(1, 60)), error=rng.random() < 0.25, call=call, duration_s=rng.random())
        if rng.random() < 0.7:
            m.message("assistant", words(20), logprobs=[-rng.random() * 4 for _ in range(10)])
        if rng.random() < 0.7:
            m.usage(tokens_in=rng.randrange(5_000), tokens_out=100, cost_usd=rng.choice((None, 0.01)), model="m")
        if rng.random() < 0.1:
            m.message("user", words(6))
        if rng.random() < 0.1:
            m.memory(words(5), id=rng.choice((None, "a", "b")), removed=rng.random() < 0.2)
        if rng.random() < 0.05:
            m.compaction(words(10))
        if rng.random() < 0.1:
            m.correction(words(5))
        if rng.random() < 0.2:
            m.check("Bash", {"command": "rm -rf build"})
        if rng.random() < 0.2:
            m.decide()
    m.feedback(0.5)
    m.outcome(True)


def session(store: Store, agent: str = "main") -> SessionRow:
    found = store.session(agent)
    assert found is not None
    return found


def check(path: Path, agent: str = "main") -> Report:
    with Store(path) as store:
        return Replay(store, session(store, agent)).report()


@pytest.mark.parametrize(
    ("tick", "steps"),
    [
        ("step", 25),
        ("event", 40),
        pytest.param("step", 60, marks=pytest.mark.slow),
        pytest.param("manual", 120, marks=pytest.mark.slow),
    ],
)
def test_report_a_session_replays_bit_for_bit(tmp_path: Path, tick: str, steps: int) -> None:
    path = tmp_path / "runs.db"
    config = {"tick": tick, "context_tokens": 10_000, "prices": {"m": {"input": 1, "output": 2}}}
    budget = {"tokens": 400_000, "cost_usd": 3.0, "calls": 200, "wall_s": 1e6}
    with Monitor(
        resume=True, store=path, goal="fix the parser", embedder=HashingEmbedder(), config=config, budget=budget
    ) as m:
        live(m, steps)
    report = check(path)
    assert report.ticks > 40
    assert (report.equal, report.kept, report.differences) == (report.ticks, 0, [])


@pytest.mark.slow
def test_two_thousand_events_replay_in_another_process_folder_and_hash_seed(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with Monitor(
        resume=True, store=path, goal="fix the parser", embedder=HashingEmbedder(), budget={"tokens": 10**6}
    ) as m:
        live(m, 520, seed=3)
    with Store(path) as store:
        assert store.count_events() >= 2_000
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    result = subprocess.run(
        [Path(sys.executable).with_name("coherence"), "replay", path, "--check"],
        cwd=folder,
        env={**os.environ, "PYTHONHASHSEED": "4711", "HOME": str(folder)},
        capture_output=True,
        text=True,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    assert "are equal bit for bit" in result.stdout


def test_read_beginning_a_setting_of_an_earlier_version_does_not_keep_a_store_from_being_read(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    Monitor(store=path, embedder=False).close()
    with Store(path) as store:
        row = session(store)
    older = msgspec.structs.replace(row, config=row.config.replace('"rules":', '"learn_pressure":false,"rules":'))
    assert older != row and read_beginning(older) == read_beginning(row)


def test_nothing_is_embedded_in_a_replay_and_the_vectors_are_those_of_the_recording(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    embedder = CountingEmbedder(HashingEmbedder())
    embedder.fingerprint = "counting-1"  # type: ignore[attr-defined]  # without one, nothing is recorded
    with Monitor(resume=True, store=path, goal="fix the parser", embedder=embedder) as m:
        live(m, 30)
        m.decide()
    made = len(embedder.texts)
    assert made > 30
    assert check(path).equal == check(path).ticks
    with Monitor(resume=True, store=path, embedder=embedder) as m:
        m.decide()  # nor when the agent goes on
    assert len(embedder.texts) == made


def test_report_an_embedder_without_a_fingerprint_is_replayed_from_its_readings(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with Monitor(resume=True, store=path, goal="fix the parser", embedder=CountingEmbedder(HashingEmbedder())) as m:
        live(m, 30)
    with Store(path) as store:
        assert store.vectors("", []) == {}
    report = check(path)
    assert report.equal == report.ticks


class Moody:
    """A stranger's metric that never gives the same value twice, and sometimes fails."""

    name = "moody"
    inverted = True

    def __init__(self) -> None:
        self.rng = random.Random(1)

    def compute(self, data: MetricInput) -> float | None:
        value = self.rng.random()
        if value < 0.1:
            raise RuntimeError("not today")
        return None if value < 0.2 else value


class Clock:
    """A stranger's scalar."""

    name = "clock"
    inverted = False
    calls = 0

    def compute(self) -> float:
        self.calls += 1
        return self.calls % 100 / 100


@pytest.mark.slow
def test_foreign_metrics_are_replayed_with_their_recorded_values(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with Monitor(
        resume=True, store=path, goal="fix the parser", embedder=HashingEmbedder(), metrics=[Moody(), Clock()]
    ) as m:
        live(m, 60)
        values = {reading.metrics["moody"] for reading in m.history()}
    assert len(values) > 10
    report = check(path)
    assert report.equal == report.ticks
    assert 0 < report.kept < report.ticks / 2  # where it failed


@pytest.mark.slow
def test_agents_under_one_budget_replay_with_what_the_others_had_spent(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with Fleet(store=path, budget={"calls": 60, "cost_usd": 1.0}, embedder=HashingEmbedder()) as fleet:
        for turn in range(40):
            for name in ("a", "b"):
                agent = fleet.agent(name, **({"goal": "fix it"} if turn == 0 else {}))
                agent.check("Bash", {"command": "ls"})
                agent.tool_call("Bash", {"command": f"ls {turn}"})
                agent.tool_result(f"{turn} files")
                agent.usage(cost_usd=0.02)
                agent.decide()
    for name in ("a", "b"):
        report = check(path, name)
        assert report.equal == report.ticks
    with Store(path) as store:
        kinds = {step.computed.decision.kind for step in Replay(store, session(store, "a")).steps() if step.computed}
    assert "block" in kinds  # the shared budget was used up by both


@pytest.mark.slow
def test_replay_every_shipped_run_replays_bit_for_bit(tmp_path: Path) -> None:
    cache = EmbeddingCache(HashingEmbedder())
    with Store(tmp_path / "runs.db") as store:
        for file in sorted((ROOT / "examples" / "data").glob("*.jsonl.gz")):
            for transcript in read_transcripts(file):
                score_transcript(transcript, embedder=cache, store=store)
        rows = store.sessions()
        assert len(rows) == 12
        for row in rows:
            report = Replay(store, row).report()
            assert report.equal == report.ticks > 0, report


def test_recorded_a_difference_is_named(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with Monitor(resume=True, store=path, goal="fix the parser", embedder=HashingEmbedder()) as m:
        live(m, 10)
    with Store(path) as store:
        replay = Replay(store, session(store))
        replay.pipeline.appraiser.config = MonitorConfig.load({"pressure": {"shift": 2.0}}).pressure
        report = replay.report()
    assert report.equal < report.ticks
    assert report.differences[0].what.startswith("appraisal.")
    assert report.differences[0].recorded != report.differences[0].computed


def test_recorded_another_configuration_shows_what_would_have_been(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with Monitor(resume=True, store=path, goal="fix the parser", embedder=HashingEmbedder()) as m:
        for _ in range(3):
            m.tool_call("Bash", {"command": "pytest"})
            m.tool_result("boom", error=True)
    strict = MonitorConfig.load({"pressure": {"guide": 0.1, "warn": 0.25, "block": 0.35}})
    with Store(path) as store:
        steps = [step for step in Replay(store, session(store), strict).steps() if step.computed]
    was = [step.recorded.decision.kind for step in steps if step.recorded]
    now = [step.computed.decision.kind for step in steps if step.computed]
    # one, two, three errors in a row: pressure 0.2, 0.3, 0.4
    assert was == ["continue", "guide", "warn"]  # the third time, because the same call failed three times
    assert now == ["guide", "warn", "block"]


@pytest.mark.slow
def test_replay_a_session_whose_beginning_was_removed_is_replayed_from_its_snapshot_or_refused(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    with Monitor(resume=True, store=path, goal="fix the parser", embedder=HashingEmbedder()) as m:
        live(m, 300)
    with Store(path) as store:
        last = store.last_seq(session(store).id)
        snapshot = store.snapshot(session(store).id, until=last - 1)
        assert snapshot is not None
        store.prune(max_events=last - snapshot[0] + 5)
        with pytest.raises(ReplayError, match="were removed by retention"):
            Replay(store, session(store), MonitorConfig())  # another configuration needs the beginning


@pytest.mark.slow
def test_report_what_retention_left_replays_from_the_newest_state(tmp_path: Path) -> None:
    path = tmp_path / "runs.db"
    config = {"retention": {"max_events": 100}}
    with Monitor(resume=True, store=path, goal="fix the parser", embedder=HashingEmbedder(), config=config) as m:
        live(m, 60)
    m = Monitor(resume=True, store=path, embedder=HashingEmbedder(), config=config)
    live(m, 20, seed=1)
    m.flush()
    report = check(path)
    m.close()
    assert report.equal == report.ticks > 20


def test_report_an_event_that_cannot_be_folded_is_recorded_with_a_fault_and_replays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(self: AgentState, observed: object) -> None:
        raise RuntimeError("a fault of this package")

    monkeypatch.setattr(AgentState, "on_correction", broken)
    path = tmp_path / "runs.db"
    with Monitor(resume=True, store=path, goal="fix the parser", embedder=HashingEmbedder()) as m:
        m.message("assistant", "reading the parser")
        m.correction("not that one")
        m.message("assistant", "reading the other one")
        assert m.decide().kind == "continue"
    with Store(path) as store:
        kinds = [event.kind for event in store.events(session(store).id)]
    # the tick of the second message comes before the fault that the first fold has left behind, or after it
    assert sorted(kinds) == ["correction", "fault", "goal", "message", "message", "tick", "tick", "tick"]
    report = check(path)
    assert report.equal == report.ticks == 3


def test_replay_a_session_with_a_scale_of_its_own_needs_the_recording_alone(tmp_path: Path) -> None:
    embedder = HashingEmbedder(64)
    curves: FrozenDict[str, Curve] = FrozenDict({"goal_drift.change": Curve((0.0, 0.1), (0.0, 6.0))})
    path = tmp_path / "scale.json"
    path.write_text(scale_text(Scale(name="mine-1", embedder=embedder.fingerprint, base=-4.0, curves=curves)))
    with Monitor(store=tmp_path / "s.db", embedder=embedder, goal="Fix the login", config={"scale": path}) as m:
        live(m, 12)
        reading = m.latest
        assert reading is not None and reading.scale == "mine-1" and set(reading.losses) <= {"goal_drift.change"}
    with Monitor(store=tmp_path / "s.db", embedder=embedder, resume=True, config={"scale": path}) as m:
        assert m.session == "1", "the same settings: the session goes on"
    with Monitor(store=tmp_path / "s.db", embedder=embedder, resume=True) as m:
        assert m.session == "1~2", "another scale is another setting"
    path.unlink()
    with Store(tmp_path / "s.db") as store:
        row = store.session("main", "1")
        assert row is not None
        report = Replay(store, row).report()
    assert report.ticks > 12 and report.equal == report.ticks and report.kept == 0
