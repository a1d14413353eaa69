r"""Shell lines taken apart: commands, their words, where they write, the here-documents that they are given.

This is no shell grammar. Quotes, pipes, lists and here-documents are respected, which is enough to tell the command
that a line is about from what merely stands around it.
"""

from __future__ import annotations

import re
from typing import NamedTuple, TypeAlias

from coherence.core.lazy import lazy_regex

MAX_LINE = 2_000
"""Characters of a line that are read, once its here-documents are taken out."""

MAX_DOCUMENT = 20_000
"""Characters of a line, with its here-documents, that are looked at."""

MAX_DOCUMENTS = 8
"""Here-documents of one line."""

MAX_GROUPS = 32
"""Pipelines of one line."""

MAX_COMMANDS = 16
"""Commands of one pipeline."""


class ShellCommand(NamedTuple):
    """One command with its redirections."""

    words: list[str]
    """Without quotes."""
    tokens: list[str]
    """As they were written, redirections into files included."""
    written: list[str]
    """The files that it writes to."""
    documents: list[str]
    """The here-document that it is given, if any."""


Group: TypeAlias = list[ShellCommand]
"""A pipeline."""

_DOCUMENT = lazy_regex(r"(?<!<)<<-?[ \t]*(['\"]?)([A-Za-z_]\w{0,40})\1")
_MARK = "\0"
_TOKEN = lazy_regex(
    r"(?P<joint>&&|\|\||\|&|[;()\n]|&(?!>)|\|)"
    r"|(?P<into>(?:&|[0-9])?>>?(?:&[0-9-]|\|)?|<<<|<)"
    r"|#[^\n]*"
    r"|(?P<word>(?:[^\s;&|()'\"`\\<>$]|\\.|'[^']*+'?|\"(?:[^\"\\]|\\.)*+\"?|`[^`\n]*+`?|\$(?:\([^()\n]*+\)?)?)++)"
    r"|.",
    re.DOTALL,
)
_KEYWORDS = frozenset(("do", "then", "else", "elif", "if", "while", "until", "!", "{", "}", "done", "fi", "esac"))


def parse_line(line: str) -> tuple[list[Group], list[str]]:
    """Return the pipelines of a line and what stands behind each: ``&&``, ``||``, ``;``, ``&``, a line's end.

    Examples
    --------
    >>> groups, joints = parse_line("cd src && cat a.txt 2>&1 | tail -5 > 'out.txt'; true")
    >>> [[command.words for command in group] for group in groups]
    [[['cd', 'src']], [['cat', 'a.txt'], ['tail', '-5']], [['true']]]
    >>> groups[1][1].written, joints
    (['out.txt'], ['&&', ';', ''])
    """
    text, documents = _without_documents(line.replace(_MARK, " ").replace("\\\n", " "))
    groups: list[Group] = []
    joints: list[str] = []
    group: Group = []
    command = ShellCommand([], [], [], [])
    into = ""
    for token in _TOKEN.finditer(f"{text}\n"):
        kind, word = token.lastgroup, token[0]
        if kind == "word":
            if word[0] == _MARK:
                command.documents.append(documents[int(word[1])])
            elif into:
                if into[0] != "<" and not word.startswith("/dev/"):
                    command.written.append(_unquoted(word))
                    command.tokens.append(f"{into} {word}")
                into = ""
            elif command.words or word not in _KEYWORDS:
                command.words.append(_unquoted(word))
                command.tokens.append(word)
        elif kind == "into":
            into = "" if word[-1] in "0123456789-" else word
        elif kind == "joint":
            if (command.words or command.written) and len(group) < MAX_COMMANDS:
                group.append(command)
                command = ShellCommand([], [], [], [])
            if group and word not in ("|", "|&"):
                groups.append(group)
                joints.append(word)
                group = []
            into = ""
    if joints and joints[-1] == "\n":
        joints[-1] = ""
    return groups[:MAX_GROUPS], joints[:MAX_GROUPS]


def _unquoted(word: str) -> str:
    return word.replace("'", "").replace('"', "") if "'" in word or '"' in word else word


def _without_documents(line: str) -> tuple[str, list[str]]:
    """Return a line with each here-document replaced by a mark and its number, and the documents."""
    documents: list[str] = []
    if "<<" not in line:
        return line[:MAX_LINE], documents
    line = line[:MAX_DOCUMENT]
    for number in range(MAX_DOCUMENTS):
        start = _DOCUMENT.search(line)
        if start is None:
            break
        body = line.find("\n", start.end())
        body = len(line) if body < 0 else body
        end = re.compile(rf"\n[ \t]*{start[2]}[ \t]*(?=\n|$)").search(line, body)
        documents.append(line[body + 1 : end.start() if end else len(line)])
        rest = line[end.end() :] if end else ""
        line = f"{line[: start.start()]} {_MARK}{number} {line[start.end() : body]}{rest}"
    return line[:MAX_LINE], documents
