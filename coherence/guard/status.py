"""The status of an agent under guard: from its account, or from its trail in the store alone."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from coherence.core.readings import span, times
from coherence.guard.account import Account
from coherence.guard.degradation import DecayWatch
from coherence.guard.ledger import PatchRecord, ledger
from coherence.guard.patch_state import OnTrial, Phase
from coherence.guard.patches import LEASE_S, Patching
from coherence.guard.rolling import Summary
from coherence.guard.traces import Past, read_account, read_decisions
from coherence.guard.trigger import Thresholds
from coherence.guard.verdict import MAX_CALLS, Trial
from coherence.store.store import Store

SLOW_S = 10.0
"""A claim or a wish that is older is reported."""


class Status(msgspec.Struct, frozen=True):
    """Status of an agent."""

    agent: str
    calls: int
    failures: int
    newest: Summary
    """The newest 100 calls."""
    phase: str
    patch: dict[str, Any] | None
    """The patch on trial, or the confirmed one."""
    patched_calls: int
    """Calls that the patch on trial has served and that are judged; 0 without one."""
    waiting: dict[str, Any] | None
    """The proposal that waits for a person: its ``patch``, ``why`` it is not applied, the entry that proposed it
    (``seq``), and why a person has ``approved`` it, or None."""
    trouble: str
    """Trouble in words: a restore that fails, a process that has not answered for
    10 s or longer, a request that nobody has taken up, a configuration that got worse and has not recovered. Empty =
    nothing."""


def status_of(agent: str, account: Account, at: float) -> Status:
    """Return how an agent stands at a wall time, Unix seconds."""
    patching, rolling = account.patching, account.rolling
    trial, holder, waits = patching.trial, patching.holder, patching.waiting
    waiting = None
    if waits is not None:
        waiting = {"patch": dict(waits.patch), "why": waits.why, "seq": waits.seq, "approved": waits.approved}
    return Status(
        agent=agent,
        calls=rolling.calls,
        failures=rolling.failures,
        newest=rolling.over_newest(),
        phase=patching.phase,
        patch=None if holder is None else dict(holder.patch),
        patched_calls=0 if trial is None else trial.after.calls,
        waiting=waiting,
        trouble=trouble_of(patching, msgspec.structs.replace(account.clock).read(at)) or _decay(patching),
    )


def _decay(patching: Patching) -> str:
    worse = () if patching.watching is None else patching.watching.watch.worse
    what = "the configuration" if patching.standing is None else "the confirmed patch"
    return f"{what} got worse and has not recovered: {', '.join(worse)}" if worse else ""


def trouble_of(patching: Patching, now_s: float) -> str:
    """Return in words what does not go on as it should, or an empty text."""
    if patching.phase == "restoring" and not patching.owner:
        failed, left_s = f"restore failed {times(patching.attempts)}", patching.retry_s - now_s
        if left_s > -SLOW_S:
            return f"{failed}, the next attempt is due {'in ' + span(left_s) if left_s >= 1 else 'now'}"
        return f"{failed}, the next attempt was due {span(-left_s)} ago: nobody has begun it"
    if patching.owner and (since := now_s - patching.claimed_s) >= SLOW_S:
        doing = {"asking": "asks for a patch", "reviewing": "reviews a patch", "applying": "applies a patch"}
        return f"the process that {doing.get(patching.phase, 'restores')} has not answered for {span(since)}"
    if patching.wish is not None and (since := now_s - patching.wish.at_s) >= SLOW_S:
        return f"a rollback was asked for {span(since)} ago, and nobody has begun it"
    waiting = patching.waiting
    if patching.phase != "idle" or waiting is None or waiting.approved is None:
        return ""
    since = now_s - waiting.approved_s
    return f"a patch was approved {span(since)} ago, and nobody has taken it up" if since >= SLOW_S else ""


ALERT_S = 86_400.0
"""For so long after the configuration in force got worse the exit status says so; the words stay."""


class GuardEvidence(msgspec.Struct, frozen=True):
    """Evidence of the patched calls, by one metric."""

    metric: str
    calls: int
    """Patched calls of which it is known."""
    beyond: int
    """Failures, or calls in what was the worst third."""
    harm: float
    """Evidence that it has got worse; 1 = none."""
    roll_back_at: float
    safe: float
    """Evidence that it has not, by a margin; 1 = none."""
    promote_at: float


class OpenTrial(msgspec.Struct, frozen=True):
    """The patch on trial."""

    calls: int
    """Since it was accepted."""
    served: int
    """Of these by the patch, and compared."""
    most_calls: int
    """Served calls after which there is a verdict in any case."""
    slice_left: int | None
    """Calls until the configuration may change; None = it does not."""
    failures_in_row: int
    """Of served calls."""
    roll_back_at_row: int | None
    """Failures in a row that end it; None = no number does."""
    evidence: list[GuardEvidence]
    """By metric; none for the classic rules."""


class Watched(msgspec.Struct, frozen=True):
    """State of the watch on the configuration in force, by one metric."""

    metric: str
    level: int
    """Of its chart; the alert comes at the limit."""
    limit: int
    calls: int
    """Since the level was 0."""
    beyond: int
    """Of these failures, or calls in what was the worst third."""
    expected: float
    """Share of such calls that is expected at most."""


class GuardedAgent(msgspec.Struct, frozen=True):
    """State of an agent."""

    agent: str
    calls: int
    failures: int
    failures_in_row: int
    newest: Summary
    """The newest 100 calls."""
    phase: Phase
    phase_s: float | None
    """Seconds since a process has claimed what the phase is about."""
    retry_in_s: float | None
    """Seconds until a restore that failed is tried again."""
    counted: int
    """Failures that count against the threshold."""
    thresholds: Thresholds
    """Those by default; the running guard may have others."""
    cooldown_left_s: float
    patch: PatchRecord | None
    """The patch on trial."""
    trial: OpenTrial | None
    confirmed: PatchRecord | None
    """The patch that is confirmed and in force."""
    watch: list[Watched]
    waiting: PatchRecord | None
    """The patch that waits for a person or an adapter."""
    trouble: str
    """Trouble in words, or empty."""
    failing: bool
    """True = that is a restore that failed or is overdue, or an alert of the last 24 hours."""


def state_of(store: Store, agent: str, now: float) -> GuardedAgent:
    """Return the state of an agent at a wall time, Unix seconds."""
    account, decisions = read_account(store, agent), read_decisions(store, agent, -1)
    records = ledger(decisions)
    now_s = msgspec.structs.replace(account.clock).read(now)
    patching, rolling = account.patching, account.rolling
    due = account.trigger.check(agent, rolling, {}, now_s)
    tried = _newest(records, patching.trial is not None, lambda one: one.ended_at is None and one.outcome != "waiting")
    stood = _newest(records, patching.standing is not None, lambda one: one.promoted_at is not None)
    failed = patching.phase == "restoring" and not patching.owner and patching.attempts > 0
    watching = patching.watching
    alert = next((one for one in decisions if watching is not None and one.seq == watching.told), None)
    trouble, failing = _trouble(patching, now_s, now, alert)
    return GuardedAgent(
        agent=agent,
        calls=rolling.calls,
        failures=rolling.failures,
        failures_in_row=rolling.failures_in_row,
        newest=rolling.over_newest(),
        phase=patching.phase,
        phase_s=max(now_s - patching.claimed_s, 0.0) if patching.owner else None,
        retry_in_s=max(patching.retry_s - now_s, 0.0) if failed else None,
        counted=due.failures,
        thresholds=due.thresholds,
        cooldown_left_s=due.cooldown_left_s,
        patch=tried,
        trial=None if patching.trial is None else _open_trial(account, patching.trial),
        confirmed=stood,
        watch=[] if watching is None else _watched(watching.watch),
        waiting=_newest(records, True, lambda one: one.outcome == "waiting"),
        trouble=trouble,
        failing=failing,
    )


def _newest(records: list[PatchRecord], wanted: bool, fits: Callable[[PatchRecord], bool]) -> PatchRecord | None:
    return next((one for one in reversed(records) if fits(one)), None) if wanted else None


def _open_trial(account: Account, on_trial: OnTrial) -> OpenTrial:
    trial = on_trial.trial
    switched = account.patching.phase in ("serving", "paused") and not on_trial.both and on_trial.share < 1.0
    begun = trial.fails_from_first
    classic = on_trial.policy == "classic"
    return OpenTrial(
        calls=on_trial.calls,
        served=on_trial.after.calls,
        most_calls=MAX_CALLS if classic else trial.most_calls,
        slice_left=on_trial.slice - on_trial.calls % on_trial.slice if switched else None,
        failures_in_row=on_trial.after.failures_in_a_row if classic else trial.run,
        roll_back_at_row=None if classic else trial.first_run if begun else trial.later_run,
        evidence=[] if classic else _evidence(trial),
    )


def _evidence(trial: Trial) -> list[GuardEvidence]:
    return [
        GuardEvidence(
            metric, test.seen_beyond + test.seen_within, test.seen_beyond, test.harm, test.limit, test.safe,
            1.0 / trial.alpha,
        )
        for metric, test in trial.tests.items()
    ]  # fmt: skip


def _watched(watch: DecayWatch) -> list[Watched]:
    return [
        Watched(metric, chart.level, chart.limit, chart.since, chart.since_beyond, chart.expected)
        for metric, chart in watch.charts.items()
        if chart.limit
    ]


def _trouble(patching: Patching, now_s: float, now: float, alert: Past | None) -> tuple[str, bool]:
    """Return what is wrong, and whether it is a restore or a new alert."""
    gone = bool(patching.owner) and now_s > patching.claimed_s + LEASE_S
    failing = patching.phase == "restoring" and (patching.attempts > 0 or gone)
    if found := trouble_of(patching, now_s):
        return found, failing
    if failing:
        return f"restore failed {times(patching.attempts)}, and is tried again now", True
    if alert is not None and patching.phase != "restoring":
        over = "" if patching.watching is not None and patching.watching.watch.worse else ", recovered since"
        return f"{alert.why} ({local_time(alert.at)}{over})", alert.at > now - ALERT_S
    return "", False


def local_time(at: float) -> str:
    """Return a wall time as clocks here show it, and how far they are from UTC."""
    try:
        return datetime.fromtimestamp(at).astimezone().strftime("%Y-%m-%d %H:%M:%S%z")
    except (OverflowError, ValueError, OSError):
        return str(at)
