"""``coherence guard verify``: a check that a trail is as it was written and explains each rollback."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from coherence.guard.verifier import VerifiedAgent

MAX_SHOWN = 20
"""Faults of an agent that are printed; --json has 1,000."""


@click.command()
@click.argument("agent", required=False)
@click.option(
    "--store",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The store's file. Default: $COHERENCE_STORE, else guard.db here, else the user's data folder.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def verify(agent: str | None, store: Path | None, as_json: bool) -> None:
    """Check that nothing was changed, and derive each rollback again from the calls before it.

    Exit status: 0 the store is as it was written and each rollback was derived or made by hand, 1 something is wrong
    or cannot be known, 2 bad usage or an unusable file.
    """
    import msgspec

    from coherence.cli.documents import print_document
    from coherence.cli.guard_views import known_agent
    from coherence.cli.target import guard_store, opened
    from coherence.core.readings import one_line
    from coherence.guard.verifier import verify_guards

    with opened(guard_store(store)) as kept:
        found = verify_guards(kept, None if agent is None else known_agent(kept, agent))
    if as_json:
        print_document("coherence.guard.verify/1", msgspec.to_builtins(found))
    else:
        for fault in found.chain:
            sys.stdout.write(one_line(fault.message) + "\n")
        for each in found.agents:
            _print(each)
        sys.stdout.write(f"{found.verdict.upper()}, newest hash {found.head}\n")
    raise SystemExit(found.verdict != "verified")


def _print(found: VerifiedAgent) -> None:
    from coherence.cli.columns import print_columns
    from coherence.core.readings import excerpt, one_line

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
    for fault in found.faults[:MAX_SHOWN]:
        sys.stdout.write(one_line(f"  wrong, entry {fault.seq}: {fault.what}") + "\n")
    if found.fault_count > MAX_SHOWN:
        sys.stdout.write(f"  wrong: {found.fault_count - MAX_SHOWN} more\n")
    for each in found.rollbacks:
        if each.derived == "unknown":
            sys.stdout.write(one_line(f"  unknown, entry {each.seq}: {each.why_not}") + "\n")
