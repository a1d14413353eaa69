"""Work of ``coherence purge``: an agent, a session, or both are wiped for ever."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from coherence.cli.target import opened, split_target
from coherence.core.errors import CoherenceError
from coherence.core.readings import number_of, one_line

if TYPE_CHECKING:
    from coherence.store.purge import PurgeReport

_KNOWN = (
    "SELECT agent, session FROM sessions UNION SELECT agent, session FROM lesson_origins "
    "WHERE agent = coalesce(:agent, agent)"
)


def purge_content(agent: str | None, *, session: str | None, store: Path | None, yes: bool) -> None:
    """Wipe what is kept of an agent or a session."""
    if agent is None and session is None:
        raise click.UsageError("name what is wiped: --agent, --session or both")
    path = split_target(None, store)[0]
    what = " of ".join(f"{kind} {name}" for kind, name in (("session", session), ("agent", agent)) if name is not None)
    with opened(path) as kept:
        if not _is_known(kept.fetch(_KNOWN, {"agent": agent}), agent, session):
            raise click.UsageError(one_line(f"there is no {what}"))
        if not yes:
            count = number_of(sum(session in (None, row.session) for row in kept.sessions(agent=agent)), "session")
            click.confirm(one_line(f"Wipe all content of {what} ({count}) from {kept.path}, for ever?"), abort=True)
        if agent is not None or sys.platform == "win32":
            _say(kept.purge(agent, session))
            return
    from coherence.integrations.daemon.hook_command import state_folder
    from coherence.integrations.daemon.purge import purge_session

    assert session is not None
    try:
        done = purge_session(state_folder(), path, session)
    except CoherenceError as error:
        raise click.ClickException(one_line(str(error))) from error
    _say(done.report)
    if done.removed is not None:
        waiting = f"{number_of(done.removed.payloads, 'payload')} and {number_of(done.removed.refusals, 'refusal')}"
        click.echo(f"removed from {state_folder()}: {waiting}, and the daemon's log; the client keeps its transcript")


def _is_known(rows: list[tuple[str, str]], agent: str | None, session: str | None) -> bool:
    # by an agent alone, as by both: a session of it that is not there wipes nothing
    return any(agent == of if agent is not None else session == name for of, name in rows)


def _say(report: PurgeReport) -> None:
    click.echo(
        f"purged: {report.events} events of {report.sessions} sessions, {report.lessons} lessons; "
        "copies such as exports, reports and backups are not touched"
    )
    if report.recalled_in:
        names = ", ".join(report.recalled_in)
        click.echo(one_line(f"warning: other sessions were told these lessons, and still hold them: {names}"), err=True)
