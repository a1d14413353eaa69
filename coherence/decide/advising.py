"""What the present request says: about the newest answer, and with earlier corrections in mind."""

from __future__ import annotations

from collections.abc import Sequence

from coherence.decide.corrections import CorrectionPattern
from coherence.decide.quoting import flatten
from coherence.decide.scope import Drift
from coherence.findings import Finding

THRESHOLD = 0.5
"""Confidence of three fresh corrections."""

QUOTED = 120
"""Characters of one correction in a finding."""

EVIDENCE = 8


def procedural_finding(pattern: CorrectionPattern | None, session: str) -> Finding:
    """Return the finding ``procedural_warning``: users have corrected work like this again and again.

    Parameters
    ----------
    pattern : CorrectionPattern, optional
        What fits the present request.
    session : str
        The present one; only its events can be pointed at.
    """
    if pattern is None:
        return Finding(rule="procedural_warning", severity="guide", score=0.0, threshold=THRESHOLD)
    what = "requests like this one" if pattern.kind == "topic" else "different requests"
    said = "; ".join(f"“{flatten(note.text, QUOTED)}”" for note in pattern.examples[:2])
    return Finding(
        rule="procedural_warning",
        severity="guide",
        active=True,
        score=max(pattern.confidence, THRESHOLD),
        threshold=THRESHOLD,
        evidence=tuple(seq for where, seq in pattern.provenance if where == session and seq)[-EVIDENCE:],
        why=f"users have corrected {what} {pattern.count} times: {said}",
        action="put the corrections into the prompt: inject_corrections",
    )


def scope_finding(drifts: Sequence[Drift], seq: int) -> Finding:
    """Return the finding ``scope_drift_warn``: the newest answer has little to do with any of the tasks.

    Parameters
    ----------
    drifts : sequence of Drift
        The answer against the latest request, and against the goal. The nearest counts of those that can be judged,
        unless something forbidden was done.
    seq : int
        The answer's event.
    """
    forbidden = [drift for drift in drifts if drift.violations]
    judged = [drift for drift in drifts if drift.judged] or drifts
    drift = max(forbidden, key=_score) if forbidden else min(judged, key=_score)
    if not drift.drifted:
        return Finding(rule="scope_drift_warn", severity="guide", score=drift.score, threshold=drift.threshold)
    if drift.violations:
        why = f"the answer tells of what the task forbids: {', '.join(drift.violations)}"
    else:
        why = "the answer has little to do with the task"
        if drift.words:
            why += f"; it is about {', '.join(drift.words[:4])}"
    return Finding(
        rule="scope_drift_warn",
        severity="warn" if drift.violations else "guide",
        active=True,
        score=drift.score,
        threshold=drift.threshold,
        evidence=(seq,) if seq else (),
        why=why,
        action="compare the answer with what was asked",
    )


def _score(drift: Drift) -> float:
    return drift.score
