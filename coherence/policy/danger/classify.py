"""The rows of the table that a tool call meets."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice

import msgspec

from coherence.core.lazy import lazy_regex
from coherence.core.validation import check_text
from coherence.core.words import word_set
from coherence.policy.danger.arguments import is_shell, read_call, runs_code
from coherence.policy.danger.calls import WRITES_CODE, stands_for
from coherence.policy.danger.code import GIVEN_CODE
from coherence.policy.danger.danger import UNJUDGED, Command, Danger, Match, ToolUse, command_of, short
from coherence.policy.danger.follow import followed
from coherence.policy.danger.table import DEFAULT
from coherence.policy.danger.unwrap import POWERSHELLS, Unwrapper


def classify(tool: str, arguments: bytes | object, table: Sequence[Danger] = DEFAULT) -> Match | None:
    r"""Return why a tool call is destructive, or None where no row of the table says so.

    Shell text is found by the tool's name (``Bash``, ``run_command`` …) or by an argument's name (``command``, ``cmd``,
    ``script`` …) and read with the grammar of bash: every simple command counts, in subshells, substitutions, loops and
    behind wrappers too. It is not run, so what a variable or another file holds is not known; see the notes.

    Parameters
    ----------
    tool
        The tool's name.
    arguments
        The call's arguments: JSON as bytes, or the decoded value.
    table
        Rows that are asked in their order; the first that fires for a command wins.

    Raises
    ------
    TypeError
        If ``tool`` is no text, or ``table`` holds something that is no row.

    Notes
    -----
    Seen only as far as the text goes: a script file that is run, a function of another file, and a
    program name that is put together at run time from parts that hold no dangerous word, pass.

    Examples
    --------
    >>> classify("Bash", {"command": "cd x && sudo rm -rf y"}).what
    'rm -rf y deletes files'
    >>> classify("Bash", b'{"command": "echo \\"rm -rf x\\""}') is None
    True
    >>> from coherence.policy.danger.danger import Danger
    >>> mine = Danger(name="deploy", kind="deploy", says="deploys", programs=("deploy",))
    >>> classify("Bash", {"command": "deploy --prod"}, (*DEFAULT, mine)).kind
    'deploy'
    """
    found = judge(tool, arguments, table)
    return found.first or next(iter(found.enforced), None)


class Judgement:
    """Rows of a table that one call meets."""

    def __init__(self) -> None:
        self.first: Match | None = None
        """The first row that fires, of those that weigh."""
        self.enforced: list[Match] = []
        """The enforced rows that fire, eight at most."""

    def ask(self, rows: Iterable[Danger], given: Command | ToolUse, text: str, *, weighs: bool = True) -> None:
        """Take in the rows that fire for a command or a call."""
        for row in rows:
            wanted = weighs and self.first is None and row.weighs
            if (wanted or row.enforced) and (targets := row.fires(given)) is not None:
                match = Match(
                    name=row.name,
                    kind=row.kind,
                    what=f"{short(text, 80)} {row.says}",
                    part=short(text),
                    asking=row.asking,
                    targets=targets if row.enforced else (),
                )
                self.first = match if wanted else self.first
                if row.enforced and len(self.enforced) < MAX_ENFORCED and not self._says_so(match):
                    self.enforced.append(match)

    def _says_so(self, match: Match) -> bool:
        # many texts that are too long must not hide what comes after them
        return match.kind == UNJUDGED and any(each.kind == UNJUDGED for each in self.enforced)


MAX_ENFORCED = 8


def judge(tool: str, arguments: bytes | object, table: Sequence[Danger] = DEFAULT) -> Judgement:
    """Return everything that a table says of a tool call; the parameters are those of :func:`classify`.

    Examples
    --------
    >>> found = judge("Bash", {"command": "git push --force; rm -rf build"})
    >>> found.first.name, [match.name for match in found.enforced]
    ('git-push-force', ['force-push'])
    """
    check_text("tool", tool)
    kept = isinstance(arguments, bytes) and isinstance(table, tuple)
    newest = next(iter(_judged), None)
    if kept and newest is not None and newest[2] is table and newest[:2] == (tool, arguments):
        return newest[3]
    found = _judge(tool, arguments, table)
    if kept:
        _judged[:] = [(tool, arguments, table, found)]
    return found


_judged: list[tuple[str, object, Sequence[Danger], Judgement]] = []
"""The call that was judged last: a question about it is asked in two ways, and then it is made."""


def _judge(tool: str, arguments: bytes | object, table: Sequence[Danger]) -> Judgement:
    index = _index_of(table)
    call = read_call(tool, arguments)
    found = Judgement()
    for command in chain(_commands(call), _stands_for(call)):
        found.ask(index.about(command.program), command, command.text, weighs=not command.indirect)
        if len(found.enforced) >= MAX_ENFORCED or (found.first is not None and not index.enforces):
            break
    found.ask(index.weighing_calls if _is_judged(call) else index.calls, call, tool)
    return found


def commands_of(tool: str, arguments: bytes | object) -> Iterator[Command]:
    r"""Yield every shell command of a tool call, those that others run included.

    Examples
    --------
    >>> [command.args for command in commands_of("Bash", {"command": "sudo sh -c 'rm -r \"x y\"'"})][-1]
    ('-r', 'x y')
    """
    yield from _commands(read_call(tool, arguments))


class _Index:
    """The rows of a table by the programs that they look at."""

    def __init__(self, table: Sequence[Danger]) -> None:
        for row in table:
            if not isinstance(row, Danger):
                raise TypeError(f"table must hold rows of the class Danger, not {type(row).__name__}")
        self.table = table
        self.calls = [row for row in table if row.call]
        self.weighing_calls = [row for row in self.calls if row.weighs]
        self._rows = [row for row in table if not row.call]
        self.enforces = any(row.enforced for row in self._rows)
        self._of_any = [row for row in self._rows if not row.programs]
        names = {name for row in self._rows for name in row.programs}
        self._beginnings = tuple(name[:-1] for name in names if name.endswith("*"))
        self._of: dict[str, list[Danger] | None] = dict.fromkeys(names)

    def about(self, program: str) -> list[Danger]:
        """Return the rows that look at a program, in their order."""
        if program not in self._of:
            begins = program.startswith(self._beginnings)
            return [row for row in self._rows if row.about(program)] if begins else self._of_any
        if (rows := self._of[program]) is None:  # found when first asked for: an agent uses few of all programs
            rows = self._of[program] = [row for row in self._rows if row.about(program)]
        return rows


_indexes: list[_Index] = []
"""Of the table that was asked last: an agent has one."""


def _index_of(table: Sequence[Danger]) -> _Index:
    if not isinstance(table, tuple):  # it may change
        return _Index(table)
    newest = next(iter(_indexes), None)
    if newest is None or newest.table is not table:
        _indexes[:] = [newest := _Index(table)]
    return newest


_PLAIN = frozenset({"command", "cmd", "description", "timeout", "cwd", "workdir", "explanation", "reason"})
_READING = frozenset({"get", "list", "read", "find", "view", "show", "search", "calculate"})
_DATABASE = frozenset({"sql", "query", "db", "database", "postgres", "mysql", "sqlite", "mongo", "redis"})
_CODE_KEYS = word_set("code script source python javascript js input program snippet cell new_source expression")
_CODE_TOOL_KEYS = _CODE_KEYS | {"", "command", "cmd", "text", "content"}


def _is_judged(call: ToolUse) -> bool:
    """Return whether a call is judged by its commands alone, or only reads."""
    words = call.words
    plain = is_shell(words) and POWERSHELLS.isdisjoint(words) and all(key in _PLAIN for key, _ in call.pairs)
    return plain or (words[:1] != () and words[0] in _READING and _DATABASE.isdisjoint(words))


def _stands_for(call: ToolUse) -> Iterator[Command]:
    """Yield the commands that a tool stands for."""
    if not _is_judged(call):
        unwrap = Unwrapper()
        for command in stands_for(call):
            yield from (msgspec.structs.replace(inner, indirect=True) for inner in unwrap.words(command))


def _codes(call: ToolUse) -> list[str]:
    """Return the code in another language than shell that a tool runs."""
    if not WRITES_CODE.isdisjoint(call.words):
        return []
    runs = runs_code(call.words) or "code" in call.words or not POWERSHELLS.isdisjoint(call.words)
    keys = _CODE_TOOL_KEYS if runs else _CODE_KEYS
    return [value for key, value in call.pairs if key in keys]


def _commands(call: ToolUse) -> Iterator[Command]:
    unwrap = Unwrapper()
    for script in call.scripts:
        yield from followed(unwrap.script(script), unwrap.script)
    for argv in call.argvs:
        yield from unwrap.words(command_of(argv, text=short(" ".join(argv))))
    for code in _codes(call):
        yield from unwrap.words(command_of((GIVEN_CODE, "-c", code), text=short(code)))
    runs = runs_code(call.words)
    magics = [text for _, code in call.pairs if runs and ("!" in code or "%%" in code) for text in _magics(code)]
    for named in (*call.of_program, *magics):
        for command in followed(unwrap.script(named), unwrap.script):
            yield msgspec.structs.replace(command, indirect=True)


MAX_MAGICS = 100
_CELL = lazy_regex(r"\s*%%(?:bash|sh|script bash)\b[^\n]*\n")
_LINE = lazy_regex(r"^[ \t]{0,8}!(?P<text>[^\n=]{1,2000})", re.MULTILINE)


def _magics(code: str) -> Iterator[str]:
    """Yield the shell texts of a notebook's cell: ``!rm x``, ``%%bash``."""
    if (cell := _CELL.match(code)) is not None:
        yield code[cell.end() :][:20_000]
    else:
        yield from (found["text"] for found in islice(_LINE.finditer(code), MAX_MAGICS))
