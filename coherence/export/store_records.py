"""Records of all agents in a store, read once each as they come."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec

from coherence.core.events import decode_event
from coherence.monitor.codec import decode_result
from coherence.monitor.sinks import AgentRecord
from coherence.store.open import FileId, file_id
from coherence.store.rows import GUARD_SESSION, PURGE_AGENT, AuditRow
from coherence.store.store import Store


class StoreRecords:
    """Records of a store, in the order in which they were written, without sessions of tests and guarded calls.

    The store is opened for each reading alone, so it may be moved or replaced meanwhile.

    Parameters
    ----------
    path : Path
        The store's file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: FileId | None = None
        self._newest = 0
        """Position of the newest event that was read."""

    def is_new_file(self) -> bool:
        """Tell whether the store is another file than at the newest reading, so that it is read from its beginning."""
        return self._file is not None and file_id(self._path) != self._file

    def newer(self) -> Iterator[AgentRecord]:
        """Yield the records that were written since; those that cannot be read are passed over.

        Raises
        ------
        StoreError
            The store cannot be read.
        """
        if self._file is None or self.is_new_file():
            self._file, self._newest = file_id(self._path), 0
        with Store(self._path, recovers=False) as store:
            for row in store.audit_rows(after=self._newest):
                self._newest = row.id
                if (record := _record(row)) is not None:
                    yield record


def _record(row: AuditRow) -> AgentRecord | None:
    if row.source == "test" or row.session == GUARD_SESSION or row.agent == PURGE_AGENT:
        return None
    event = row.event
    try:
        return AgentRecord(
            event.seq,
            event.ts,
            decode_event(event.data),
            decode_result(event),
            agent=row.agent,
            session=row.session,
        )
    except (ValueError, msgspec.DecodeError):  # purged, or of a newer version
        return None
