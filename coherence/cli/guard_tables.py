"""Agents under guard, their decisions and their patches, as people read them."""

from __future__ import annotations

import json
import sys
import textwrap
from collections.abc import Sequence

from coherence.cli.columns import aligned, cut, print_columns, width
from coherence.cli.guard_state import GuardedAgent, OpenTrial
from coherence.cli.guard_words import changes, decision_in_words, latency, local_time, patch_in_words
from coherence.core.readings import excerpt, number_of, one_line, span
from coherence.guard.bounds import merged
from coherence.guard.ledger import PatchRecord
from coherence.guard.traces import Past

NAME, LEAST = 40, 12
"""Characters of an agent's name and of a patch that a table shows at most, and at least."""

TEXT = 600
"""Characters of a sentence that are shown; ``--json`` gives all of it."""


def print_agents(states: Sequence[GuardedAgent]) -> None:
    """Print an agent a line, no longer than a terminal is wide, and below it what is wrong."""
    numbers = [("calls", "in row", "success", "latency", "index", "phase"), *(_numbers(state) for state in states)]
    room = width() - max(map(len, aligned(numbers)))
    longest = max(len(excerpt(state.agent, NAME)) for state in states)
    name = max(min(longest, NAME, room - LEAST - 4), LEAST)
    names = ["agent", *(cut(state.agent, name) for state in states)]
    room -= max(map(len, names)) + 4
    patches = ["patch", *(cut(_patch(state), max(min(room, 10 * NAME), LEAST)) for state in states)]
    head, *lines = aligned([(name, *row, patch) for name, row, patch in zip(names, numbers, patches, strict=True)])
    sys.stdout.write(head + "\n")
    for line, state in zip(lines, states, strict=True):
        sys.stdout.write(line + "\n")
        if state.trouble:
            _print_wrapped("    ! ", state.trouble)


def _numbers(state: GuardedAgent) -> tuple[str, ...]:
    newest = state.newest
    return (
        f"{state.calls:,}",
        str(state.failures_in_row),
        _share(newest.success_rate),
        latency(newest.latency_mean_s),
        "-" if newest.index_mean is None else f"{newest.index_mean:.2f}",
        _stage(state),
    )


def _stage(state: GuardedAgent) -> str:
    """Return the phase; of an agent at rest, what its patch does."""
    if state.phase != "idle" or (state.waiting is None and state.confirmed is None):
        return state.phase
    return "confirmed" if state.waiting is None else "waiting"


def _share(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.1%}"


def _patch(state: GuardedAgent) -> str:
    """Return the patch on trial, else the one that waits, else the confirmed one."""
    record = state.patch or state.waiting or state.confirmed
    return "-" if record is None else _words(record)


def _words(record: PatchRecord) -> str:
    return patch_in_words(record.patch, record.backup)


def print_agent(state: GuardedAgent) -> None:
    """Print everything about how one agent stands."""
    newest, needed = state.newest, state.thresholds
    rows = [
        ("agent", state.agent),
        ("calls", f"{state.calls:,}, {state.failures:,} failed; failures in a row now: {state.failures_in_row}"),
        (f"newest {newest.calls}", _summary(state)),
        (
            "failures",
            f"{state.counted} of the last {needed.window_h:g} h count, a patch is asked for at {needed.failures} (by "
            "default: what the running guard overrides is not known here)",
        ),
        ("cool-down", f"{span(state.cooldown_left_s)} left" if state.cooldown_left_s else "none"),
        ("phase", _phase(state)),
    ]
    trial = state.trial
    if state.patch is not None:
        rows.append((f"patch {state.patch.number}", f"{state.patch.outcome}: {_words(state.patch)}"))
    in_force = state.patch or state.confirmed
    if trial is not None:
        rows.append(("served", _served(trial)))
    if state.confirmed is not None:
        since = f" since {local_time(state.confirmed.promoted_at)}" if state.confirmed.promoted_at is not None else ""
        rows.append((f"patch {state.confirmed.number}", f"confirmed{since}, watched: {_words(state.confirmed)}"))
    if in_force is not None and in_force.rollback_asked_at is not None:
        rows.append(("asked for", f"rolling back patch {in_force.number}, {local_time(in_force.rollback_asked_at)}"))
    if state.waiting is not None:
        told = f"waits ({state.waiting.why}): {_words(state.waiting)}"
        at = state.waiting.approved_at
        approved = "" if at is None else f"; approved {local_time(at)}, nobody has taken it up yet"
        rows.append((f"patch {state.waiting.number}", f"{told}{approved}"))
    if state.trouble:
        rows.append(("trouble", state.trouble))
    _print_pairs(rows)
    if trial is not None and trial.evidence:
        _print_evidence(trial)
    if state.watch:
        table = [("watch", "level", "alert at", "calls", "beyond", "expected at most")]
        table += [
            (one.metric, str(one.level), str(one.limit), str(one.calls), str(one.beyond), f"{one.expected:.1%}")
            for one in state.watch
        ]
        sys.stdout.write("\n")
        print_columns(table)


def _summary(state: GuardedAgent) -> str:
    newest = state.newest
    told = [f"success {_share(newest.success_rate)}", f"latency {latency(newest.latency_mean_s)}"]
    told += [f"index {newest.index_mean:.2f}"] if newest.index_mean is not None else []
    told += [f"cost {newest.cost:g}"] if newest.cost is not None else []
    return ", ".join(told)


