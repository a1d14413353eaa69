"""The work behind ``coherence guard status``, ``history``, ``patches``, ``export`` and ``verify``: what they print."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from coherence.cli.columns import cut, print_columns, print_pairs
from coherence.cli.documents import print_document
from coherence.cli.outputs import check_outputs
from coherence.cli.target import NAMED, guard_store, opened
from coherence.core.readings import excerpt, number_of, one_line, span
from coherence.guard.bounds import merged
from coherence.guard.export import export_trail
from coherence.guard.ledger import PatchRecord, ledger, read_history
from coherence.guard.patch_events import Decision
from coherence.guard.status import GuardedAgent, OpenTrial, local_time, state_of
from coherence.guard.traces import Past, guarded_agents, read_decisions
from coherence.guard.verifier import VerifiedAgent, verify_guards
from coherence.monitor.arguments import check_name
from coherence.store.store import Store

NAME = 40
"""Characters of an agent's name and of a patch that a table shows."""

TEXT = 600
"""Characters of a sentence that are shown; ``--json`` gives all of it."""

MAX_FAULTS = 20
"""Faults of an agent that are printed; ``--json`` has 1,000."""

NOT_SET = "not set"

MAX_CHANGES = 200
"""Keys that are shown of a patch."""

VALUE = 60
"""Characters of a value that are shown; ``--json`` gives all of it."""

_MISSING = object()


def known_agent(store: Store, agent: str) -> str:
    """Return an agent's name as the store has it; one that is not there becomes a usage error."""
    name = check_name("agent", agent) if agent.strip() else ""
    known = guarded_agents(store)
    if name not in known:
        more = f" and {len(known) - NAMED} more" if len(known) > NAMED else ""
        named = ", ".join(excerpt(one, NAME) for one in known[:NAMED]) + more if known else "none"
        called = f"no agent under guard is called {excerpt(agent, NAME)!r}; known: {named}"
        raise click.UsageError(one_line(f"{store.path}: {called}"))
    return name


def print_status(agent: str | None, *, store: Path | None, as_json: bool) -> int:
    """Print how agents stand; return the exit status."""
    with opened(guard_store(store)) as kept:
        names = guarded_agents(kept) if agent is None else [known_agent(kept, agent)]
        if not names:
            raise click.UsageError(one_line(f"{kept.path}: no agents under guard; name another store with --store"))
        states = [state_of(kept, name, time.time()) for name in names]
    if as_json:
        print_document("coherence.guard.status/1", msgspec.to_builtins(states if agent is None else states[0]))
    elif agent is not None:
        _print_agent(states[0])
    else:
        _print_agents(states)
    return int(any(state.failing for state in states))


def show_history(agent: str, *, store: Path | None, limit: int, slices: bool, as_json: bool) -> None:
    """Print the newest decisions on an agent's patches, oldest first."""
    with opened(guard_store(store)) as kept:
        agent = known_agent(kept, agent)
        found = read_history(kept, agent, limit, slices=slices)
    if as_json:
        print_document("coherence.guard.history/1", msgspec.to_builtins(found))
    elif found:
        _print_history(found)
    else:
        sys.stdout.write("no decisions\n")


def show_patches(agent: str, number: int | None, *, store: Path | None, as_json: bool) -> None:
    """Print an agent's patches, or one with all that is known of it."""
    with opened(guard_store(store)) as kept:
        agent = known_agent(kept, agent)
        records = ledger(read_decisions(kept, agent, -1))
        if number is not None and number > len(records):
            raise click.UsageError(one_line(f"{kept.path}: {agent!r} has no patch {number}, but {len(records)}"))
    if as_json:
        plain = msgspec.to_builtins(records if number is None else records[number - 1])
        print_document("coherence.guard.patches/1", plain)
    elif number is not None:
        _print_patch(agent, records[number - 1])
    elif records:
        _print_patches(records)
    else:
        sys.stdout.write("no patches\n")


