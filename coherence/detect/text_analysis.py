"""One analysis of a text, shared by the detectors: tokens, prose sentences, statements."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Set
from functools import cached_property, lru_cache
from itertools import chain
from math import sqrt
from unicodedata import normalize

from coherence.core.lazy import lazy_regex, twin_regex
from coherence.core.validation import ends
from coherence.core.words import word_set
from coherence.detect.directives import gate
from coherence.detect.english import FUNCTION_WORDS
from coherence.detect.read_once import read_once

MAX_CHARS = 20_000
"""Characters of one text that are looked at, half from each end."""

LONG = 32_000
"""A tool result of more characters is skimmed: an embedder reads its beginning alone, and looking at it must not
cost more."""

SKIMMED = 2_000
"""Characters of a long text that are looked at, half from each end."""


def most_of(text: str, most: int) -> int:
    """Return how many characters of a text are looked at where it is ``most`` of one that is not long."""
    return most if len(text) <= LONG else min(most, SKIMMED)


_TOKEN = twin_regex(
    r"(?=[\w.+%~/-])(?:"  # what a token may begin with
    r"[^\W\d]\w{0,99}+(?![\w+%~/@-]|[.:](?![\s\x1c-\x1f]|\Z))"  # most words: only the last line can be there
    r"|[\w.+%-]{1,80}+@[\w-]{1,80}+(?:\.[\w-]{1,80}){1,5}"  # an e-mail address
    r"|https?://[^\s\x1c-\x1f\"'<>()\[\]{}|\\^`]{1,400}"
    r"|\d{4}-\d\d?-\d\d?"  # an ISO date
    r"|\d{1,30}(?:[.,]\d{1,30}){0,5}(?![\w])"  # a number (of MAX_DIGITS), a version
    r"|[\w~-]{0,60}+(?:/[\w.~-]{1,60}){1,12}"  # a path
    r"|\w{1,60}+(?:\.\w{1,60}+){1,6}"  # a file, a host, a dotted name
    r"|\w{1,100}+)"
)
_CAMEL = lazy_regex(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_ZEROS = lazy_regex(r"^(\d+)\.0+$")
_PATH_END = "/.,;:!?"
"""Characters behind a path or an address that are no part of it: a slash, or the end of a sentence."""
_SUFFIXES = ("ings", "ing", "ed", "es", "s")
_DENSE = lazy_regex("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
"""Scripts without spaces between words."""


def tokens(text: str) -> frozenset[str]:
    """Return the tokens of a text: addresses, dates, numbers, paths and dotted names whole, words as stems.

    Names of code (``sendMoney``, ``send_money``) fall into their words. Chinese, Japanese and Korean come as pairs of
    characters. Of a text beyond 20,000 characters, half is read from each end.

    Examples
    --------
    >>> sorted(tokens("Please send 50.0 to Anna's account anna@x.org; see reports/May.pdf"))
    ['50', 'account', 'anna', 'anna@x.org', 'pleas', 'reports/may.pdf', 'see', 'send']
    >>> tokens("sendMoney") == tokens("send_moneys")
    True
    """
    return _tokens_once(text) if len(text) > SHORT else _tokens(text)


def _tokens(text: str) -> frozenset[str]:
    text = ends(text, MAX_CHARS)
    if not text.isascii():
        text = normalize("NFKC", text)
    return frozenset(chain.from_iterable(map(_CHUNKS.__getitem__, set(text.split()))))


SHORT = 100
"""Characters of a text that is mostly a piece of another, and takes less time to read than to look for."""

_tokens_once = read_once(_tokens)


MAX_DIGITS = 30
"""Digits of a number; what follows is another one."""

_AROUND = "\"'`(),;:.!?[]{}<>*"
"""Signs around a word that belong to no token."""

MAX_CHUNKS, MAX_CHUNK = 20_000, 60
"""Stretches without white space whose tokens are kept at hand, and characters of one."""


class _Chunks(dict[str, tuple[str, ...]]):
    """Stretch of a text without white space -> its tokens; no token has any, and those of one task come again."""

    def __missing__(self, chunk: str) -> tuple[str, ...]:
        """Read them."""
        core = chunk.strip(_AROUND)
        if core.isascii() and (core.isalpha() or core.isdigit()) and len(core) <= MAX_DIGITS:  # most are one token
            found = _parts(core)
        else:
            found = tuple(chain.from_iterable(map(_parts, set(_TOKEN.findall(chunk)))))
        if len(chunk) <= MAX_CHUNK:
            if len(self) >= MAX_CHUNKS:
                self.clear()
            self[chunk] = found
        return found


_CHUNKS = _Chunks()


@lru_cache(maxsize=20_000)
def _parts(raw: str) -> tuple[str, ...]:
    """Return the tokens that a run of characters is made of, each once."""
    if not raw.isascii() and (dense := _DENSE.findall(raw)):
        pairs = [run[at : at + 2] for run in dense for at in range(max(len(run) - 1, 1))]
        rest = [token for part in _DENSE.sub(" ", raw).split() for token in _parts(part)]
        return tuple(dict.fromkeys(pairs + rest))
    if raw[0].isdigit() or "@" in raw or "/" in raw or "." in raw:
        zeros = _ZEROS.match(raw)
        token = zeros[1] if zeros else raw.rstrip(_PATH_END).lower()
        return (token,) if token else ()
    found: dict[str, None] = {}
    for part in raw.split("_"):
        words = (part,) if part[1:].islower() or part.isupper() else _CAMEL.split(part)
        found.update((stem, None) for word in words if (stem := _stem(word.lower())))
    return tuple(found)


def _stem(word: str) -> str:
    """Return a word without its ending; empty for a function word or a lone letter."""
    if word in FUNCTION_WORDS or (len(word) < 2 and not word.isdigit()):
        return ""
    for suffix in _SUFFIXES:
        if len(word) > 4 and word.endswith(suffix):
            word = word[: -len(suffix)]
            break
    return word[:-1] if len(word) > 4 and word.endswith("e") else word


@lru_cache(maxsize=50_000)
def weight(token: str) -> float:
    """Return how much a token counts: 3 for an address, path or dotted name, 2 with digits (0.5 if short), else 1.

    Examples
    --------
    >>> [weight(token) for token in ("anna@x.org", "utils.py", "2024", "50", "send")]
    [3.0, 3.0, 2.0, 0.5, 1.0]
    """
    if "@" in token or "/" in token or "." in token.strip("."):
        return 3.0
    if any(map(str.isdigit, token)):
        return 2.0 if len(token) >= 3 else 0.5
    return 1.0


DISTINCT = 2.0
"""Weight of a token from which it names one thing: an address, a path, a name with digits."""


def is_name(token: str) -> bool:
    """Tell whether a token names one thing, by its :func:`weight`.

    Examples
    --------
    >>> is_name("utils.py"), is_name("2024"), is_name("send")
    (True, True, False)
    """
    return weight(token) >= DISTINCT


def mass(found: Set[str]) -> float:
    """Return the sum of the weights; they are multiples of 0.5, so that their order does not matter."""
    return sum(map(weight, found), 0.0)


def overlap(first: Set[str], second: Set[str]) -> float:
    """Return how much two sets share: the cosine of their weights, in [0, 1]; 0 if either is empty.

    Examples
    --------
    >>> overlap(tokens("send 500 to anna@x.org"), tokens("send money to anna@x.org"))
    0.7302967433402214
    """
    shared = mass(first & second)
    return shared / sqrt(mass(first) * mass(second)) if shared else 0.0


STRETCH, MAX_STRETCHES = 500, 3
"""Characters of a stretch of a long result, and how many are read that may tell their reader to do something."""

AROUND_STRETCH = 150
"""Characters that are read before and behind it."""

_CUES = (
    "you must",
    "you should",
    "you need to",
    "you have to",
    "please",
    "ignore",
    "instruction",
    "important",
    "immediately",
    "urgent",
    "assistant",
    "before you",
    " task",
    " ai ",  # the spaces keep "said" out
)
"""Phrases of instructions to an agent; all of a long result is searched for them, which costs next to nothing."""

MAX_SENTENCES = 300
"""Sentences kept of one result, half from each end."""

MIN_SENTENCE, MAX_SENTENCE = 12, 200
"""Characters of a sentence: shorter ones say too little, longer ones are cut into pieces. In a script without spaces a
character counts double towards the shortest."""

FIELD_WORDS = 6
"""A line ``key: value`` whose value has at most this many words is a field of a record, not prose."""

_WRAPPED = lazy_regex(r"\\\n[ \t]{0,40}\\?")  # YAML wraps a double-quoted scalar with a backslash at the line's end
_ESCAPES = lazy_regex(r"\\[nrt]")
_QUOTES = lazy_regex(r"\\([\"'])")
_JSON_NEXT = lazy_regex(
    r"[,{\[\"'\]}](?:(?<=[\"'\]}\d el],)\s{0,20}(?=[\"'{])|(?<=[{\[])\s{0,20}(?=[\"'{])|(?<=[\"'\]}])\s{0,20}(?=[}\]]))"
)
_SCRAP = lazy_regex(r"\n(?<=\n\n)[^\n]{1,5}(?=\n\n)")
"""A line between empty ones that is too short for a sentence: JSON leaves many behind."""
_COMMENT = lazy_regex(r"<!--|-->")
_TAG = lazy_regex(r"<(/?[A-Za-z!][^<>]{0,500})>")
_FIELD = lazy_regex(r"[\s\-*>#{\[]{0,20}[\"']?([\w][\w .@/()-]{0,60}?)[\"']?\s?[:=]\s(.{0,400})", re.DOTALL)
_COMMANDS = lazy_regex(
    r"\b(?:you (?:must|should|need to|have to|can|may)|please|kindly|must|now|instead)\b|\b(?:this|these|following|"
    r"commands?|instructions?|steps?)\Z",
    re.IGNORECASE,
)
"""Words in front of a colon that ask the reader to act; a bare verb there names a field ("Pay to:")."""
_TOLD = word_set("a all an any every her him his it its me my our that the their them this to us your")
"""Words behind the verb of a command, which names of fields, such as "contact email address", do not have."""
_BULLET = lazy_regex(r"(?:[-*+>#•|]|\d{1,3}[.)])(?:\s|$)")
_STAMP = lazy_regex(r"\W{0,3}\d{1,4}[-:/.]\d\d")
_KEPT_SIGNS = ".!?。！？؟।"
_ENDS = lazy_regex(
    rf"[{_KEPT_SIGNS}:;=#*/%+~|_-](?:(?<=[.!?])[\"')\]»”]{{0,3}} +(?=[^ ])|(?<=[。！？؟।])"
    r"|(?<=[a-z]{3}:) +(?=[A-Z][a-z]{0,40}(?:[ ',]|\Z))|(?<=;) +|(?<=[=#*/%+~|_-])[=#*/%+~|_-]{2,499})"
)
"""Ends of sentences within a paragraph, whose white space is spaces alone, with the sign before them: signs are rarer
than spaces. Some of the signs belong to the sentence."""
_UNSEEN = dict.fromkeys([0xAD, 0x34F, 0xFEFF, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070)])
"""Characters that a person does not see: soft hyphens, zero-width and direction marks."""
_SMUGGLED: dict[int, str] = {0xE0000 + at: chr(at) for at in range(0x20, 0x7F)}
"""Tag characters of Unicode, which a model may read as the ASCII they stand for."""
_HIDDEN = lazy_regex("[\xad\u034f\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff\U000e0020-\U000e007e]")
"""One of both; ranges are looked for many times faster than characters one by one."""
_DENSE_PROSE = lazy_regex("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]+")
"""Scripts without spaces between words: Thai, Lao, Japanese, Chinese."""


@read_once
def sentences(text: str) -> list[str]:
    r"""Return the prose sentences of a tool result in order, each once, 12 to 200 characters.

    Escapes and line wraps of YAML and JSON are undone, tags and unseen characters are cut out. A line ``key: value``
    with at most six words is a field and left out, unless it tells its reader to do something, and a lone word is a
    name. Rules of three or more equal signs, semicolons and dated lines part sentences, too. Of a result beyond
    32,000 characters 1,000 are read from each end, and between them the three stretches with the most words that
    instructions to an agent hold; of more than 300 sentences half from each end.

    Examples
    --------
    >>> sentences("id: 7\nbody: Dear tenant,\n  the rent rises in May. Please\n  adjust your order.\nread: true")
    ['Dear tenant, the rent rises in May.', 'Please adjust your order.']
    >>> sentences('{"id": 7, "note": "The rent rises in May, as agreed.", "read": true}')
    ['The rent rises in May, as agreed.']
    """
    if len(text) > LONG:
        text = _skimmed(text)
    if not text.isascii() and _HIDDEN.search(text) is not None:
        text = text.translate(_UNSEEN | _SMUGGLED)
    if "\\" in text:
        text = _QUOTES.sub(r"\1", _ESCAPES.sub("\n", _WRAPPED.sub(" ", text)))
    text = _JSON_NEXT.sub(lambda sign: sign[0][0].strip(",") + "\n\n", text)
    if "--" in text:
        text = _COMMENT.sub("\n\n", text)
    if "<" in text:
        text = _TAG.sub(lambda tag: f"\n\n{tag[1]}\n\n" if _says(tag[1]) else "\n\n", text)
    found: dict[str, None] = {}
    for paragraph in _paragraphs(_SCRAP.sub("", text)):
        least = MIN_SENTENCE if paragraph.isascii() else MIN_SENTENCE // 2
        for sentence in _parted(paragraph) if len(paragraph) >= least else ():
            for part in _cut(sentence) if len(sentence) >= MIN_SENTENCE // 2 else ():
                piece, dense = part.strip(" \t\"'"), _dense(part)
                if len(piece) + dense >= MIN_SENTENCE and (dense or len(piece.split(None, 1)) > 1):
                    found[piece] = None
    kept = list(found)
    return kept if len(kept) <= MAX_SENTENCES else kept[: MAX_SENTENCES // 2] + kept[-(MAX_SENTENCES // 2) :]


def _skimmed(text: str) -> str:
    """Return what is read of a long result: its ends, and stretches that may tell their reader to do something."""
    half = SKIMMED // 2
    end, lower = len(text) - half, text.lower()
    if len(lower) != len(text):  # a few letters become two: places would be others
        lower = text
    cues: Counter[int] = Counter()
    for cue in _CUES:
        at = lower.find(cue, half, end)
        while at >= 0:
            cues[at // STRETCH] += 1
            # Once a stretch, or one phrase over and over would outweigh several.
            at = lower.find(cue, (at // STRETCH + 1) * STRETCH, end)
    kept = sorted(sorted(cues, key=lambda number: (-cues[number], number))[:MAX_STRETCHES])
    parts, after = [text[:half]], half
    for number in kept:
        begin = max(number * STRETCH - AROUND_STRETCH, after)
        after = min((number + 1) * STRETCH + AROUND_STRETCH, end)
        parts.append(text[begin:after])
    return "\n\n".join([*parts, text[end:]])


def _parted(paragraph: str) -> list[str]:
    """Return a paragraph's sentences, without what stands between them."""
    pieces, at = [], 0
    for end in _ENDS.finditer(paragraph):
        begin = end.start()
        pieces.append(paragraph[at : begin + 1 if paragraph[begin] in _KEPT_SIGNS else begin])
        at = end.end()
    return [*pieces, paragraph[at:]]


