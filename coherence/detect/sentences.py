"""Prose sentences of a tool result: what a writer could say to the agent that reads it."""

from __future__ import annotations

import re

from coherence.core.validation import ends
from coherence.detect.directives import gate

MAX_CHARS = 40_000
"""Characters of one result that are looked at, half from each end."""

MAX_SENTENCES = 300
"""Sentences kept of one result, half from each end."""

SHORTEST, LONGEST = 12, 200
"""Characters of a sentence: shorter ones say too little, longer ones are cut into pieces. In a script without spaces a
character counts double towards the shortest."""

FIELD_WORDS = 6
"""A line ``key: value`` whose value has at most this many words is a field of a record, not prose."""

_WRAPPED = re.compile(r"\\\n[ \t]{0,40}\\?")  # YAML wraps a double-quoted scalar with a backslash at the line's end
_ESCAPES = re.compile(r"\\[nrt]")
_QUOTES = re.compile(r"\\([\"'])")
_JSON_NEXT = re.compile(
    r"[,{\[\"'\]}](?:(?<=[\"'\]}\d el],)\s{0,20}(?=[\"'{])|(?<=[{\[])\s{0,20}(?=[\"'{])|(?<=[\"'\]}])\s{0,20}(?=[}\]]))"
)
_SCRAP = re.compile(r"\n(?<=\n\n)[^\n]{1,5}(?=\n\n)")
"""A line between empty ones that is too short for a sentence: JSON leaves many behind."""
_COMMENT = re.compile(r"<!--|-->")
_TAG = re.compile(r"<(/?[A-Za-z!][^<>]{0,500})>")
_FIELD = re.compile(r"[\s\-*>#{\[]{0,20}[\"']?([\w][\w .@/()-]{0,60}?)[\"']?\s?[:=]\s(.{0,400})", re.DOTALL)
_COMMANDS = re.compile(
    r"\b(?:you (?:must|should|need to|have to|can|may)|please|kindly|must|now|instead)\b|\b(?:this|these|following|"
    r"commands?|instructions?|steps?)\Z",
    re.IGNORECASE,
)
"""What in front of a colon tells the reader to do what comes behind it; a bare verb there names a field ("Pay to:")."""
_BULLET = re.compile(r"(?:[-*+>#•|]|\d{1,3}[.)])(?:\s|$)")
_STAMP = re.compile(r"\W{0,3}\d{1,4}[-:/.]\d\d")
_ENDS = re.compile(
    r"(?<=[a-z]{3}):\s+(?=[A-Z])|(?<=[.!?])[\"')\]»”]{0,3}\s+(?=\S)|(?<=[。！？؟।])|;\s+|[=#*/%+~|_-]{3,500}"
)
_UNSEEN = dict.fromkeys([0xAD, 0x34F, 0xFEFF, *range(0x200B, 0x2010), *range(0x202A, 0x202F), *range(0x2060, 0x2070)])
"""Characters that a person does not see: soft hyphens, zero-width and direction marks."""
_SMUGGLED: dict[int, str] = {0xE0000 + at: chr(at) for at in range(0x20, 0x7F)}
"""Tag characters of Unicode, which a model may read as the ASCII they stand for."""
_DENSE = re.compile("[\u0e00-\u0eff\u3040-\u30ff\u3400-\u9fff]+")
"""Scripts without spaces between words: Thai, Lao, Japanese, Chinese."""


def sentences(text: str) -> list[str]:
    r"""Return the prose sentences of a tool result in order, each once, 12 to 200 characters.

    Escapes and line wraps of YAML and JSON are undone, tags and unseen characters are cut out. A line ``key: value``
    with at most six words is a field and left out, unless it tells its reader to do something, and a lone word is a
    name. Rules of three or more equal signs, semicolons and dated lines part sentences, too. Of a result beyond
    40,000 characters half is read from each end, and likewise of more than 300 sentences.

    Examples
    --------
    >>> sentences("id: 7\nbody: Dear tenant,\n  the rent rises in May. Please\n  adjust your order.\nread: true")
    ['Dear tenant, the rent rises in May.', 'Please adjust your order.']
    >>> sentences('{"id": 7, "note": "The rent rises in May, as agreed.", "read": true}')
    ['The rent rises in May, as agreed.']
    """
    text = ends(text, MAX_CHARS, "\n\n")
    if not text.isascii():
        text = text.translate(_UNSEEN | _SMUGGLED)
    text = _WRAPPED.sub(" ", text)
    text = _QUOTES.sub(r"\1", _ESCAPES.sub("\n", text))
    text = _COMMENT.sub("\n\n", _JSON_NEXT.sub(lambda sign: sign[0][0].strip(",") + "\n\n", text))
    text = _TAG.sub(lambda tag: f"\n\n{tag[1]}\n\n" if _says(tag[1]) else "\n\n", text)
    found: dict[str, None] = {}
    for paragraph in _paragraphs(_SCRAP.sub("", text)):
        for sentence in _ENDS.split(paragraph) if len(paragraph) >= SHORTEST // 2 else ():
            for part in _cut(sentence) if len(sentence) >= SHORTEST // 2 else ():
                piece, dense = part.strip(" \t\"'"), _dense(part)
                if len(piece) + dense >= SHORTEST and (dense or len(piece.split(None, 1)) > 1):
                    found[piece] = None
    kept = list(found)
    return kept if len(kept) <= MAX_SENTENCES else kept[: MAX_SENTENCES // 2] + kept[-(MAX_SENTENCES // 2) :]


def _cut(sentence: str) -> list[str]:
    """Return a sentence in pieces of at most 200 characters, cut between words where they are no longer than half."""
    pieces, at = [], 0
    while len(sentence) - at > LONGEST:
        end = sentence.rfind(" ", at + LONGEST // 2, at + LONGEST) + 1 or at + LONGEST
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
        field = _FIELD.match(line)
        if field and not _COMMANDS.search(field[1]):
            stripped = " ".join(line[field.start(2) :].split()).strip("|>")
            found.append([stripped] if _says(stripped) else [])
            continue
        stripped = " ".join(line.split())
        bullet = _BULLET.match(stripped)
        if field or bullet or _STAMP.match(stripped):
            found.append([])
        found[-1].append(stripped[bullet.end() :] if bullet else stripped)
    return [" ".join(lines) for lines in found if lines]


def _says(value: str) -> bool:
    """Return whether the value of a field or the inside of a tag is prose: long, unfinished or a command.

    Of a script without spaces a pair of characters counts as a word.
    """
    if len(value) < SHORTEST // 2:
        return False
    goes_on = value.endswith(",")
    return goes_on or len(value.split(None, FIELD_WORDS)) + _dense(value) // 2 > FIELD_WORDS or gate(value) > 0.0


def _dense(text: str) -> int:
    return 0 if text.isascii() else sum(map(len, _DENSE.findall(text)))