def export_to(agent: str, file: Path | None, store: Path | None) -> None:
    """Write an agent's calls and decisions as JSON lines to a new file, or to standard output."""
    path = guard_store(store)
    check_outputs({"FILE": file}, [], store=path)
    with opened(path) as kept:
        agent = known_agent(kept, agent)
        if file is not None:
            try:
                count = export_trail(kept, agent, file)
            except FileExistsError as error:
                raise click.UsageError(one_line(str(error))) from error
            except (OSError, ValueError) as error:
                raise click.UsageError(one_line(f"{file}: cannot be written: {error}")) from error
            click.echo(one_line(f"{number_of(count, 'line')}: {file}"), err=True)
            return
        try:
            export_trail(kept, agent, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise click.UsageError(f"standard output: cannot be written: {error.strerror or error}") from error


def print_verdict(agent: str | None, *, store: Path | None, as_json: bool) -> int:
    """Check the chain and derive each rollback again; return the exit status."""
    with opened(guard_store(store)) as kept:
        found = verify_guards(kept, None if agent is None else known_agent(kept, agent))
    if as_json:
        print_document("coherence.guard.verify/1", msgspec.to_builtins(found))
    else:
        for fault in found.chain:
            sys.stdout.write(one_line(fault.message) + "\n")
        for each in found.agents:
            _print_verified(each)
        sys.stdout.write(f"{found.verdict.upper()}, newest hash {found.head}\n")
    return int(found.verdict != "verified")


def _print_verified(found: VerifiedAgent) -> None:
    counts = f"{found.calls} calls, {found.patches} patches, {found.confirmed} confirmed"
    line = f"{excerpt(found.agent, 40)}: {counts}, {found.steps} steps derived, {found.unknown} unknown"
    sys.stdout.write(one_line(line) + "\n")
    if found.rollbacks:
        rows = [("  patch", "at", "metric", "evidence", "failed", "derived")]
        rows += [
            (
                f"  {each.patch}",
                str(each.seq),
                excerpt(each.metric or "-", 11),
                "-" if each.evidence is None or each.limit is None else f"{each.evidence:.3g}/{each.limit:.3g}",
                f"{each.failures} of {each.calls}",
                each.derived,
            )
            for each in found.rollbacks
        ]
        print_columns(rows)
    for fault in found.faults[:MAX_FAULTS]:
        sys.stdout.write(one_line(f"  wrong, entry {fault.seq}: {fault.what}") + "\n")
    if found.fault_count > MAX_FAULTS:
        sys.stdout.write(f"  wrong: {found.fault_count - MAX_FAULTS} more\n")
    for each in found.rollbacks:
        if each.derived == "unknown":
            sys.stdout.write(one_line(f"  unknown, entry {each.seq}: {each.why_not}") + "\n")


def _print_agents(states: Sequence[GuardedAgent]) -> None:
    """Print an agent a line, and below the table what is wrong."""
    table = [("agent", "calls", "in row", "success", "latency", "index", "phase", "patch")]
    for state in states:
        newest, record = state.newest, state.patch or state.waiting or state.confirmed
        index = "-" if newest.index_mean is None else f"{newest.index_mean:.2f}"
        numbers = (f"{state.calls:,}", str(state.failures_in_row), _share(newest.success_rate))
        patch = "-" if record is None else cut(_words(record), 10 * NAME)
        table.append((cut(state.agent, NAME), *numbers, latency(newest.latency_mean_s), index, _stage(state), patch))
    print_columns(table, texts=1)
    print_pairs([(f"! {cut(state.agent, NAME)}", excerpt(state.trouble, TEXT)) for state in states if state.trouble])


def _stage(state: GuardedAgent) -> str:
    """Return the phase; of an agent at rest, what its patch does."""
    if state.phase != "idle" or (state.waiting is None and state.confirmed is None):
        return state.phase
    return "confirmed" if state.waiting is None else "waiting"


def _share(rate: float | None) -> str:
    return "-" if rate is None else f"{rate:.1%}"


def _words(record: PatchRecord) -> str:
    return patch_in_words(record.patch, record.backup)


def _print_agent(state: GuardedAgent) -> None:
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
        words = f"waits ({state.waiting.why}): {_words(state.waiting)}"
        at = state.waiting.approved_at
        approved = "" if at is None else f"; approved {local_time(at)}, nobody has taken it up yet"
        rows.append((f"patch {state.waiting.number}", f"{words}{approved}"))
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
    parts = [f"success {_share(newest.success_rate)}", f"latency {latency(newest.latency_mean_s)}"]
    parts += [f"index {newest.index_mean:.2f}"] if newest.index_mean is not None else []
    parts += [f"cost {newest.cost:g}"] if newest.cost is not None else []
    return ", ".join(parts)


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


def _print_history(past: Sequence[Past]) -> None:
    """Print a decision a line, oldest first."""
    digits = max(len(str(one.seq)) for one in past)
    _print_pairs([(f"{one.seq:>{digits}}  {local_time(one.at)}", decision_in_words(one.decision)) for one in past])


def _print_patches(records: Sequence[PatchRecord]) -> None:
    """Print a patch a line, oldest first."""
    table = [("patch", "asked", "outcome", "metric", "evidence", "change", "why")]
    for one in records:
        known = (str(one.number), local_time(one.asked_at), one.outcome, one.metric or "-", _evidence(one))
        table.append((*known, cut(_words(one), TEXT), cut(one.why or "-", TEXT)))
    print_columns(table, texts=2)


def _evidence(record: PatchRecord) -> str:
    """Return what was found, and what it had to reach."""
    if record.evidence is None:
        return "-"
    return f"{record.evidence:.3g}" + ("" if record.limit is None else f" of {record.limit:.3g}")


def _print_patch(agent: str, record: PatchRecord) -> None:
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
    print_pairs([(name, excerpt(text, TEXT)) for name, text in rows])


def changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Return what differs between two configurations: dotted path, value before, value after.

    Examples
    --------
    >>> changes({"retry": {"limit": 3}, "model": "a"}, {"retry": {"limit": 4}, "model": "a", "top": 1})
    [('retry.limit', '3', '4'), ('top', 'not set', '1')]
    """
    found: list[tuple[str, str, str]] = []
    _compare("", before, after, found)
    return found[:MAX_CHANGES]


def _compare(path: str, before: Mapping[str, Any], after: Mapping[str, Any], found: list[tuple[str, str, str]]) -> None:
    for key in dict.fromkeys([*before, *after]):
        old, new = before.get(key, _MISSING), after.get(key, _MISSING)
        if isinstance(old, Mapping) and isinstance(new, Mapping):
            _compare(f"{path}{key}.", old, new, found)
        elif type(old) is not type(new) or old != new:
            name = excerpt(path + key, VALUE)
            found.append((name if name.strip() else json.dumps(path + key), _value(old), _value(new)))


def _value(value: object) -> str:
    return NOT_SET if value is _MISSING else excerpt(json.dumps(value, ensure_ascii=False), VALUE)


def patch_in_words(patch: Mapping[str, Any], backup: Mapping[str, Any] | None) -> str:
    """Return what a patch changes; ``backup`` is the configuration before it, if that is known.

    Examples
    --------
    >>> patch_in_words({"retries": 2}, {"retries": 1}), patch_in_words({"retries": 2}, None)
    ('retries 1 -> 2', 'retries 2')
    """
    if backup is not None:
        return ", ".join(f"{key} {old} -> {new}" for key, old, new in changes(backup, merged(backup, patch)))
    return ", ".join(f"{key} {new}" for key, _, new in changes({}, merged({}, patch)))


def decision_in_words(step: Decision) -> str:
    """Return a decision as a sentence; one of a kind that is not known here keeps its name.

    Examples
    --------
    >>> decision_in_words(Decision("restore_failed", why="the adapter returned False"))
    'the configuration before the patch could not be restored: the adapter returned False'
    """
    if step.kind == "asked":
        return f"{number_of(step.failures, 'failure')} called for a patch: the strategy is asked"
    if step.kind == "proposed":
        return f"a patch waits: {patch_in_words(step.patch, None)} ({step.why})"
    if step.kind == "trial_wanted":
        return f"a person wants a patch on trial: {patch_in_words(step.patch, None)} ({step.why})"
    if step.kind == "accepted":
        return f"a patch goes on trial for {step.share:.0%} of calls: {patch_in_words(step.patch, step.backup)}"
    if step.kind == "ending" and step.pause:
        return f"{'a slice ends' if step.why == 'slice' else step.why}: the configuration before is to be restored"
    if step.kind == "decayed":
        return f"{step.why}; " + ("the configuration before is to be restored" if step.returns else "an alert only")
    head = _HEADS.get(step.kind, step.kind.replace("_", " "))
    return f"{head}: {step.why}" if step.why else head


_HEADS: dict[str, str] = {
    "declined": "no patch",
    "approval_wanted": "a person approves the patch that waits",
    "approved": "the approved patch is taken up",
    "withheld": "the approved patch does not go on trial",
    "refused": "a person declines the patch that waits",
    "rollback_wanted": "a person wants the patch rolled back",
    "serving": "the patch is in force",
    "not_applied": "the patch could not be applied",
    "ending": "the patch is to be rolled back",
    "retrying": "restoring the configuration before the patch is tried again",
    "restore_failed": "the configuration before the patch could not be restored",
    "restored": "the configuration before the patch is in force again",
    "late": "the configuration was changed by a process whose claim had been taken over",
    "resuming": "the patch is to be applied again",
    "confirmed": "the patch stays",
    "dropped": "the patch is given up while it is not in force",
}


def latency(seconds: float | None) -> str:
    """Return a duration of calls.

    Examples
    --------
    >>> [latency(seconds) for seconds in (None, 4e-6, 0.0123, 2.5)]
    ['-', '4 µs', '12.3 ms', '2.5 s']
    """
    if seconds is None:
        return "-"
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    return f"{seconds * 1000:.3g} ms" if seconds < 1 else f"{seconds:,.1f} s"
