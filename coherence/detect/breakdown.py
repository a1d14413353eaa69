"""Breakdown: text that a model writes when it has lost the thread of language itself.

Word salad, the same words over and over, left-over template marks, and letters of a script that nobody used before.
What is judged is the agent's prose; code is cut out first, since programs repeat themselves and name templates.
"""

from __future__ import annotations

import re
from collections import Counter
from string import ascii_letters
from typing import TYPE_CHECKING
from unicodedata import name as name_of

import msgspec

from coherence.core.lazy import lazy_regex, twin_regex
from coherence.core.validation import ends
from coherence.detect.detector import EventDetector, Observed
from coherence.detect.english import ONLY_ENGLISH, WEIGHTS, english_list, english_words, weighed_words
from coherence.detect.text_features import looks_like_json

if TYPE_CHECKING:
    from coherence.detect.assumption import AssumptionDetector

MAX_CHARS = 4_000
"""Characters of a message that are looked at, half from each end."""

CODE_CHARS = 20_000
"""Characters of a message in which code is looked for, before the rest is cut: half a block looks like prose."""

SCRIPT_CHARS = 2_000
"""Characters of a text in which scripts are looked for."""

FEWEST_WORDS = 8
"""Words below which nothing is said of their order."""

FADES = 0.7
"""Share of a breakdown that is left at each further message of the agent."""

MAX_MARKS = 64
"""Template marks that are remembered."""

_CODE = lazy_regex(r"```.*?(?:```|\Z)|`[^`\n]{0,400}`", re.DOTALL)
_ITEM = lazy_regex(r"^[ \t]{0,20}(?:[-+•|>]|\*(?!\*)|#{1,6}|\d{1,3}[.)])\s[^\n]*\n?", re.MULTILINE)
_MARK = lazy_regex(  # it first names what a mark begins with, and looks back then: so it is found several times faster
    r"[<{\[#$_%lL](?i:(?<=[lL])orem ipsum|(?<![lL])(?:"
    r"(?<=<)(?:\|[a-z_]{2,20}\|>|(?:pad|unk|s|/s|eos|bos|mask|sep|cls)>|</?SYS>>"
    r"|(?:INSERT|YOUR|PLACEHOLDER|TODO)[^>\n]{0,40}>)"
    r"|(?<=\{)(?:\{[^{}\n]{1,80}\}\}|%[^{}\n]{1,60}%\})"
    r"|(?<=\[)(?:/?(?:INST|PAD|MASK|UNK|SEP|CLS)\]|(?:INSERT|YOUR|PLACEHOLDER)[^\]\n]{0,40}\])"
    r"|(?<=^#)#{1,2} ?(?:instruction|response|input|assistant|human|user)s?:"
    r"|(?<=\$)\{[A-Z_]{3,40}\}|(?<=_)_[A-Z]{1,30}_[A-Z0-9_]{1,30}__|(?<=%)\([a-z_]{1,30}\)s))",
    re.MULTILINE,
)
_PIECE = twin_regex(
    r"[^\W\d_]{1,40}(?:['’][^\W\d_]{1,10})?\d{0,20}|[^\w\s]|\d{1,20}",
    plain=r"[A-Za-z]{1,40}(?:'[A-Za-z]{1,10})?\d{0,20}|[^\w\s\x1c-\x1f]|\d{1,20}",
)
"""A word, with digits behind it one that no grammar speaks of; a sign; a number."""

_RUNS = lazy_regex(r"[A-Za-z][\x00-\x7f]*|[^\x00-\x7f]")
"""ASCII text from a letter on, or a letter that may be of another script."""
_LATIN = ascii_letters.encode()

_SENTENCE_END = lazy_regex(r"[.!?\n]+")
_NO_PROSE = lazy_regex(r"[0-9=_{}$\\/<>*+^|#@\[\]]")
"""Numbers, formulas, names of code: what stands in no sentence of a language, or stands there in any language alike."""