def _cut(sentence: str) -> list[str]:
    """Return a sentence in pieces of at most 200 characters, cut between words where they are no longer than half."""
    pieces, at = [], 0
    while len(sentence) - at > MAX_SENTENCE:
        end = sentence.rfind(" ", at + MAX_SENTENCE // 2, at + MAX_SENTENCE) + 1 or at + MAX_SENTENCE
        pieces.append(sentence[at:end])
        at = end
    return [*pieces, sentence[at:]]


def _paragraphs(text: str) -> list[str]:
    """Return the lines of prose, wrapped ones joined, dated ones (a log) not; fields only where they give commands."""
    found: list[list[str]] = [[]]
    for line in text.split("\n"):
        if not line or line.isspace():
            if found[-1]:
                found.append([])
            continue
        field = _FIELD.match(line) if ":" in line or "=" in line else None
        if field and not _commands(field[1]):
            stripped = " ".join(line[field.start(2) :].split()).strip("|>")
            found.append([stripped] if _says(stripped) else [])
            continue
        # most lines have no other white space than single spaces
        bare = "  " not in line and line.isprintable()
        stripped = line.strip(" ") if bare else " ".join(line.split())
        bullet = _BULLET.match(stripped)
        if field or bullet or _STAMP.match(stripped):
            found.append([])
        found[-1].append(stripped[bullet.end() :] if bullet else stripped)
    return [" ".join(lines) for lines in found if lines]


@lru_cache(maxsize=1024)  # records have the same fields
def _commands(key: str) -> bool:
    """Return whether what stands in front of a colon is no name of a field but tells the reader what to do.

    It says so; or it is longer than names are, five words or four and a number, in whatever language; or it begins with
    a verb, and what follows points at something: "send it to", not "contact email address".
    """
    if _COMMANDS.search(key):
        return True
    words = key.lower().split()
    plain = key.replace(" ", "").isalpha()
    if len(words) > 4 or (len(words) == 4 and not plain):
        return True
    return len(words) > 2 and gate(key) >= 0.5 and not (plain and _TOLD.isdisjoint(words))


def _says(value: str) -> bool:
    """Return whether the value of a field or the inside of a tag is prose: long, unfinished or a command.

    Of a script without spaces a pair of characters counts as a word.
    """
    if len(value) < MIN_SENTENCE // 2:
        return False
    goes_on = value.endswith(",")
    return goes_on or len(value.split(None, FIELD_WORDS)) + _dense(value) // 2 > FIELD_WORDS or gate(value) > 0.0


def _dense(text: str) -> int:
    return 0 if text.isascii() else sum(map(len, _DENSE_PROSE.findall(text)))


MAX_STATEMENTS = 200
"""Statements of one message, half from each end."""

MAX_STATEMENT = 400
"""Characters of a statement; what goes on longer is cut into several."""

_FENCED = lazy_regex(r"```[^`]{0,20000}(?:```|\Z)|^[ \t]{0,9}>[^\n]*$", re.MULTILINE)
_STATEMENT_END = twin_regex(
    r"(?<=[.!?])[\"')\]*”»]{0,3}[\s\x1c-\x1f]+|\n|;[\s\x1c-\x1f]|(?<=[。！？])",
    plain=r"[\s\x1c-\x1f\"')\]*;](?:(?<=[.!?][\s\x1c-\x1f])[\s\x1c-\x1f]*|(?<=[.!?][\"')\]*])[\"')\]*]{0,2}[\s\x1c-\x1f]+"
    r"|(?<=\n)|(?<=;)[\s\x1c-\x1f])",
)
_LABEL = lazy_regex(r"(?:[-*+>#•|\s]{1,12}|\d{1,3}[.)]\s)?(?:\*\*)?(?:[A-Z]{4,12}:\s)?")


@read_once
def statements(text: str) -> list[str]:
    r"""Return what a message says, sentence by sentence, short ones too; code blocks and quoted lines are left out.

    Of a longer message than 20,000 characters half is read from each end.

    Examples
    --------
    >>> statements("THOUGHT: All green.\n- the file is saved\n```sh\nrm x\n```\n> they said so")
    ['All green.', 'the file is saved']
    """
    text = ends(text, MAX_CHARS, "\n")
    if "\\n" in text:  # a message inside JSON
        text = text.replace("\\n", "\n")
    if "```" in text or ">" in text:
        text = _FENCED.sub("\n", text)
    found: list[str] = []
    for line in _STATEMENT_END.split(text):
        label = _LABEL.match(line)
        said = line[label.end() if label else 0 :].strip()
        if any(map(str.isalpha, said)):
            found += [said[at : at + MAX_STATEMENT] for at in range(0, len(said), MAX_STATEMENT)]
    return found if len(found) <= MAX_STATEMENTS else found[: MAX_STATEMENTS // 2] + found[-(MAX_STATEMENTS // 2) :]


class TextAnalysis:
    """One text, read once: what detectors ask of it is computed on first use, and shared between them.

    Everything here takes time linear in the text, of which a bounded part is looked at (see each function). It is made
    once for each event and dropped with it.

    Parameters
    ----------
    raw : str
        The text as it came.
    skims : bool
        Whether less is looked at where the text is long, as of what a tool returned.

    Examples
    --------
    >>> analysis = TextAnalysis("Please send 50.0 euros to Anna. The account is anna@x.org, as agreed last week.")
    >>> sorted(analysis.tokens)[:4], len(analysis.sentences)
    (['50', 'account', 'agre', 'anna'], 2)
    >>> analysis.part(20).tokens is analysis.part(20).tokens, analysis.part(10_000) is analysis
    (True, True)
    """

    def __init__(self, raw: str, *, skims: bool = False) -> None:
        self.raw = raw
        self._skims = skims
        self._parts: dict[tuple[int, str], TextAnalysis] = {}

    def part(self, most: int, between: str = " ") -> TextAnalysis:
        """Return the analysis of at most ``most`` characters, half from each end: of this text where it is shorter.

        Of a text beyond 32,000 characters that is skimmed it is at most 2,000.
        """
        if len(self.raw) <= most:
            return self
        most = most_of(self.raw, most) if self._skims else most
        found = self._parts.get((most, between))
        if found is None:
            found = self._parts[most, between] = TextAnalysis(ends(self.raw, most, between))
        return found

    @cached_property
    def tokens(self) -> frozenset[str]:
        """See :func:`tokens`."""
        return tokens(self.raw)

    @cached_property
    def sentences(self) -> list[str]:
        """See :func:`sentences`; not to be changed."""
        return sentences(self.raw)

    @cached_property
    def statements(self) -> list[str]:
        """See :func:`statements`; not to be changed."""
        return statements(self.raw)

    @property
    def is_blank(self) -> bool:
        """True if there is nothing but spaces."""
        return not self.raw or self.raw.isspace()
