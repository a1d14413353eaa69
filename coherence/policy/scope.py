"""Distance of the newest answer from the request, and earlier corrections of such requests."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from unicodedata import normalize

import msgspec

from coherence.core.decisions import DecisionKind, Finding
from coherence.core.lazy import lazy_regex
from coherence.detect.additions import additions, forbidden_features
from coherence.detect.asked import is_question, kind_of
from coherence.detect.languages import differ, language
from coherence.detect.ngrams import Bag, bag_once, shares, unshared_words
from coherence.detect.violations import forbidden, violations
from coherence.policy.correction_prompt import flatten
from coherence.policy.corrections import CorrectionPattern
from coherence.policy.rules.finding_builders import found, quiet

THRESHOLD = 0.5
"""Score from which an answer counts as drifted."""

COSINE_WEIGHTS = (-0.64, 2.24, -12.7, 1.65)
WORDS_WEIGHTS = (-5.8, 2.6, 0.0, -1.24)
"""Weights of what is shared, what is missing and the cosine, and the intercept: logistic regressions on right and
swapped answers of the development half, printed by ``tests/bench/scope_drift.py``. The intercepts are moved so that the
threshold catches nine of ten swapped answers with the cosine, and flags 5 % of right ones without."""

ENOUGH_WITH_COSINE = 10.0
ENOUGH_WORDS = 40.0
"""Mass of n-grams below which an answer is too short to judge: a number or "Yes"; without the cosine, two words."""

FULL = 80.0
"""Mass at which half of what an answer does not share counts: one short sentence."""

SHORT_TASK, BENEFIT = 150.0, 1.5
"""Mass below which a task is short, and what an empty one takes off the log odds where there is a cosine: "Deploy the
app" says little of the words of right answers. Of instructions alone one in eight flags on right answers goes."""

CAUTIOUS = 0.4
"""Score above which that of an unjudged answer is squeezed, so that it stays below the threshold."""

_REFUSAL = lazy_regex(
    r"\W*(?:i['’]m (?:unable|not able)|"
    r"(?:i['’]?m |i am )?(?:very |really |so )?sorry\b|unfortunately,? i\b|i (?:can ?not|can['’]?t|won['’]t|"
    r"am (?:unable|not able))|as an ai\b|es tut mir leid|ich kann (?:\w+ ){0,3}nicht|"
    r"désolée?\b|je ne peux pas|lo siento|no puedo\b|抱歉|对不起)",
    re.IGNORECASE,
)

REFUSAL_CHARS = 300
"""An answer longer than this is judged even if it begins like a refusal."""


class ScopeDrift(msgspec.Struct, frozen=True):
    """Distance of an answer from its task."""

    score: float
    """In [0, 1]; 1 = the answer has nothing to do with the task."""
    threshold: float
    """The score from which an answer counts as drifted."""
    words: tuple[str, ...]
    """For an answer that counts as drifted: its heaviest words that the task does not have, at most six."""
    violations: tuple[str, ...]
    """Things that the task forbids and the answer says it did, in the task's words."""
    judged: bool
    """False if one of the texts has too little in it, the answer refuses, or is in another language than the task; the
    score is then below the threshold."""
    additions: tuple[str, ...] = ()
    """Additions that the answer says or shows and the task does not ask for, in the answer's words, at most six."""

    @property
    def drifted(self) -> bool:
        """True if the score reaches the threshold."""
        return self.score >= self.threshold