_DETERMINER_WORDS = "the a an my your its our their every no"
_PREPOSITION_WORDS = "of to in on at for with from by into about between through over during without within"
_IMPOSSIBLE_BEHIND_DETERMINER = (
    "the a an of to in on at for with from by and or but is are was were be been am will would can could should must "
    "may might do does did have has had it he she they we you i then if so because"
)
_IMPOSSIBLE_BEHIND_PREPOSITION = (
    "of is are was were am will would can could should must may might does did has had he she they we i and or but"
)
_NOT_BEHIND = {
    **dict.fromkeys(_DETERMINER_WORDS.split(), frozenset(_IMPOSSIBLE_BEHIND_DETERMINER.split())),
    **dict.fromkeys(_PREPOSITION_WORDS.split(), frozenset(_IMPOSSIBLE_BEHIND_PREPOSITION.split())),
}
"""Word -> what does not stand behind it."""
_CAPITAL = frozenset({"The", "An", "This"})
_MAY_DOUBLE = frozenset({"that", "had", "very", "bye", "no", "ha"})

FEW_PAIRS = 32
"""A text of fewer pairs of words counts as having this many: one slip is no salad."""

SALAD = 0.12
"""Share of impossible pairs of words at which a text is salad beyond doubt."""

REPEATS_FREE, REPEATS_FULL = 0.15, 0.4
"""Share of three-word groups that came twice before: natural up to the first, beyond doubt from the second on. What
compares two things says the same of both."""


def disorder(text: str) -> float:
    """Return how little the order of a text's words is that of English, in [0, 1].

    Counted are pairs that English does not have ("the of", "with is"), words doubled, and three-word groups that come
    again. 0 for fewer than eight words; text of other languages has next to none of these pairs.

    Examples
    --------
    >>> disorder("The test fails because the date is parsed in local time, so I will fix the parser first.")
    0.0
    >>> disorder("the of parser with is the to then a the date in of the fails by are of the")
    1.0
    """
    pieces = _PIECE.findall(text)
    lower = [piece.lower() if piece[0].isalpha() else "" for piece in pieces]
    words = [word for word in lower if word]
    if len(words) < FEWEST_WORDS:
        return 0.0
    pairs = wrong = 0
    for one, two, first, second in zip(pieces, pieces[1:], lower, lower[1:], strict=False):
        if not (first and second):
            continue
        pairs += 1
        if two in _NOT_BEHIND.get(first, ()) and one != "A":  # as it is written: Will may be a name
            wrong += 1
        elif first == second:
            wrong += first not in _MAY_DOUBLE or (two in _CAPITAL and one[0].islower())
        # The end of a sentence would stand between them as a piece of its own.
        elif two in _CAPITAL:
            wrong += one[0].islower()
    salad = wrong / max(pairs, FEW_PAIRS) / SALAD
    words = [word for word in words if len(word) > 1]  # a list of P1, P2, P3 repeats its letter
    groups = list(zip(words, words[1:], words[2:], strict=False))
    again = sum(count - 2 for count in Counter(groups).values() if count > 2) / max(len(groups), 1)
    repeats = (again - REPEATS_FREE) / (REPEATS_FULL - REPEATS_FREE) * (1.0 if len(words) >= 15 else 0.5)
    return min(max(salad, repeats, 0.0), 1.0)


FOREIGN_WORDS, FOREIGN_FULL = 8, 10
"""Words of a sentence below which nothing is said of its language, and from which it counts in full."""

FOREIGN_SHARE = 0.12
"""Share of frequent English words from which a sentence is English beyond doubt; one alone is no sentence of it."""

_FOREIGN_RUN = bytes(4)
"""Weights of so many words that are not frequent, which stand in a row in each sentence that is not English."""

NEW_FREE, NEW_FULL = 0.3, 0.6
"""Share of a message that nobody has spoken of: a list of names from a result is no other language."""

BARE_FREE, BARE_FULL = 11, 17
"""Words in a row without a sign between them and without a frequent English one: some nouns may stand side by side."""

_BARE = lazy_regex(r"[a-z]{2,30}+(?: [a-z]{2,30}+){11,60}+")
"""Words in lower case with nothing but spaces between them."""
_BARE_RUN = bytes(BARE_FREE - 1)
"""Weights of so many words that are not frequent; of those that count, the first and the last may be cut off."""

ENGLISH_WORDS, ENGLISH_WEIGHT = 16, 0.8
"""Words of the run, and their mean weight as English, from which it is known to be in English."""


