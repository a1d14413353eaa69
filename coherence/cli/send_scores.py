"""``coherence send-scores``: index and decision of recorded sessions, sent to the platform that keeps their traces."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from coherence.cli.logs import newest_measurement
from coherence.cli.options import TARGET, store_option
from coherence.cli.target import find_sessions, opened, split_target
from coherence.core.errors import CoherenceError
from coherence.core.readings import number_of, one_line

if TYPE_CHECKING:
    from coherence.export.scores import PlatformName, Standing, Target
    from coherence.store.rows import SessionRow
    from coherence.store.store import Store

WAIT_S = 300.0
"""Seconds that the command waits for a platform that does not answer."""


@click.command("send-scores")
@TARGET
@store_option
@click.option(
    "--to",
    "platform",
    type=click.Choice(("langfuse", "phoenix", "langsmith")),
    required=True,
    help="Platform; its address and keys come from the environment, as its own client reads them.",
)
@click.option(
    "--as",
    "kind",
    type=click.Choice(("trace", "session")),
    help="What the name of a session is there. Default: an id of a trace by its form, else a session.",
)
@click.option("--project", metavar="UUID", help="Id of the project in LangSmith, which newer servers want.")
def send_scores(
    target: str | None, store: Path | None, platform: PlatformName, kind: Target | None, project: str | None
) -> None:
    """Send the newest index and decision of recorded sessions as scores to a platform.

    FILE is a store; AGENT means its newest session; without a target, all sessions are sent. Sent again, they replace
    those that were sent before. Exit status: 0 ok, 1 something could not be sent, 2 bad usage.
    """
    from coherence.export.scores import PlatformError, ScoreSink, platform_of

    path, name = split_target(target, store)
    try:
        with opened(path) as kept:
            rows = find_sessions(kept, name)
            sink = ScoreSink(platform_of(platform, project=project), target=kind, most_waiting=max(2 * len(rows), 1))
            known = sent = 0
            for row in rows:
                standing = _standing(kept, row)
                if standing is None:
                    continue
                known += 1
                try:
                    sent += sink.send(standing) > 0
                except PlatformError as error:
                    click.echo(f"passed over: {one_line(str(error))}", err=True)
    except (CoherenceError, ValueError) as error:  # an address that is none
        raise click.UsageError(one_line(str(error))) from error
    sink.close(WAIT_S)
    counts = sink.counts()
    click.echo(f"{number_of(sent, 'session')} to {platform}: {number_of(counts.sent, 'request')} accepted")
    lost = counts.failed + counts.dropped + counts.waiting
    if lost:
        click.echo(f"error: {number_of(lost, 'request')} could not be sent", err=True)
    raise SystemExit(1 if lost or sent < known else 0)


def _standing(store: Store, row: SessionRow) -> Standing | None:
    """Return the newest measurement of a session, ``None`` if there is none."""
    from coherence.export.scores import Standing

    newest = newest_measurement(store, row)
    if newest is None or newest.reading is None or newest.decision is None:
        return None
    why = json.loads(newest.decision.data).get("message") or ""
    index, band = newest.reading.coherence_index, newest.reading.band
    return Standing(row.agent, row.session, row.started, index, band or "unknown", newest.decision.kind, why)
