"""The work behind ``coherence guard rollback``, ``propose``, ``approve`` and ``decline``.

A process of this command owns no configuration: it writes what a person wants into the trail, for a process that does.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from coherence.cli.guard_views import changes, known_agent, patch_in_words, print_changes
from coherence.cli.target import guard_store, opened
from coherence.core.files import open_input
from coherence.core.readings import one_line
from coherence.guard.adapter import read_config, unpatched
from coherence.guard.bounds import merged
from coherence.guard.collaborators import ADAPTER, check_methods
from coherence.guard.error_counts import describe
from coherence.guard.guard import Guard
from coherence.guard.ledger import PatchRecord, ledger
from coherence.guard.proposals import checked_patch
from coherence.guard.traces import newest_seq, read_decisions
from coherence.store.store import Store
from coherence.views.changes import patch_in_force

LOOK_S = 0.1
"""Seconds between two looks at whether somebody has done it."""


def roll_back(agent: str, *, store: Path | None, why: str, wait_s: float, adapter: str | None, yes: bool) -> int:
    """Have the configuration before a patch restored, or restore it by an adapter; return the exit status."""
    with opened(guard_store(store)) as kept:
        agent = known_agent(kept, agent)
        record = _in_force(kept, agent)
        owner = None if adapter is None else load_adapter(adapter)
        _report(record, agent, "goes, and this comes back:")
        print_changes(_back(agent, record, owner))
        if not yes and sys.stdin.isatty():
            click.confirm("Restore the configuration before it?", abort=True)
            if _in_force(kept, agent).number != record.number:
                return _say("another patch has taken its place meanwhile; nothing was done", done=False)
        with Guard(store=kept, config_adapter=owner) as guard:
            guard.rollback(agent, why)
            if owner is not None:  # a restore that failed is tried again
                _waited(kept, agent, record.number, wait_s, _has_gone)
        record = _waited(kept, agent, record.number, 0.0 if owner is not None else wait_s, _has_gone)
        return _report_rollback(kept, agent, record, owner is not None)


def _in_force(kept: Store, agent: str) -> PatchRecord:
    """Return the patch on trial, else the confirmed one."""
    try:
        return patch_in_force(kept, agent)
    except LookupError as error:
        raise click.UsageError(one_line(str(error.args[0]))) from error


def _records(kept: Store, agent: str) -> list[PatchRecord]:
    return ledger(read_decisions(kept, agent, -1))


def _has_gone(record: PatchRecord) -> bool:
    return record.outcome in ("rolled back", "not applied")


def _back(agent: str, record: PatchRecord, owner: Any) -> list[tuple[str, str, str]]:
    """Return what restoring changes: by the adapter's word, else by what the trail says."""
    before = record.backup or {}
    if owner is not None:
        try:
            now = read_config(owner, agent)
            return changes(now, unpatched(now, record.patch, before))
        except Exception as error:  # a stranger's adapter; restoring may work all the same
            click.echo(one_line(f"warning: get_config failed: {describe(error)}"), err=True)
    patched = merged(before, record.patch)
    return changes(patched, unpatched(patched, record.patch, before))


def _waited(kept: Store, agent: str, number: int, wait_s: float, done: Callable[[PatchRecord], bool]) -> PatchRecord:
    """Return a patch once something is so, or the time is up."""
    until = time.monotonic() + wait_s
    seen, record = -1, _records(kept, agent)[number - 1]
    while not done(record) and time.monotonic() < until:
        time.sleep(LOOK_S)
        # the ledger is read anew only when the trail has grown
        if (newest := newest_seq(kept, agent)) != seen:
            seen, record = newest, _records(kept, agent)[number - 1]
    return record


def _report_rollback(kept: Store, agent: str, record: PatchRecord, here: bool) -> int:
    if _has_gone(record):
        return _say("done: the configuration before the patch is in force", done=True)
    if record.outcome == "restore failed":
        failed = [one.decision for one in read_decisions(kept, agent, -1) if one.decision.kind == "restore_failed"]
        return _say(f"not restored: {failed[-1].why}; it is tried again as long as an adapter runs", done=False)
    if here or record.outcome == "restoring":
        return _say("not done yet: a process has begun to restore it, see `coherence guard status`", done=False)
    return _not_taken_up()