def foreignness(text: str) -> float:
    """Return how little a text's least English sentence has of English, in [0, 1].

    Sentences of fewer than 8 words, or with numbers or signs of code, say nothing.

    Examples
    --------
    >>> foreignness("I read the file and run the tests. El tren de las siete nunca llega a las siete, lo sabe todo.")
    1.0
    >>> foreignness("Now the date is parsed in local time, so I fix the parser first.")
    0.0
    """
    worst = 0.0
    if _FOREIGN_RUN not in weighed_words(text)[1]:
        return worst
    for sentence in _SENTENCE_END.split(text):
        # too short for so many words of two letters
        if len(sentence) < 2 * FOREIGN_WORDS or _NO_PROSE.search(sentence):
            continue
        words = [word for word in english_list(sentence) if len(word) > 1]
        if len(words) < FOREIGN_WORDS:
            continue
        weights = [weight for weight in map(WEIGHTS.get, words) if weight]
        if weights.count(ONLY_ENGLISH) <= 1:
            share = len(weights) / len(words)
            worst = max(worst, (1.0 - share / FOREIGN_SHARE) * min(len(words) / FOREIGN_FULL, 1.0))
    return worst


def bareness(text: str) -> float:
    """Return how surely a text strings words together that make no English phrase, in [0, 1].

    Examples
    --------
    >>> bareness("recurring recipient copper sideways subject throttle payment copper subject vesper date pronoun "
    ...          "bread history lattice fern velvet")
    1.0
    >>> bareness("I read the project configuration file parser unit test suite now, and then run it.")
    0.0
    """
    longest = 0
    if _BARE_RUN not in weighed_words(text)[1]:
        return 0.0
    for found in _BARE.finditer(text):
        streak = 0
        for word in found[0].split():
            streak = 0 if word in WEIGHTS else streak + 1
            longest = max(longest, streak)
    return min(max((longest - BARE_FREE) / (BARE_FULL - BARE_FREE), 0.0), 1.0)


def prose(text: str) -> str:
    r"""Return the prose of a text: without its code, lists and tables, at most 4,000 characters; none of JSON.

    Examples
    --------
    >>> prose("Run `make` now:\n- it builds\n- it tests\nThen wait.")
    'Run , now:\nThen wait.'
    """
    if looks_like_json(text.strip()):
        return ""
    text = ends(text, CODE_CHARS, "\n")
    text = ends(_CODE.sub(",", text) if "`" in text else text, MAX_CHARS, "\n")
    return _ITEM.sub("", text)


def template_marks(text: str) -> set[str]:
    """Return the marks of templates and of models' formats in a text.

    Examples
    --------
    >>> sorted(template_marks("Dear {{name}}, <|im_end|> see [INSERT DATE]"))
    ['<|im_end|>', '[INSERT DATE]', '{{name}}']
    """
    return set(_MARK.findall(text))


def scripts(text: str) -> dict[str, int]:
    """Return how many letters of each script a text has.

    Examples
    --------
    >>> scripts("Привет, world")
    {'CYRILLIC': 6, 'LATIN': 5}
    """
    if text.isascii():
        return {"LATIN": _ascii_letters(text[:SCRIPT_CHARS])}
    found: dict[str, int] = {}
    for run, count in Counter(_RUNS.findall(text[:SCRIPT_CHARS])).items():
        if run.isascii():
            found["LATIN"] = found.get("LATIN", 0) + count * _ascii_letters(run)
        elif run.isalpha():
            script = name_of(run, "?").partition(" ")[0]
            found[script] = found.get(script, 0) + count
    return found


def _ascii_letters(text: str) -> int:
    return len(text) - len(text.encode().translate(None, _LATIN))


class BrokenText(msgspec.Struct):
    """Memory of how the agent writes; plain data, bounded."""

    scripts: list[str] = []
    """Scripts that anybody has used."""
    words: int = 0
    """Of requests and of the agent's messages."""
    english: int = 0
    """Their weight as English words."""
    marks: list[str] = []
    """Template marks that were there before."""
    messages: int = 0
    """Of the agent."""
    value: float = 0.0
    """The worst of the agent's messages, faded by 0.7 at each later one; in [0, 1]."""
    seq: int = 0
    """Number of the message that the value comes from; 0 = of an earlier session."""
    why: str = ""


