"""Why the content of a row does not match its hash."""

from __future__ import annotations

from itertools import combinations

import msgspec

from coherence.store.chain import Fault, fault, recomputed
from coherence.store.rows import AuditRow

MOST = 24
"""Rows compared with each other; among more altered rows, exchanges are reported as alterations."""

_PARTS = ("names", "prev_hash", "seq", "ts", "kind", "data", "reading", "decision")


def explain_contents(rows: list[AuditRow]) -> list[Fault]:
    """Return one fault for each row, given every row whose content does not match its hash."""
    partners: dict[int, AuditRow] = {}
    for one, other in combinations(rows[:MOST], 2):
        if one.id not in partners and other.id not in partners and _exchanged(one, other):
            partners[one.id], partners[other.id] = other, one
    return [_explain(row, partners.get(row.id)) for row in rows]


def _explain(row: AuditRow, partner: AuditRow | None) -> Fault:
    if partner is not None:
        return fault(
            row, "reordered", f"it holds what belongs to the event with id {partner.id}, and the other way round"
        )
    for name, less in (("reading", {"reading": None}), ("decision", {"decision": None})):
        bare = msgspec.structs.replace(row, event=msgspec.structs.replace(row.event, **less))
        if bare.event != row.event and recomputed(bare) == row.hash:
            return fault(row, "inserted", f"its {name} was not there when the event was written")
    if row.event.reading or row.event.decision:
        return fault(row, "altered", "its content, reading or decision does not match its hash")
    return fault(row, "altered", "its content does not match its hash, or its reading or decision is gone")


def _exchanged(one: AuditRow, other: AuditRow) -> bool:
    """Return whether both rows match their hashes once some of their columns are put back."""
    for count in range(1, len(_PARTS) + 1):
        for parts in combinations(_PARTS, count):
            if recomputed(_with(one, other, parts)) == one.hash and recomputed(_with(other, one, parts)) == other.hash:
                return True
    return False


def _with(row: AuditRow, giver: AuditRow, parts: tuple[str, ...]) -> AuditRow:
    """Return a row with some columns of another one."""
    event = {part: getattr(giver.event, part) for part in parts if part not in ("names", "prev_hash")}
    outer = {"prev_hash": giver.prev_hash} if "prev_hash" in parts else {}
    names = {"session": giver.session, "agent": giver.agent, "source": giver.source} if "names" in parts else {}
    return msgspec.structs.replace(row, event=msgspec.structs.replace(row.event, **event), **outer, **names)