def approve_patch(agent: str, *, store: Path | None, why: str, wait_s: float) -> int:
    """Have the patch that waits put on trial; return the exit status."""
    with opened(guard_store(store)) as kept:
        agent = known_agent(kept, agent)
        record = _waiting(kept, agent)
        _report(record, agent, "is approved")
        with Guard(store=kept) as guard:
            if not guard.approve(agent, why, record.proposed_seq):
                return _say("it waits no more; nothing was done", done=False)
        record = _waited(kept, agent, record.number, wait_s, _was_taken_up)
    return _report_trial(record)


def propose_patch(agent: str, patch: str, *, store: Path | None, why: str, wait_s: float) -> int:
    """Have a person's own patch put on trial; return the exit status."""
    wanted = load_patch(patch)
    with opened(guard_store(store)) as kept:
        agent = known_agent(kept, agent)
        with Guard(store=kept) as guard:
            if not guard.propose(agent, wanted, why):
                return _say("a patch is on trial, or approved, already; nothing was done", done=False)
        record = next(record for record in reversed(_records(kept, agent)) if record.patch == wanted)
        _report(record, agent, "is to go on trial")
        record = _waited(kept, agent, record.number, wait_s, _was_taken_up)
    return _report_trial(record)


def load_patch(text: str) -> dict[str, Any]:
    """Return the patch that a JSON text or ``@FILE`` holds; a bad one becomes a usage error."""
    try:
        if text.startswith("@"):
            with open_input(text[1:]) as file:
                text = file.read().decode()
        found = json.loads(text)
    except OSError as error:
        raise click.BadParameter(one_line(f"{text[1:]}: {error.strerror or error}"), param_hint="PATCH") from error
    except (ValueError, RecursionError) as error:
        raise click.BadParameter(one_line(f"no JSON: {error}"), param_hint="PATCH") from error
    if not isinstance(found, dict):
        raise click.BadParameter("must be a JSON object, or @ and the name of a file with one", param_hint="PATCH")
    try:
        return checked_patch(found)
    except ValueError as error:
        raise click.BadParameter(one_line(str(error)), param_hint="PATCH") from error


def _report_trial(record: PatchRecord) -> int:
    if record.outcome == "waiting" and record.approved_at is not None:
        return _not_taken_up()
    if record.served_at is not None:
        return _say("done: it is on trial" if record.outcome == "on trial" else f"done: {record.outcome}", done=True)
    return _say(f"{record.outcome}: {record.why or 'see `coherence guard status`'}", done=False)


def _was_taken_up(record: PatchRecord) -> bool:
    """Return whether an approved patch is on trial, or will not be."""
    if record.outcome == "waiting":
        return record.approved_at is None
    return record.outcome != "applying"


def decline_patch(agent: str, *, store: Path | None, why: str) -> int:
    """Refuse the patch that waits; return the exit status."""
    with opened(guard_store(store)) as kept:
        agent = known_agent(kept, agent)
        record = _waiting(kept, agent)
        with Guard(store=kept) as guard:
            if not guard.decline(agent, why, record.proposed_seq):
                return _say("it waits no more; nothing was done", done=False)
        _report(record, agent, "is declined")
    return 0


def _waiting(kept: Store, agent: str) -> PatchRecord:
    for record in reversed(_records(kept, agent)):
        if record.outcome == "waiting":
            return record
    raise click.UsageError(one_line(f"no patch of {agent!r} waits"))


def _report(record: PatchRecord, agent: str, what: str) -> None:
    words = patch_in_words(record.patch, record.backup)
    sys.stdout.write(one_line(f"patch {record.number} of {agent} ({words}) {what}") + "\n")
    sys.stdout.flush()


def _not_taken_up() -> int:
    return _say(
        "nobody has taken it up yet: it is done as soon as a guard with an adapter runs",
        done=False,
    )


def _say(text: str, *, done: bool) -> int:
    click.echo(one_line(text), err=not done)
    return 0 if done else 1


def load_adapter(name: str) -> Any:
    """Return the adapter that ``MODULE:NAME`` means; a bad one becomes a usage error."""
    module, colon, path = name.partition(":")
    if not (module and colon and path):
        raise click.BadParameter(f"{name!r} is not MODULE:NAME", param_hint="--adapter")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())  # as `python -m` has it
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
        if isinstance(found, type) or not _is_adapter(found):
            found = found()
    except (Exception, SystemExit) as error:  # a stranger's module
        raise click.BadParameter(one_line(f"{name}: {describe(error)}"), param_hint="--adapter") from error
    try:
        check_methods(name, found, ADAPTER)
    except TypeError as error:
        raise click.BadParameter(one_line(str(error)), param_hint="--adapter") from error
    return found


def _is_adapter(value: object) -> bool:
    return all(callable(getattr(value, method, None)) for method in ADAPTER)