class BreakdownDetector(EventDetector[BrokenText]):
    """Follows how the agent writes.

    Parameters
    ----------
    assumption : AssumptionDetector, optional
        Of the same run: it tells how much of a message is new. Without it all of it counts as new.

    Examples
    --------
    >>> from coherence.core.events import Message
    >>> detector = BreakdownDetector()
    >>> for text in ("I will read the file and run the tests.", "the of file with is the to a the in of the a"):
    ...     detector.observe(Observed.of(Message("assistant", text)))
    >>> detector.data.value, detector.data.why
    (1.0, 'the words stand in no order of English')
    """

    name, data_type = "breakdown", BrokenText

    def __init__(self, assumption: AssumptionDetector | None = None) -> None:
        super().__init__()
        self.assumption = assumption

    def on_goal(self, observed: Observed) -> None:
        """Remember what is asked."""
        self._count(observed.text.raw)
        self._know(observed.text.raw)

    on_correction = on_goal

    def on_tool_result(self, observed: Observed) -> None:
        """Remember what somebody else has written: the agent may take it up."""
        self._know(observed.text.raw)

    on_memory = on_compaction = on_tool_result

    def on_message(self, observed: Observed) -> None:
        """Judge the agent's message; remember others'."""
        text, data = observed.text.raw, self.data
        if observed.event.role != "assistant":
            self._count(text if observed.event.role == "user" else "")
            self._know(text)
            return
        body = prose(text)
        cut = ends(text, MAX_CHARS, "\n")
        marks = template_marks(_CODE.sub(" ", cut) if "`" in cut else cut)
        data.value *= FADES
        found, why = disorder(body), "the words stand in no order of English"
        if not marks <= set(data.marks):
            found, why = max(found, 0.9), f"{min(marks - set(data.marks))} is left over from a template"
        other = self._changes_language(body)
        if other > found:
            found, why = other, "its words make no English phrase, or are of a language that nobody has used"
        elif found < 0.5:
            # Only a sound message tells of the language of the run.
            self._count(body)
        letters = {} if body.isascii() and "LATIN" in data.scripts else scripts(body)
        strange = sum(count for script, count in letters.items() if script not in data.scripts)
        share = strange / max(sum(letters.values()), 1)
        if data.messages and len(body) > 20 and 2.0 * share > found:
            found, why = min(2.0 * share, 1.0), "it changes to letters that nobody has used"
        if found > data.value:
            data.value, data.seq, data.why = found, observed.seq, why
        data.messages += bool(body.strip())
        # A script that the agent alone has brought in must not excuse its next message.
        self._know(text if share < 0.2 or not data.scripts else "", marks)

    def _changes_language(self, body: str) -> float:
        """Return how surely a message of a run in English makes no phrase of it, or is in another one, in [0, 1]."""
        data = self.data
        if data.words < ENGLISH_WORDS or data.english < ENGLISH_WEIGHT * data.words:
            return 0.0
        bare = bareness(body)
        step = self.assumption.data.step if self.assumption is not None else None
        new = 1.0 if step is None else step.novelty
        gate = min(max((new - NEW_FREE) / (NEW_FULL - NEW_FREE), 0.0), 1.0)
        return max(bare, gate * foreignness(body) if gate else 0.0)

    def _count(self, text: str) -> None:
        words, weight = english_words(ends(text, MAX_CHARS, "\n"))
        self.data.words += words
        self.data.english += weight

    def _know(self, text: str, marks: set[str] | None = None) -> None:
        text = ends(text, MAX_CHARS, "\n")
        data = self.data
        if not text.isascii() or "LATIN" not in data.scripts:
            data.scripts += [script for script in scripts(text) if script not in data.scripts]
        if marks is None and ("<" in text or "{" in text or "[" in text or "_" in text):
            marks = template_marks(text)
        if marks:
            data.marks = [*data.marks, *sorted(marks - set(data.marks))][-MAX_MARKS:]

    def renumber(self) -> None:
        """Let the next event be number 1."""
        self.data.seq = 0