def scope_drift(task: str, answer: str, *, cosine: float | None = None, multilingual: bool = False) -> ScopeDrift:
    """Return how far an answer is from its task.

    The score is logistic in three things: the root of the larger share of n-grams that one text has from the other,
    the share of the answer that the task lacks (less for short answers), and the cosine. A forbidden thing that the
    answer says it did lifts the score to the threshold or above, and so does something added that nobody asked for. An
    echo of the task has no drift: whether the task is done is another question. A short task gives the benefit of the
    doubt.

    An answer in another language than the task is not judged by its words: by the cosine of a multilingual embedder
    alone, else not at all. Where both are in one other language than English, words and cosine must agree. Without a
    cosine, questions and requests for something new are not judged: right answers to them share few words.

    Parameters
    ----------
    task
        The instruction, and its input after a line break if there is one.
    answer
        What was answered. Of both texts the first and last 10,000 characters are read.
    cosine
        Cosine of the embeddings of task and answer in [-1, 1], from ``MiniLMEmbedder``; None if unknown: without it
        paraphrases and code are confused with drift far more often.
    multilingual : bool
        Whether the embedder that made the cosine speaks more than English.

    Examples
    --------
    >>> scope_drift("Refactor fetch_user to be async", "I refactored fetch_user, it is async now.").drifted
    False
    >>> drift = scope_drift("Refactor fetch_user to be async", "Peel the onions and simmer the soup for an hour.")
    >>> drift.drifted, drift.words[:2]
    (True, ('onions', 'peel'))
    >>> scope_drift("Fix the login. Do not add logging.", "Fixed the login and added logging.").violations
    ('logging',)
    >>> scope_drift("Rename load to read", "Renamed. I also added a cache.").additions
    ('cache',)
    """
    return nearest_drift([task], answer, cosine, multilingual)


def drift_of(task: str, answer: str, cosine: float | None, multilingual: bool = False) -> ScopeDrift:
    """Do what :func:`scope_drift` does, without its words, and without additions."""
    task, answer = normalize("NFC", task), normalize("NFC", answer)
    asked, given = bag_once(task), bag_once(answer)
    done = violations(task, answer)
    if forbidden(task):
        done = tuple(dict.fromkeys((*done, *forbidden_features(task, answer))))
    spoken = language(task)
    translated = differ(task, answer)
    if cosine is not None and not multilingual and _is_foreign(task) and _is_foreign(answer):
        cosine = None
    enough = ENOUGH_WORDS if cosine is None else ENOUGH_WITH_COSINE
    refuses = len(answer) <= REFUSAL_CHARS and _REFUSAL.match(answer) is not None
    judged = asked.mass >= ENOUGH_WITH_COSINE and given.mass >= enough and not refuses
    measured = features(asked, given)
    score = drift_score(*measured, cosine)
    if cosine is not None and 0.0 < score < 1.0:
        score = 1 / (1 + (1 / score - 1) * math.exp(BENEFIT * max(0.0, 1.0 - asked.mass / SHORT_TASK)))
    if translated:
        judged = judged and multilingual and cosine is not None
        score = drift_score(0.0, 0.0, cosine) if judged else score
    elif cosine is None:
        judged = judged and not _is_open(task)
    elif spoken not in ("", "en") and not multilingual:
        score = min(score, drift_score(*measured, None))
    if done:
        return ScopeDrift(_lifted(score), THRESHOLD, (), done, True)
    if not judged and score > CAUTIOUS:
        # 0.99, so that even a score of 1 stays below the threshold.
        score = CAUTIOUS + (score - CAUTIOUS) * 0.99 * (THRESHOLD - CAUTIOUS) / (1 - CAUTIOUS)
    return ScopeDrift(score, THRESHOLD, (), done, judged)


def _lifted(score: float) -> float:
    """Return a score at or above the threshold, in the order of what it was."""
    return THRESHOLD + (1 - THRESHOLD) * score


def _with_additions(drift: ScopeDrift, added: tuple[str, ...]) -> ScopeDrift:
    if not added:
        return drift
    score = drift.score if drift.drifted else _lifted(drift.score)
    return msgspec.structs.replace(drift, score=score, judged=True, additions=added)


def _is_open(task: str) -> bool:
    """Tell whether right answers need not share words with a task: a question, or something new that is asked for."""
    return is_question(task) or kind_of(task) == "make"


