"""The facade: how it is made, what it shows, and that nothing inside it reaches the host as an exception."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from coherence import Monitor, Store
from coherence.core.decisions import Decision, Mode
from coherence.core.events import Fault, Ticked
from coherence.monitor.monitor import Durability
from coherence.providers import HashingEmbedder


def monitor(**options: Any) -> Monitor:
    return Monitor(**{"resume": True, "embedder": HashingEmbedder(32), **options})


def test_vitals_without_an_embedder_it_measures_with_the_shipped_model() -> None:
    with Monitor(agent="research", goal="find papers on coral bleaching", config={"timeout_s": 60.0}) as m:
        m.tool_call("Search", {"query": "coral bleaching 2016"})
        m.tool_result("Hughes et al., Global warming and recurrent mass bleaching of corals")
        assert m.decide().kind == "continue"
        assert m.latest is not None and m.latest.errors == ()
        assert m.store is None
        assert 0.0 <= (m.vitals["goal_coherence"] or -1.0) <= 1.0


BAD: list[tuple[str, str, dict[str, Any]]] = [
    ("agent of None", "agent", {"agent": None}),
    ("empty agent", "agent", {"agent": " "}),
    ("empty goal", "goal", {"goal": ""}),
    ("store of an int", "store", {"store": 5}),
    ("unknown durability", "durability", {"durability": "paranoid"}),
    ("budget of a number", "budget", {"budget": 5}),
    ("embedder of a text", r"embedder: a name .*'hashing' .* HashingEmbedder\(\)", {"embedder": "hashing"}),
    ("embedder class", "embedder", {"embedder": HashingEmbedder}),
    ("unknown setting", "config.*windows", {"config": {"windows": 5}}),
    ("weights of no name", "weights must be .*'default' or 'classic', not 'clasic'", {"config": {"weights": "clasic"}}),
    ("unknown extractor", "'orders'; known: dates, emails", {"config": {"grounding": {"extractors": ["orders"]}}}),
    ("unknown metric", "metric is called", {"config": {"metrics": ["telepathy"]}}),
    ("unknown source", "source", {"source": "rumour"}),
    ("metrics of an int", "metrics", {"metrics": 5}),
    ("metric without a name", "metric", {"metrics": [object()]}),
    ("two metrics of one name", "goal_drift", {"config": {"metrics": ["goal_drift"]}}),
    ("dangers of an int", "dangers must be a list", {"dangers": 5}),
    ("danger of a text", "dangers must hold rows of the class Danger, not 'rm'", {"dangers": ["rm"]}),
    ("strict of an int", "strict", {"strict": 1}),
    ("parent of an int", "parent", {"parent": 5}),
]


@pytest.mark.parametrize(("field", "options"), [row[1:] for row in BAD], ids=[row[0] for row in BAD])
@pytest.mark.parametrize("kept", [False, True], ids=["in memory", "in a store"])
def test_monitor_a_bad_argument_is_refused_by_name_and_leaves_nothing_behind(
    tmp_path: Path, field: str, options: dict[str, Any], kept: bool
) -> None:
    threads = set(threading.enumerate())
    path = {"store": tmp_path / "s.db"} if kept else {}
    with pytest.raises((TypeError, ValueError), match=field):
        monitor(**{**path, **options})
    assert {thread for thread in set(threading.enumerate()) - threads if thread.name == "coherence-clock"} == set()
    if (tmp_path / "s.db").exists():
        with Store(tmp_path / "s.db") as store:
            assert store.sessions() == []


@pytest.mark.parametrize("durability", ["batched", "full"])
def test_monitor_a_store_is_shared_and_stays_open(tmp_path: Path, durability: Durability) -> None:
    with Store(tmp_path / "s.db") as store:
        with monitor(store=store, durability=durability) as m:
            m.message("assistant", "hello")
            assert m.store is store
        assert not store.closed
        assert store.count_events() == 2
        m.close()  # again: nothing happens
    with monitor(store=str(tmp_path / "s.db")) as m:
        own = m.store
    assert own is not None and own.closed


@pytest.mark.slow
def test_feedback_without_a_store_the_last_ten_thousand_events_are_kept() -> None:
    m = monitor(config={"tick": "manual"})
    for number in range(10_100):
        m.feedback(0.0, text=str(number))
    kept = m.events()
    assert len(kept) == 10_000
    assert [kept[0].seq, kept[-1].seq] == [10_100, 101]
    assert [record.seq for record in m.events(3)] == [10_100, 10_099, 10_098]
    assert m.events(0) == m.events(-1) == []


def test_history_deciding_again_changes_nothing() -> None:
    m = monitor(goal="fix the login", config={"tick": "manual"})
    m.tool_call("Bash")
    m.tool_result("ImportError", error=True)
    first = m.decide()
    before = (m.events(), m._worker.pipeline.snapshot(), m.history())
    assert all(m.decide() is first for _ in range(5))
    assert asyncio.run(m.adecide()) is first
    assert (m.events(), m._worker.pipeline.snapshot(), m.history()) == before
    assert first.seq == 4  # goal, call, result, tick


@pytest.mark.slow
def test_baselines_learn_with_each_action_and_never_with_a_tick() -> None:
    def life(ticks: int) -> tuple[Any, int]:
        m = monitor(goal="fix the login", config={"tick": "manual"})
        for number in range(8):
            m.message("assistant", f"reading file {number}, maybe")
            m.tool_call("Read", {"path": str(number)})
            m.tool_result(f"line {number}")
            m.usage(tokens_in=100 + number, cost_usd=0.01)
            for tick in range(ticks):
                # a user's word or a judgement is no action of the agent; each makes decide() tick again
                if tick:
                    m.feedback(0.1)
                m.decide()
        with m._worker.settled() as pipeline:
            kept = {n: (b.mean, b.variance, b.count) for n, b in pipeline.appraiser.mood.baselines.items()}
        return kept, sum(type(record.event) is Ticked for record in m.events())

    once, few = life(1)
    often, many = life(100)
    assert (few, many) == (8, 800)
    assert once == often
    assert once["error_rate"][2] == 8  # one sample a result


def test_vitals_what_is_shown_is_in_range_and_newest_first() -> None:
    m = monitor(goal="fix the login", config={"timeout_s": 60.0})  # so that each step is measured
    for number in range(300):
        m.tool_result(f"line {number}", error=number % 3 == 0)
    m.decide()
    newest = m.history(20)
    assert len(newest) == 20
    assert [reading.tick_seq for reading in newest] == sorted((r.tick_seq for r in newest), reverse=True)
    assert newest[0] is m.latest
    assert len(m.history()) == 256
    assert 0.0 <= m.pressure <= 1.0
    assert isinstance(m.mode, Mode)
    assert m.vitals.keys() == {
        "uncertainty",
        "drift",
        "goal_coherence",
        "error_rate",
        "token_usage",
        "cost",
        "repetition",
        "context_exhaustion",
    }
    assert m.vitals["context_exhaustion"] is None  # nobody told the size of the window
    assert (m.counters.calls, m.counters.errors) == (300, 100)


@pytest.mark.parametrize("embedder", [False, HashingEmbedder(32)], ids=["none", "without a scale"])
def test_latest_explain_says_that_no_meanings_are_compared(embedder: Any) -> None:
    m = Monitor(embedder=embedder, goal="fix the login", config={"tick": "manual"}, budget={"calls": 1})
    for _ in range(2):
        m.tool_call("Bash", {"command": "pytest"})
        m.tool_result("boom", error=True)
    m.decide()
    assert m.latest is not None
    first, *others = m.latest.explain().split("\n")
    assert "; scale events-5, which compares no meanings (no embedder, or none that a scale was fitted for)" in first
    assert "  policy (a budget, a refused call or a rule of your own) asks for red" in others


def test_a_closed_monitor_answers_but_takes_nothing(tmp_path: Path) -> None:
    m = monitor(store=tmp_path / "s.db", strict=True)
    m.tool_result("ok")
    decision = m.decide()
    m.close()
    m.close()
    m.flush()
    assert m.decide() == decision
    assert m.check("Bash").kind == "warn"  # it cannot be judged any more
    assert m.check("Bash", {"command": "rm -rf build"}).kind == "block"
    assert m.history() and m.vitals and m.pressure >= 0
    with pytest.raises(ValueError, match="monitor of agent 'main' is closed"):
        m.message("assistant", "more")
    calm = monitor()
    calm.close()
    calm.message("assistant", "more")
    assert calm.events() == []


class Misbehaving:
    """An own metric whose compute is given."""

    inverted = True

    def __init__(self, compute: Callable[[], Any], name: str = "bad") -> None:
        self._compute = compute
        self.name = name

    def compute(self) -> Any:
        return self._compute()


def raising(error: BaseException) -> Callable[[], Any]:
    def act() -> Any:
        raise error

    return act


@pytest.mark.slow
@pytest.mark.parametrize(
    "error", [RuntimeError("broken"), ValueError("\ud800"), KeyError(), SystemExit(3), KeyboardInterrupt()], ids=repr
)
def test_a_metric_that_raises_is_an_entry_in_errors(tmp_path: Path, error: BaseException) -> None:
    check_misbehaviour(tmp_path, raising(error))


def test_a_metric_that_hangs_is_an_entry_in_errors(tmp_path: Path) -> None:
    forever = threading.Event()
    started = time.monotonic()
    check_misbehaviour(tmp_path, lambda: forever.wait(60))
    assert time.monotonic() - started < 50  # it was not waited for
    forever.set()


def check_misbehaviour(tmp_path: Path, compute: Callable[[], Any]) -> None:
    options: dict[str, Any] = {"config": {"timeout_s": 0.3}, "metrics": [Misbehaving(compute)], "goal": "fix it"}
    with monitor(store=tmp_path / "s.db", durability="full", **options) as m:
        for number in range(3):
            m.tool_call("Bash")
            m.tool_result(f"line {number}")
            assert isinstance(m.decide(), Decision)
        assert m.latest is not None
        assert m.latest.metrics["bad"] is None
        assert any("bad" in error.source for error in m.latest.errors)
        assert m.latest.metrics["error_rate"] == 0.0  # the others are measured
        seen = m.decide()
    with Store(tmp_path / "s.db") as store:
        assert store.verify() == []
    with monitor(store=tmp_path / "s.db", **options) as m:
        assert m.decide() == seen


def test_monitor_a_metric_with_a_name_that_cannot_be_written_is_refused_before_a_session_begins(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="surrogates not allowed"):
        monitor(store=tmp_path / "s.db", metrics=[Misbehaving(lambda: 0.5, "bad\ud800")])
    with Store(tmp_path / "s.db") as store:
        assert store.sessions() == []


@pytest.mark.parametrize("value", ["1", "true"])
def test_fault_switched_off_it_makes_no_file_and_does_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    monkeypatch.setenv("COHERENCE_DISABLED", value)
    with monitor(goal="fix it", store=tmp_path / "s.db", durability="full", config={"tick": 0.01}) as m:
        call = m.tool_call("Bash", {"command": "ls"})
        assert isinstance(call, str) and call
        m.tool_result("ok", call=call)
        for act in (m.goal, m.correction, m.memory, m.compaction):
            act("text")
        m.message("user", "hi")
        m.usage(tokens_in=1)
        m.feedback(1.0)
        m.outcome(True)
        m.fault("hook", "x")
        assert m.decide() == m.check("Bash") == asyncio.run(m.adecide()) == Decision(seq=0, kind="continue")
        assert m.events() == [] and m.history() == [] and m.latest is None
        assert (m.pressure, m.mode, m.counters.calls or 0) == (0.0, "observe", 0)
        m.flush()
    assert list(tmp_path.iterdir()) == []


SECRET = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
TOLD: list[Callable[[Monitor], object]] = [
    lambda m: m.goal(f"log in with {SECRET}"),
    lambda m: m.message("user", f"use {SECRET}"),
    lambda m: m.message("assistant", f"I use {SECRET}"),
    lambda m: m.tool_call("Bash", {"command": f"curl -H 'Authorization: token {SECRET}'", SECRET: [SECRET]}),
    lambda m: m.tool_call("Bash", SECRET),
    lambda m: m.tool_result(f"token={SECRET}", error=True),
    lambda m: m.tool_result("x" * 99_990 + " " + SECRET + "y" * 200_000),  # cut in the middle of it
    lambda m: m.tool_call("Write", {"content": "x" * 99_970 + " " + SECRET + " " + "y" * 200_000}),
    lambda m: m.memory(f"the token is {SECRET}", id="t"),
    lambda m: m.correction(f"no, {SECRET}"),
    lambda m: m.compaction(f"used {SECRET}"),
    lambda m: m.feedback(text=SECRET),
    lambda m: m.outcome(text=SECRET),
    lambda m: m.fault("hook", RuntimeError(f"no access with {SECRET}")),
    lambda m: m.check("Bash", {"command": SECRET}),
    lambda m: m.message(SECRET, "a role"),  # type: ignore[arg-type]  # a fault that shows the value
]


@pytest.mark.parametrize("redact", [True, False])
def test_result_a_secret_never_reaches_the_file_a_reading_or_a_decision(tmp_path: Path, redact: bool) -> None:
    path = tmp_path / "s.db"
    m = monitor(goal=f"with {SECRET}", store=path, durability="full", config={"redact": redact, "tick": "event"})
    shown: list[object] = []
    for tell in TOLD:
        tell(m)
        for _ in range(3):
            m.tool_result(f"again {SECRET}", error=True)
        shown += [m.decide(), m.latest, m.result]
    m._worker.pipeline.snapshot()
    held = path.read_bytes() + Path(f"{path}-wal").read_bytes() + repr((shown, m.events())).encode()
    m.close()
    held += path.read_bytes()
    part = SECRET[:20].encode()
    assert (part in held) is not redact
    # What quotes an exception or a bad argument is cut, and is therefore redacted in any case.
    told = [record.event for record in m.events() if not isinstance(record.event, Fault)]
    assert ("[redacted:github-token]" in repr(told)) is redact


def test_monitor_the_same_goal_is_not_set_again(tmp_path: Path) -> None:
    for _ in range(2):
        with monitor(goal=f" fix it with {SECRET}\n", store=tmp_path / "s.db") as m:
            m.message("user", "and then the docs")
    with monitor(goal="something else", store=tmp_path / "s.db") as m:
        m.flush()
        assert m.store is not None
        assert [row.kind for row in m.store.events(1)] == ["goal", "message", "message", "goal"]
