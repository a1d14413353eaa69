"""Shell lines taken apart: commands, their words, where they write, the here-documents that they are given.

This is no shell grammar. Quotes, pipes, lists and here-documents are respected, which is enough to tell the command
that a line is about from its surroundings.
"""

from __future__ import annotations

import re
from typing import NamedTuple, TypeAlias

from coherence.core.lazy import lazy_regex

MAX_LINE = 2_000
"""Characters of a line that are read, here-documents not counted."""

MAX_DOCUMENT = 20_000
"""Characters of a line, with its here-documents, that are looked at."""

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
    """The here-documents that it is given."""


Group: TypeAlias = list[ShellCommand]
"""A pipeline."""

_TOKEN = lazy_regex(
    r"(?P<joint>&&|\|\||\|&|[;()\n]|&(?!>)|\|)"
    r"|<<-?[ \t]*['\"]?(?P<document>[A-Za-z_]\w{0,40})['\"]?"
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
    text = line[:MAX_DOCUMENT].replace("\\\n", " ") + "\n"
    groups: list[Group] = []
    joints: list[str] = []
    group: Group = []
    command = ShellCommand([], [], [], [])
    waiting: list[tuple[str, ShellCommand]] = []  # here-documents, which begin on the next line
    into = ""
    at = read = 0
    while (token := _TOKEN.match(text, at)) and read <= MAX_LINE:
        kind, word, at = token.lastgroup, token[0], token.end()
        read += len(word)
        if kind == "document":
            waiting.append((token["document"], command))
        elif kind == "into":
            into = "" if word[-1] in "0123456789-" else word
        elif kind == "word":
            if into:
                if into[0] != "<" and not word.startswith("/dev/"):
                    command.written.append(_unquoted(word))
                    command.tokens.append(f"{into} {word}")
                into = ""
            elif command.words or word not in _KEYWORDS:
                command.words.append(_unquoted(word))
                command.tokens.append(word)
        elif kind == "joint":
            if (command.words or command.written) and len(group) < MAX_COMMANDS:
                group.append(command)
                command = ShellCommand([], [], [], [])
            if group and word not in ("|", "|&"):
                groups.append(group)
                joints.append(word)
                group = []
            if word == "\n":
                for end, owner in waiting:
                    at = _read_document(text, at, end, owner)
                waiting = []
            into = ""
    if group:
        groups.append(group)
        joints.append("")
    if joints and joints[-1] == "\n":
        joints[-1] = ""
    return groups[:MAX_GROUPS], joints[:MAX_GROUPS]


def _unquoted(word: str) -> str:
    return word.replace("'", "").replace('"', "")


def _read_document(text: str, at: int, end: str, owner: ShellCommand) -> int:
    """Give a command the here-document that begins here, and return where the text goes on."""
    last = re.compile(rf"^[ \t]*{end}[ \t]*$", re.MULTILINE).search(text, at)
    owner.documents.append(text[at : last.start() - 1 if last else len(text)])
    return last.end() if last else len(text)
