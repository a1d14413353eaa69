"""What the present request says: about the newest answer, and with earlier corrections in mind."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from coherence.core.decisions import EVIDENCE, Finding
from coherence.detect.constraints import forbidden
from coherence.policy.correction_prompt import flatten
from coherence.policy.corrections import CorrectionPattern
from coherence.policy.scope import Drift, drift_of, drift_words

THRESHOLD = 0.5
"""Confidence of three fresh corrections."""

QUOTED = 120
"""Characters of one correction in a finding."""


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
    said = "; ".join(f'"{flatten(note.text, QUOTED)}"' for note in pattern.examples[:2])
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


def nearest_drift(tasks: Sequence[str], answer: str, cosine: float | None) -> Drift:
    """Return how far an answer is from the nearest of some tasks that can be judged.

    Where something that one of them forbids was done, that one counts.

    Parameters
    ----------
    tasks : sequence of str
        The latest request, and the goal; at least one. The goal is looked at only if it can change the result.
    answer : str
        The answer.
    cosine : float, optional
        The largest cosine of the answer with any of them.
    """
    drifts: list[tuple[Drift, str]] = []
    for task in tasks:
        near = drifts and drifts[0][0].judged and not drifts[0][0].drifted
        if not near or forbidden(task):
            drifts.append((drift_of(task, answer, cosine), task))
    done = [each for each in drifts if each[0].violations]
    judged = [each for each in drifts if each[0].judged] or drifts
    drift, task = max(done, key=_score) if done else min(judged, key=_score)
    return msgspec.structs.replace(drift, words=drift_words(task, answer)) if drift.drifted else drift


def scope_finding(drift: Drift, seq: int) -> Finding:
    """Return the finding ``scope_drift_warn``: the newest answer has little to do with what was asked.

    Parameters
    ----------
    drift : Drift
        How far it is from the nearest task.
    seq : int
        The answer's event.
    """
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


def _score(judged: tuple[Drift, str]) -> float:
    return judged[0].score