def _phase(state: GuardedAgent) -> str:
    """Return the phase, and what comes next."""
    waited = "" if state.phase_s is None else f", for {span(state.phase_s)}"
    trial = state.trial
    if state.phase == "idle":
        waits = "a patch waits for a person or an adapter" if state.waiting is not None else ""
        return f"idle: {waits or 'the next patch is asked for when enough calls fail'}"
    if state.phase in ("serving", "paused") and trial is not None:
        now = "the patch serves" if state.phase == "serving" else "the configuration before the patch serves"
        left = "" if trial.slice_left is None else f" for the next {number_of(trial.slice_left, 'call')} at most"
        return f"{state.phase}: {now}{left}"
    if state.retry_in_s is not None:
        return f"{state.phase}: the next attempt is due {'in ' + span(state.retry_in_s) if state.retry_in_s else 'now'}"
    return f"{state.phase}: a process is at it{waited}"


def _served(trial: OpenTrial) -> str:
    row = f"{number_of(trial.failures_in_row, 'failure')} in a row"
    if trial.roll_back_at_row is not None:
        row += f", it is rolled back at {trial.roll_back_at_row}"
    end = f"the verdict comes at {trial.most_calls} at the latest"
    return f"{trial.served:,} of the {number_of(trial.calls, 'call')} since it was accepted; {end}; {row}"


def _print_evidence(trial: OpenTrial) -> None:
    table = [("evidence", "calls", "beyond", "harm", "roll back at", "no harm", "promote at")]
    table += [
        (
            one.metric,
            str(one.calls),
            str(one.beyond),
            f"{one.harm:.3g}",
            f"{one.roll_back_at:.3g}",
            f"{one.safe:.3g}",
            f"{one.promote_at:.3g}",
        )
        for one in trial.evidence
    ]
    sys.stdout.write("\n")
    print_columns(table)


def print_history(past: Sequence[Past]) -> None:
    """Print a decision a line, oldest first."""
    digits = max(len(str(one.seq)) for one in past)
    for one in past:
        _print_wrapped(f"{one.seq:>{digits}}  {local_time(one.at)}  ", decision_in_words(one.decision))


def print_patches(records: Sequence[PatchRecord]) -> None:
    """Print a patch a line, oldest first, and below it what it changes and why it came to that."""
    table = [("patch", "asked", "outcome", "metric", "evidence")]
    table += [
        (str(one.number), local_time(one.asked_at), one.outcome, one.metric or "-", _evidence(one)) for one in records
    ]
    head, *lines = aligned(table)
    sys.stdout.write(head + "\n")
    for line, record in zip(lines, records, strict=True):
        sys.stdout.write(line + "\n")
        _print_wrapped("    ", _words(record))
        if record.why:
            _print_wrapped("    ", record.why)


def _evidence(record: PatchRecord) -> str:
    """Return what was found, and what it had to reach."""
    if record.evidence is None:
        return "-"
    return f"{record.evidence:.3g}" + ("" if record.limit is None else f" of {record.limit:.3g}")


def print_patch(agent: str, record: PatchRecord) -> None:
    """Print everything that is known of one patch."""
    rows = [("patch", f"{record.number} of {agent}"), ("outcome", record.outcome), ("why", record.why or "-")]
    if record.metric is not None or record.evidence is not None:
        limit = "" if record.limit is None else f", {record.limit:.3g} was needed"
        evidence = [] if record.evidence is None else [f"evidence {record.evidence:.3g}{limit}"]
        decided = ([] if record.metric is None else [record.metric]) + evidence
        rows.append(("got worse in" if record.outcome == "got worse" else "decided by", ", ".join(decided)))
    if record.failures is not None:
        rows.append(("asked for by", number_of(record.failures, "failure")))
    if record.policy is not None and record.share is not None:
        rows.append(("trial", f"{record.policy}, on {record.share:.0%} of calls"))
    if record.restores_failed:
        rows.append(("restores", f"{number_of(record.restores_failed, 'attempt')} failed"))
    for name, at in (
        ("asked", record.asked_at),
        ("accepted", record.accepted_at),
        ("in force", record.served_at),
        ("judged", record.judged_at),
        ("promoted", record.promoted_at),
        ("got worse", record.worse_at),
        ("ended", record.ended_at if record.ended_at != record.promoted_at else None),
    ):
        if at is not None:
            rows.append((name, local_time(at)))
    _print_pairs(rows)
    before = record.backup
    if before is not None:
        sys.stdout.write("\nchanges:\n")
        print_changes(changes(before, merged(before, record.patch)))
    for name, config in (("the patch", record.patch), ("the configuration before it", before)):
        if config is not None:
            sys.stdout.write(f"\n{name}:\n")
            for line in json.dumps(config, indent=2, ensure_ascii=False).splitlines():
                sys.stdout.write(f"    {one_line(line)}\n")


def print_changes(found: Sequence[tuple[str, str, str]]) -> None:
    """Print a key a line, from what to what."""
    for key, old, new in found:
        sys.stdout.write(f"    {one_line(key)}: {one_line(old)} -> {one_line(new)}\n")


def _print_pairs(rows: Sequence[tuple[str, str]]) -> None:
    longest = max(len(name) for name, _ in rows)
    for name, text in rows:
        _print_wrapped(f"{name.ljust(longest)}  ", text)


def _print_wrapped(head: str, text: str) -> None:
    """Print a text behind its head; what does not fit on a line of the terminal goes on below itself."""
    text = excerpt(text, TEXT)
    lines = textwrap.wrap(text, max(width() - len(head), 20), break_on_hyphens=False) or [""]
    for number, line in enumerate(lines):
        sys.stdout.write(f"{head if not number else ' ' * len(head)}{line}\n")
