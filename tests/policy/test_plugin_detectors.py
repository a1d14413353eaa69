"""Somebody else's detectors: they see each event once, live through a restart, and cost no more than their findings."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from coherence import Monitor, Store, register
from coherence.core.decisions import Appraisal, Finding
from coherence.core.errors import PluginError
from coherence.core.readings import Reading
from coherence.core.registry import unregister
from coherence.detect.detector import EventDetector, Observed
from coherence.monitor.replay import Replay
from coherence.providers import HashingEmbedder
from coherence.state.reducer import AgentState
from coherence.testing import Check, checks_for


class Refunds:
    """Many refunds of one run; warns from the third on."""

    name = "refunds"

    def __init__(self) -> None:
        self.seqs: list[int] = []

    def observe(self, observed: Observed) -> None:
        if getattr(observed.event, "tool_name", "") == "refund":
            self.seqs.append(observed.seq)

    def findings(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Iterable[Finding]:
        score = min(len(self.seqs) / 6, 1.0)
        yield Finding(
            rule="refunds",
            severity="warn",
            active=score >= 0.5,
            score=score,
            threshold=0.5,
            evidence=tuple(self.seqs[-3:]),
            why=f"{len(self.seqs)} refunds" if score >= 0.5 else "",
        )

    def snapshot(self) -> Any:
        return self.seqs

    def restore(self, data: Any) -> None:
        self.seqs = list(data)


def monitor(path: Path | None, *detectors: Callable[[], Any], **options: Any) -> Monitor:
    return Monitor(resume=True, store=path, embedder=HashingEmbedder(16), detectors=detectors, **options)


def refund(m: Monitor, times: int = 1) -> None:
    for number in range(times):
        m.tool_call("refund", {"order": number})
        m.tool_result("done")


def found(m: Monitor) -> Finding | None:
    return next((finding for finding in m.decide().findings if finding.rule == "refunds"), None)


def test_findings_a_detector_of_ones_own_makes_a_monitor_warn() -> None:
    with monitor(None, Refunds) as m:
        refund(m, 2)
        assert m.decide().kind == "continue"
        refund(m)
        finding = found(m)
        assert finding is not None and (finding.score, finding.why) == (0.5, "3 refunds")  # 3 / 6
        assert m.decide().kind == "warn"
        called = [event.seq for event in m.events() if getattr(event.event, "tool_name", "") == "refund"]
        assert sorted(finding.evidence) == sorted(called)


def test_plugin_detectors_two_agents_have_a_detector_each() -> None:
    with monitor(None, Refunds) as one, monitor(None, Refunds) as other:
        refund(one, 3)
        assert one.decide().kind == "warn"
        assert other.decide().kind == "continue"


@pytest.mark.parametrize("steps", [2, 30])
def test_findings_a_detector_goes_on_after_a_restart(tmp_path: Path, steps: int) -> None:
    path = tmp_path / "s.db"
    with monitor(path, Refunds) as m:
        refund(m, 2)
        for number in range(steps):
            m.message("assistant", f"step {number}")
    with monitor(path, Refunds) as m:
        assert m.session == "1"
        refund(m)
        finding = found(m)
        assert finding is not None and finding.why == "3 refunds"


def test_a_replay_takes_what_a_detector_found_from_the_recording(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with monitor(path, Refunds) as m:
        refund(m, 4)
        assert m.decide().kind == "warn"
    with Store(path) as store:
        (row,) = store.sessions()
        report = Replay(store, row).report()
    assert report.ticks >= 4
    assert (report.equal, report.differences) == (report.ticks, [])


class Raises(Refunds):
    """Fails whenever it is shown a refund."""

    def observe(self, observed: Observed) -> None:
        raise RuntimeError("broken")


class Hangs(Refunds):
    """Never answers."""

    released = threading.Event()

    def findings(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Iterable[Finding]:
        self.released.wait(30)
        return ()


class CannotRemember(Refunds):
    """Has no snapshot."""

    def snapshot(self) -> Any:
        raise RuntimeError("no memory")


def test_a_detector_that_raises_costs_its_findings_only() -> None:
    with monitor(None, Raises) as m:
        refund(m, 3)
        assert m.decide().kind == "continue"
        assert found(m) is None
        assert m.latest is not None and "detector refunds" in {error.source for error in m.latest.errors}


def test_plugin_detectors_a_detector_that_hangs_costs_the_time_limit_and_is_left_out_afterwards() -> None:
    try:
        with monitor(None, Hangs, config={"timeout_s": 0.2, "tick": "manual"}) as m:
            for order in range(3):
                m.tool_call("refund", {"order": order})
                m.tool_result("done")
                assert m.decide().kind == "continue"
            assert m.latest is not None and "detector refunds" in {error.source for error in m.latest.errors}
    finally:
        Hangs.released.set()


def test_plugin_detectors_a_detector_without_a_snapshot_begins_anew_and_loses_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    with monitor(path, CannotRemember) as m:
        m.goal("pay what is due")
        refund(m, 3)
    with monitor(path, CannotRemember) as m:
        assert m.state.get_goals() == ["pay what is due"]
        assert m.decide().kind in ("continue", "warn")


def test_plugin_detectors_a_detector_is_found_by_name() -> None:
    register(Refunds, name="refunds", group="detectors")
    try:
        with monitor(None, config={"detectors": ["refunds"]}) as m:
            refund(m, 3)
            assert m.decide().kind == "warn"
    finally:
        unregister("refunds", "detectors")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (Refunds(), "pass its class"),
        (object, "name must be a non-empty str"),
        (type("Mute", (), {"name": "mute"}), "has no method observe"),
    ],
    ids=["an instance", "no name", "no methods"],
)
def test_plugin_detectors_what_is_no_detector_is_refused_with_what_is_missing(given: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        monitor(None, given)


@pytest.mark.parametrize("name", ["pressure", "goal_hijack", "facts"])
def test_plugin_detectors_a_name_of_the_packages_own_is_refused(name: str) -> None:
    with pytest.raises((ValueError, PluginError), match=name):
        monitor(None, type("Named", (Refunds,), {"name": name}))


class Complaints(msgspec.Struct):
    """Memory of a detector of complaints."""

    count: int = 0


class Complaining(EventDetector[Complaints]):
    """A user who complains; warns from the second time on."""

    name, data_type = "complaining", Complaints

    def on_message(self, observed: Observed) -> None:
        self.data.count += observed.event.role == "user" and "again" in observed.event.content

    def findings(self, state: Any, reading: Any, appraisal: Any) -> list[Finding]:
        score, why = min(self.data.count / 4, 1.0), f"{self.data.count} complaints"
        active = score >= 0.5
        return [
            Finding(
                rule="complaining",
                severity="warn",
                active=active,
                score=score,
                threshold=0.5,
                why=why if active else "",
            )
        ]


def test_plugin_detectors_a_detector_with_a_method_for_each_kind_of_event_goes_on_after_a_restart(
    tmp_path: Path,
) -> None:
    path = tmp_path / "s.db"
    for kind in ("continue", "warn"):
        with monitor(path, Complaining) as m:
            m.message("user", "you broke it again")
            assert m.decide().kind == kind


@pytest.mark.parametrize("check", [*checks_for(Refunds), *checks_for(Complaining)], ids=str)
def test_plugin_detectors_a_detector_passes_the_public_checks(check: Callable[[], None]) -> None:
    check()


class Forgets(Refunds):
    """Does not go on from its snapshot."""

    def observe(self, observed: Observed) -> None:
        self.seqs.append(observed.seq)

    def restore(self, data: Any) -> None:
        self.seqs = []


class Counts(Refunds):
    """Finds more each time it is asked."""

    def findings(self, state: AgentState, reading: Reading | None, appraisal: Appraisal) -> Iterable[Finding]:
        self.seqs.append(1)
        return super().findings(state, reading, appraisal)


@pytest.mark.parametrize(
    ("bad", "message"), [(Forgets, "after a restart"), (Counts, "two findings"), (Raises, "broken")]
)
def test_findings_the_public_checks_find_a_bad_detector(bad: type, message: str) -> None:
    with pytest.raises((AssertionError, RuntimeError), match=message):
        _run_all(checks_for(bad))


def _run_all(checks: Iterable[Check]) -> None:
    for check in checks:
        check()
