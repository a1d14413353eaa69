"""Gaps that hooks have left in the newest sessions: the record has them, and says so."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from coherence.integrations.host_session import ABSENT, UNTOLD
from coherence.store.rows import PURGED_SESSION

SESSIONS = 50
"""Newest sessions that are looked at."""

RECENT_S = 7 * 86_400.0
"""Seconds after which a gap is no news any more."""

_GAPS = """
SELECT e.agent || '/' || s.session, json_extract(e.data, '$.where'), json_extract(e.data, '$.message')
FROM (SELECT id, session FROM sessions WHERE source = 'hook' AND config <> ? ORDER BY id DESC LIMIT ?) AS s
JOIN events AS e ON e.session_id = s.id
WHERE e.kind = 'fault' AND e.ts > ? AND json_extract(e.data, '$.where') IN (?, ?)
ORDER BY e.id DESC
"""


def find_gaps(fetch: Callable[[str, tuple[Any, ...]], list[tuple[Any, ...]]]) -> tuple[str, str]:
    """Return what is known of gaps, for people, and the command that shows them; empty if there is none.

    Parameters
    ----------
    fetch : callable
        Returns the rows of a query with its values.
    """
    values = (PURGED_SESSION, SESSIONS, time.time() - RECENT_S, UNTOLD, ABSENT)
    rows = fetch(_GAPS, values)
    if not rows:
        return "", ""
    session, _, newest = rows[0]
    count = len({row[0] for row in rows})
    ways = [name for name in (ABSENT, UNTOLD) if any(row[1] == name for row in rows)]
    found = f"{len(rows)} in {count} session{'s'[: count > 1]} of the last week, by {' and '.join(ways)}"
    return f"{found}; the newest: {newest}", f"coherence log {session} --kind fault"
