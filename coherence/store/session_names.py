"""Sessions by the names that people give them."""

from __future__ import annotations

from collections.abc import Sequence

from coherence.store.rows import SessionRow


def sessions_called(rows: Sequence[SessionRow], name: str) -> list[SessionRow]:
    """Return the sessions that a name means: AGENT/SESSION, else an agent's newest, else all of this session's name.

    Parameters
    ----------
    rows : sequence of SessionRow
        Sessions, oldest first.
    name : str
        The name.
    """
    exact = [row for row in rows if f"{row.agent}/{row.session}" == name]
    if exact:
        return exact
    of_agent = [row for row in rows if row.agent == name]
    return of_agent[-1:] or [row for row in rows if row.session == name]