def features(asked: Bag, given: Bag) -> tuple[float, float]:
    """Return what task and answer share and what the answer has for itself, both in [0, 1].

    The first is the root of the larger of the two shares: a label is all in its task, a summary's input is not.
    """
    of_asked, of_given = shares(asked, given)
    return math.sqrt(max(of_asked, of_given)), given.mass / (given.mass + FULL) * (1 - of_given)


def drift_score(shared: float, missing: float, cosine: float | None) -> float:
    """Return the logistic score of the features, in [0, 1]; None = no cosine."""
    weights = WORDS_WEIGHTS if cosine is None else COSINE_WEIGHTS
    total = weights[0] * shared + weights[1] * missing + weights[2] * (cosine or 0.0) + weights[3]
    return 1 / (1 + math.exp(-total))


def _is_foreign(text: str) -> bool:
    """Tell whether most letters of a text's beginning are not Latin: the shipped model knows English only."""
    if text.isascii():
        return False
    letters = [character >= "\u0370" for character in text[:400] if character.isalpha()]
    return 2 * sum(letters) > len(letters)


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
        return quiet("procedural_warning")
    what = "requests like this one" if pattern.kind == "topic" else "different requests"
    said = "; ".join(f'"{flatten(note.text, QUOTED)}"' for note in pattern.examples[:2])
    return found(
        "procedural_warning",
        max(pattern.confidence, THRESHOLD),
        "guide",
        f"users have corrected {what} {pattern.count} times: {said}",
        "put the corrections into the prompt: inject_corrections",
        [seq for where, seq in pattern.provenance if where == session],
    )


def nearest_drift(tasks: Sequence[str], answer: str, cosine: float | None, multilingual: bool = False) -> ScopeDrift:
    """Return how far an answer is from the nearest of some tasks that can be judged.

    Where something that one of them forbids was done, that one counts. An addition is what none of them asks for.

    Parameters
    ----------
    tasks : sequence of str
        The latest request, and the goal; at least one. The goal is looked at only if it can change the result.
    answer : str
        The answer.
    cosine : float, optional
        The largest cosine of the answer with any of them.
    multilingual : bool
        Whether the embedder that made it speaks more than English.
    """
    drifts: list[tuple[ScopeDrift, str]] = []
    for task in tasks:
        near = drifts and drifts[0][0].judged and not drifts[0][0].drifted
        if not near or forbidden(task):
            drifts.append((drift_of(task, answer, cosine, multilingual), task))
    done = [each for each in drifts if each[0].violations]
    judged = [each for each in drifts if each[0].judged] or drifts
    drift, task = max(done, key=_score) if done else min(judged, key=_score)
    added = additions(tasks[0], answer)
    for other in tasks[1:] if added else ():
        wanted = additions(other, answer)
        added = tuple(thing for thing in added if thing in wanted)
    drift = _with_additions(drift, added)
    words = unshared_words(bag_once(answer), bag_once(task)) if drift.drifted else ()
    return msgspec.structs.replace(drift, words=words)


def scope_finding(drift: ScopeDrift, seq: int) -> Finding:
    """Return the finding ``scope_drift_warn``: the newest answer has little to do with what was asked, or adds to it.

    Parameters
    ----------
    drift : ScopeDrift
        How far it is from the nearest task.
    seq : int
        The answer's event.
    """
    if not drift.drifted:
        return Finding(rule="scope_drift_warn", severity="guide", score=drift.score, threshold=drift.threshold)
    if drift.violations:
        why = f"the answer tells of what the task forbids: {', '.join(drift.violations)}"
    elif drift.additions:
        why = f"the answer adds what nobody asked for: {', '.join(drift.additions)}"
    else:
        why = "the answer has little to do with the task"
        if drift.words:
            why += f"; it is about {', '.join(drift.words[:4])}"
    severity: DecisionKind = "warn" if drift.violations else "guide"
    action = "compare the answer with what was asked"
    return found("scope_drift_warn", drift.score, severity, why, action, [seq], drift.threshold)


def _score(judged: tuple[ScopeDrift, str]) -> float:
    return judged[0].score
