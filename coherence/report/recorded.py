"""Sessions of a store as transcripts: what a monitor has recorded can be scored anew, with other settings."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from coherence.core.errors import TranscriptError
from coherence.core.events import Event, decode_event
from coherence.monitor.session_header import began_as, is_without_text
from coherence.providers.readers.recorded_events import transcript_of_events
from coherence.providers.transcript import Transcript
from coherence.store.errors import StoreError
from coherence.store.rows import SessionRow
from coherence.store.runs import session_label
from coherence.store.store import Store


def read_recorded(path: str | Path) -> list[Transcript]:
    """Return each session of a store that has a step, oldest first, called ``agent/session``.

    Raises
    ------
    TranscriptError
        If the file is no store, or holds no session with a step.
    """
    try:
        with Store(path) as store:
            read = (
                _labelled(
                    transcript_of_events(f"{row.agent}/{row.session}", str(path), _events(store, row), format="store"),
                    store,
                    row,
                )
                for row in store.sessions()
                if not is_without_text(row)
            )
            found = [transcript for transcript in read if transcript is not None]
    except StoreError as error:
        raise TranscriptError(path, str(error)) from error
    if not found:
        raise TranscriptError(path, "a store without a session that has a step")
    return found


def _labelled(transcript: Transcript | None, store: Store, row: SessionRow) -> Transcript | None:
    """Return a session with what its labels say of it; they count more than its outcome."""
    good = session_label(store, row.agent, began_as(store, row.agent, row.session))
    if transcript is None or good is None:
        return transcript
    return msgspec.structs.replace(transcript, outcome="good" if good else "bad", went_wrong=not good)


def _events(store: Store, session: SessionRow) -> Iterator[tuple[float | None, Event]]:
    """Yield each event and when it was; a run that was played again has the times of the player, which say nothing."""
    for row in store.events(session.id):
        yield (None if session.source == "replay" else row.ts), decode_event(row.data)
