"""Shell lines taken apart: commands, what a line is about, and what it may have changed.

This is no shell grammar. Quotes, pipes, lists and here-documents are respected, which is enough to tell the command
that a line is about from its surroundings.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from hashlib import blake2b
from posixpath import basename
from typing import NamedTuple, TypeAlias

from coherence.core.lazy import lazy_regex
from coherence.core.validation import clean
from coherence.lessons.programs import (
    INTERPRETERS,
    LOOKS,
    NESTED,
    QUIET,
    READERS,
    TESTERS,
    TRIVIAL,
    VALUED,
    WRAPPERS,
    changes_by_words,
    writes_files,
)
from coherence.lessons.tokens import VERSION_BEHIND
from coherence.lessons.troubles import Made

MAX_LINE = 2_000
"""Characters of a line that are read, here-documents not counted."""

MAX_DOCUMENT = 20_000
"""Characters of a line, with its here-documents, that are looked at."""

MAX_GROUPS = 32
"""Pipelines of one line."""

MAX_COMMANDS = 16
"""Commands of one pipeline."""

DOCUMENT = "<<…"
"""Stands for a here-document where a command is shown."""

MAX_TEXT = 230
"""Characters of a command that are shown."""


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
                if into[0] != "<" and not word.startswith("/dev/"):  # what is read or thrown away changes nothing
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


# The purpose of a line, and its changes.


class _Read(NamedTuple):
    name: str
    intent: str
    changes: bool

    def shows(self) -> bool:
        return self.name in READERS or self.name in QUIET or self.intent[len(self.name) + 1 :].split(" ")[0] in LOOKS


def read_line(line: str) -> Made:
    """Reduce a shell line to what is kept of it.

    Parameters
    ----------
    line : str
        Any text; of a long one only the beginning is looked at.

    Examples
    --------
    >>> found = read_line("cd /repo && pip install pyyaml==6.0 2>&1 | tail -3")
    >>> found.intent, found.steps
    ('shell: pip install pyyaml', ('ran `pip install pyyaml==6.0`',))
    >>> read_line("python -m pytest -q tests/test_a.py::test_b").intent == read_line("pytest tests/test_a.py").intent
    True
    """
    return _read_line(line, 0)


def _read_line(line: str, depth: int) -> Made:
    groups, joints = parse_line(line)
    read = [[_read(command) for command in group] for group in groups]
    moves = (group[0].words for group, found in zip(groups, read, strict=True) if found[0].name == "cd")
    where = next((words[-1][:100] if len(words) > 1 else "~" for words in moves), "")
    main = _main(read)
    parts = [_part(*pair) if any(each.changes for each in pair[1]) else "" for pair in zip(groups, read, strict=True)]
    if main is None:
        steps = _joined(parts) or ((f"ran `cd {where}`",) if where else ())
        return Made(doing=digest(""), where=where, prior=steps, steps=steps, kind="shell")
    group, found, joint = groups[main], read[main], joints[main]
    at = next(at for at, each in enumerate(found) if each.intent)
    inner = _inner(group[at].words) if depth == 0 and found[at].name in _SHELLS else ""  # one level will do
    if inner:
        return _read_line(inner, 1)
    seen = _unviewed(group, found)
    return Made(
        intent=f"shell: {found[at].intent}",
        doing=digest(_doing(found[at].name, seen)),
        text=f"ran `{cut_to(_shown(seen))}`",
        where=where,
        steps=_joined(parts),
        prior=_joined(part for other, part in enumerate(parts) if other != main),
        kind="shell",
        quiet=found[at].name in QUIET,
        hidden=len(group) > at + 1 or joint in ("||", "&") or (joint in (";", "\n") and main + 1 < len(groups)),
    )


def _main(read: list[list[_Read]]) -> int | None:
    """Return the last group of a line that it can be about: one that does something before one that only shows."""
    about = [at for at, found in enumerate(read) if any(each.intent for each in found)]
    doing = [at for at in about if not next(each.shows() for each in read[at] if each.intent)]
    return next(reversed(doing or about), None)


# One command.

_SHELLS = frozenset(("bash", "sh", "zsh", "dash"))
_SETTING = frozenset(("export", "source", ".", "unset", "ulimit"))
_RUNS_LINE = lazy_regex("-[a-z]*c")
_ASSIGNMENT = lazy_regex(r"[A-Za-z_]\w*=")
_VERSIONED = lazy_regex(r"(python|pip|pypy|ruby|php|node|gcc|g\+\+|clang|java|lua|perl)[0-9][0-9.]*")
_SAME = {"gradlew": "gradle", "mvnw": "mvn", "py.test": "pytest", "nodejs": "node", "docker-compose": "docker compose"}
_PACKAGERS = frozenset(("npm", "yarn", "pnpm", "bun"))
_SHORT = {"i": "install", "t": "test", "add": "install"}
_WORDLIKE = lazy_regex(r"[a-z][a-z0-9:_-]*")
_VALUE = lazy_regex(r"[0-9][0-9:./a-z]*")
_SOURCE = lazy_regex(r".+\.(?:py|js|mjs|cjs|ts|tsx|jsx|rb|pl|php|sh|go|rs|java|kt|lua|r|R)")


@lru_cache(maxsize=1024)
def _name(word: str) -> str:
    name = basename(word[-100:].replace("\\", "/")).lower().removesuffix(".exe").removesuffix(".cmd")
    versioned = _VERSIONED.fullmatch(name)
    return versioned[1] if versioned else _SAME.get(name, name)


def _unwrapped(words: list[str]) -> int:
    """Return where the program stands, behind variables and what runs other programs."""
    at, end = 0, len(words)
    while at < end:
        if _ASSIGNMENT.match(words[at]):
            at += 1
            continue
        name = _name(words[at])
        skipped = WRAPPERS.get(name)
        if skipped is None and (skipped := WRAPPERS.get((name, *words[at + 1 : at + 2]))) is not None:
            at += 1
        if skipped is None:
            break
        at += 1
        while at < end and (words[at].startswith("-") or skipped > 0):
            if not words[at].startswith("-"):
                skipped -= 1
            elif words[at] in ("-u", "-n", "-g", "-w", "-p", "--package", "--with"):  # they take a word
                at += 1
            at += 1
    return at


def _inner(words: list[str]) -> str:
    """Return the line that a shell is started for: ``bash -lc '…'``."""
    at = _unwrapped(words)
    return words[at + 2] if at + 2 < len(words) and _RUNS_LINE.fullmatch(words[at + 1]) else ""


def _read(command: ShellCommand) -> _Read:
    words = command.words[_unwrapped(command.words) :]
    if not words:  # nothing but variables, or an empty redirection
        return _Read("", "", bool(command.words or command.written))
    name, rest = _name(words[0]), words[1:]
    if name in INTERPRETERS and len(rest) > 1 and rest[0] == "-m":
        name, rest = _name(rest[1]), rest[2:]
    if (name, rest[:1]) in (("docker", ["compose"]), ("uv", ["pip"])):
        name, rest = ("docker compose" if name == "docker" else "pip"), rest[1:]
    if name in _SHELLS and not rest:  # runs what comes through the pipe
        return _Read(name, "", True)
    if name in _SHELLS and not rest[0].startswith("-"):  # a script
        name, rest = _name(rest[0]), rest[1:]
    if name in TRIVIAL:
        return _Read(name, "", bool(command.written) or name in _SETTING)
    nouns, code = _nouns(name, rest, command.documents)
    return _Read(name, _intent(name, nouns, code), _changes(name, nouns, rest, command, code))


def _nouns(name: str, rest: list[str], documents: list[str]) -> tuple[list[str], str]:
    """Return the words of a command that are no flags nor values of flags, and the code that it is given."""
    nouns: list[str] = []
    code = documents[0] if documents and name in INTERPRETERS else ""
    valued = VALUED.get(name, frozenset())
    flag = ""
    for word in rest[:40]:
        if word.startswith("-") and len(word) > 1:
            flag = "" if "=" in word else word
        elif name in INTERPRETERS and flag in ("-c", "-e", "-r", "-p") and not nouns:
            code, flag = word, ""
        elif flag and (flag in valued or _VALUE.fullmatch(word)):  # a number or size behind any flag is its value
            flag = ""
        elif word != "-":
            nouns.append(word)
            flag = ""
    return nouns[:6], code


def _object(name: str, word: str) -> str:
    word = word[:200].rstrip("/").removeprefix("./") or word
    if "://" in word:
        return word.partition("?")[0]
    if name not in READERS and _SOURCE.fullmatch(word.partition("::")[0]):
        return basename(word.partition("::")[0])
    return VERSION_BEHIND.sub("", word) or word


def _intent(name: str, nouns: list[str], code: str) -> str:
    if code:
        return f"{name} -c {digest(' '.join(code.split()), 6).hex()}"
    if name in _PACKAGERS and nouns:
        nouns = nouns[1:] if nouns[0] in ("run", "run-script") else [_SHORT.get(nouns[0], nouns[0]), *nouns[1:]]
    objects = [_object(name, word) for word in nouns]
    if name in TESTERS:
        objects = objects[:1]
    elif name in INTERPRETERS or _SOURCE.fullmatch(name):  # a word behind a script is a sub-command, else an argument
        first = 1 if name in INTERPRETERS else 0
        objects = objects[: first + any(map(_WORDLIKE.fullmatch, objects[first : first + 1]))]
    return " ".join([name, *objects[: 3 if name in NESTED else 2]])[:160]


def _changes(name: str, nouns: list[str], rest: list[str], command: ShellCommand, code: str) -> bool:
    if any(word in ("--help", "--version", "--dry-run", "--check", "-V") for word in rest):
        return False
    if code:
        return writes_files(code)
    if name == "tee" or (name == "cat" and command.written):
        return True
    if name in ("sed", "perl", "ruby") and any(word.startswith(("-i", "--in-place", "-pi")) for word in rest):
        return True
    if name in READERS or name in QUIET or (name in TESTERS and not {"--fix", "--write"} & set(rest)):
        return name == "find" and "-delete" in rest
    return changes_by_words(name, nouns, rest)


# What is shown, and what is compared.

_DISPLAY = lazy_regex(r"-v+|-q+|--(?:verbose|quiet|silent|color(?:=\w*)?|no-color|progress(?:=\w*)?|no-progress)")
_TEST_DISPLAY = lazy_regex(
    r"-[vqsxl]+|-r[a-zA-Z]|--(?:tb=\w*|no-header|lf|ff|durations=?\d*|maxfail=?\d*|nocapture|reporter=\w*)"
)
_SELECTS = frozenset(("-k", "-m", "-t", "-n", "-run", "--filter", "--tests", "-Dtest"))
_CONTROL = lazy_regex(r"[\x00-\x1f\x7f]+")


def _unviewed(group: Group, read: list[_Read]) -> Group:
    """Return a pipeline without the viewers at its end."""
    end = len(group)
    while end > 1 and not read[end - 1].changes and (not read[end - 1].intent or read[end - 1].shows()):
        end -= 1
    return group[:end]


def _shown(group: Group) -> str:
    return " | ".join(
        " ".join([*command.tokens, *(f"{DOCUMENT} ({_lines(document)} lines)" for document in command.documents)])
        for command in group
    )


def _part(group: Group, read: list[_Read]) -> str:
    """Return a change as a part of a fix: what was written into a file, or the command that ran."""
    command = group[0]
    if len(group) == 1 and command.written and command.documents:
        return wrote(command.written[0], command.documents[0])
    return f"ran `{cut_to(_shown(_unviewed(group, read)))}`"


def wrote(path: str, text: str) -> str:
    """Return a written file as a part of a fix; of more than a few lines only how many they are.

    Examples
    --------
    >>> wrote("/repo/.env", "DEBUG=1"), wrote("app.py", "import os" + chr(10) * 5 + "print(1)")
    ('wrote repo/.env: `DEBUG=1`', 'wrote app.py (6 lines)')
    """
    text = text.strip()
    path = cut_to("/".join(path.split("/")[-2:]) if path.startswith("/") else path)[:100] or "a file"
    if len(text) <= 120 and text.count("\n") < 3:
        return f"wrote {path}: `{cut_to(text)}`"
    return f"wrote {path} ({_lines(text)} lines)"


def _lines(text: str) -> int:
    return text.strip().count("\n") + 1


def _joined(parts: Iterable[str]) -> tuple[str, ...]:
    """Return parts of a fix in order, with commands that follow each other as one."""
    joined: list[str] = []
    for part in filter(None, parts):
        if joined and part.startswith("ran `") and joined[-1].startswith("ran `"):
            joined[-1] = f"ran `{cut_to(f'{joined[-1][5:-1]} && {part[5:-1]}')}`"
        else:
            joined.append(part)
    return tuple(joined[:4])


def _doing(name: str, group: Group) -> str:
    words = [word for command in group for word in command.words if not _DISPLAY.fullmatch(word)]
    if name in _PACKAGERS:
        words = [word for word in words if word not in ("run", "run-script")]
    if name not in TESTERS and "test" not in words[:4]:
        return " ".join(words)
    kept: list[str] = []  # another selection of the same tests is no other deed
    selects = False
    for word in words:
        selected, selects = selects, False
        if selected or _TEST_DISPLAY.fullmatch(word):
            continue
        selects = word in _SELECTS and not (word == "-m" and kept and _name(kept[-1]) in INTERPRETERS)
        if not selects:
            kept.append(word.partition("::")[0])
    return " ".join(kept)


def cut_to(text: str, most: int = MAX_TEXT) -> str:
    """Return the beginning of a text as one line of limited length."""
    text = clean(" ".join(_CONTROL.sub(" ", text[: 4 * most]).split()))
    return text if len(text) <= most else f"{text[: most - 1]}…"


def digest(text: str, size: int = 8) -> bytes:
    """Return so many bytes of a hash of a text."""
    return blake2b(text.encode("utf-8", "replace"), digest_size=size).digest()
