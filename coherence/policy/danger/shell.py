"""Reading shell text: a script's simple commands and redirections, wherever they stand in it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from coherence.core.lazy import lazy_regex
from coherence.policy.danger.danger import Command, command_of, short
from coherence.policy.danger.signs import count_signs, may_exceed

if TYPE_CHECKING:
    from tree_sitter import Language, Node

FEEDERS = lazy_regex(
    r"(?<![\w.-])(?:curl|wget|iwr|irm|invoke-webrequest|invoke-restmethod|base64|base32|xxd|openssl|uudecode|rev)(?![\w.-])"
    r"|\.download(?:string|file|data)\b",
    re.IGNORECASE,
)
"""Programs whose output cannot be read before they run."""

_SEPARATOR = lazy_regex(r"[;&|\n(){}`]+")
_QUOTES = lazy_regex(r"[\"'\\]")
_NOT_WORDS = frozenset({"variable_assignment", "file_redirect", "heredoc_redirect", "herestring_redirect"})
_SPEAKS = lazy_regex(r"\s*[\"'\\]*(?:echo|printf|yes)\b")
_DESCRIPTORS = "0123456789{}_abcdefghijklmnopqrstuvwxyz"
_SHOWN = 2_000  # bytes of a command that are looked at as text
_SEARCHED = 500  # bytes of a pipeline's stage in which its program is looked for; stages may be nested
MAX_NODES = 3_000
"""Statements and what they consist of, without single words, that are read in a script."""
MAX_WORDS = 2_000
"""Words of a command that are read."""
MAX_SIGNS = 500
"""Signs of a script (``|``, ``(``, ``$`` …) outside its quotes and here-documents: one that does not fit takes the
parser up to 0.1 ms, and for some the time grows with the square of their number."""
MAX_REMEMBERED = 4_000
"""Characters of a script whose commands are remembered for a moment."""
_KNOWN = 1_000  # characters of a variable that are kept: doubling one again and again would fill the memory
_MAY_NEST = lazy_regex(r"[$`(<>=]")
"""Signs without one of which a command has no other command, redirection or assignment in it."""
_VARIABLE = lazy_regex(r"\$\{?(\w{1,80})")
_PLAIN_WORDS = lazy_regex(r"[A-Za-z0-9_./:,@%+ \t-]+")
"""A command without quotes, variables or anything else that the shell replaces."""
_GLOB = lazy_regex(r"\w[*?]|[*?]\w|\[\w+\]\w|\w\[\w+\]")
_BRACES = lazy_regex(r"\{([^{}]+,[^{}]*)\}")


def simple_commands(script: str) -> Iterable[Command]:
    """Return every simple command of a script and every file that it redirects to, in their order.

    Subshells, groups, loops, functions, substitutions and both sides of ``&&`` all count: what a script may run, it
    is taken to run. A text that the grammar cannot read is read a second time, roughly, and yields itself as
    ``unread`` too. One that takes too long to parse is only read roughly, and yields itself as ``cut``. Takes linear
    time and never raises.

    Examples
    --------
    >>> [(command.program, *command.args) for command in simple_commands("cd x && X='rm -rf'; $X y > out")]
    [('cd', 'x'), ('rm', '-rf', 'y'), ('',)]
    """
    return _remembered(script) if len(script) <= MAX_REMEMBERED else _read(script)


@lru_cache(maxsize=8)  # a call is asked about, then made, and several detectors look at it
def _remembered(script: str) -> tuple[Command, ...]:
    return tuple(_read(script))


def _read(script: str) -> Iterator[Command]:
    script = script.replace("\0", "").replace("\r\n", "\n")
    source = script.encode("utf-8", "replace")
    few = not may_exceed(script, MAX_SIGNS) or count_signs(script, MAX_SIGNS) <= MAX_SIGNS
    root = parse(source) if few else None
    if root is None:
        yield from _roughly(script, cut=True)
        return
    known = {"IFS": " "}  # rm${IFS}-rf hides a blank from who looks for one
    heres = b"<<" in source
    may_nest = _MAY_NEST.search if not root.has_error else None
    dynamic = False
    stack: list[tuple[Node, str, str]] = [(root, "", "")]
    reads: dict[int, str] = {}
    left = MAX_NODES
    while stack:
        left -= 1
        if left < 0:
            yield Command(unread=script, text=short(script), cut=True)
            return
        node, stdin, fed_by = stack.pop()
        kind = node.type
        if kind == "pipeline":
            stack.extend(reversed(list(_stages(node, source, stdin, fed_by, known))))
            continue
        if kind == "variable_assignment":
            _learn(node, source, known)
        elif kind == "command":
            raw = text_of(node, source, _SHOWN)
            if node.end_byte - node.start_byte <= _SHOWN and _PLAIN_WORDS.fullmatch(raw):
                argv, unknown = tuple(raw.split()), False
            else:
                argv, unknown = _argv(node, source, known)
            argv = _aliased(argv, known)
            cut = len(argv) >= MAX_WORDS
            unread = script if unknown and not dynamic else ""  # once a script: many would take quadratic time
            dynamic = dynamic or unknown
            text = short(raw)
            brought = (reads.get(node.id, "") if reads else "") + (_brought(argv, known) if "$" in text else "")
            stdin_ = (_here_text(node, source, known) if heres else "") or stdin
            fields = {"fed_by": fed_by, "unread": unread, "text": text, "reads": brought, "cut": cut}
            yield command_of(argv, dynamic=unknown, stdin=stdin_, **fields)
            if may_nest is not None and len(raw) < _SHOWN // 4 and not may_nest(raw):
                continue  # words alone
        elif kind == "for_statement":
            _learn_loop(node, source, known)
        elif kind == "file_redirect":
            yield _redirect(node, source, known)
        elif kind in ("redirected_statement", "heredoc_redirect"):
            stdin = (_here_text(node, source, known) if heres else "") or stdin
            if kind == "redirected_statement" and (body := node.child_by_field_name("body")) is not None:
                reads[body.id] = _read_by(node, source, known)
        elif kind == "command_substitution" and source.startswith(b"`", node.start_byte):
            inside = text_of(node, source)[1:-1]
            if "\\`" in inside:
                yield from simple_commands(inside.replace("\\`", "`"))
        stack.extend((child, stdin, fed_by) for child in reversed(node.named_children) if child.named_child_count)
    if root.has_error:
        yield from _roughly(script)


def _roughly(script: str, *, cut: bool = False) -> Iterator[Command]:
    """Yield what stands between separators, quotes or not, and the text itself as unread."""
    for segment in _SEPARATOR.split(_QUOTES.sub("", script)):
        if words := tuple(segment.split()):
            yield command_of(words, text=short(segment))
    yield Command(unread=script, text=short(script), cut=cut)


def _stages(
    node: Node, source: bytes, stdin: str, fed_by: str, known: dict[str, str]
) -> Iterator[tuple[Node, str, str]]:
    for stage in node.named_children:
        yield stage, stdin, fed_by
        text = text_of(stage, source, _SEARCHED)
        if _SPEAKS.match(text) and stage.type == "command":
            argv, _ = _argv(stage, source, known)
            if argv[:1] == ("yes",):
                fed_by = "yes"
            else:
                stdin = " ".join(arg for arg in argv[1:] if not arg.startswith("-"))
        elif len(stdin) < _SHOWN:
            stdin += f"\n$({text})"  # what the next stage reads is what this one prints
        if found := FEEDERS.search(text):
            fed_by = found[0].lower()


def _learn(node: Node, source: bytes, known: dict[str, str]) -> None:
    name = node.child_by_field_name("name")
    value = node.child_by_field_name("value")
    if name is not None and value is not None:
        text, dynamic = word(value, source, known)
        if dynamic:
            known.pop(text_of(name, source), None)
            known["from " + text_of(name, source)] = text[:_KNOWN].replace(SPLIT, " ")
        elif len(text) <= _KNOWN:
            known[text_of(name, source)] = text.replace(SPLIT, " ")


def _learn_loop(node: Node, source: bytes, known: dict[str, str]) -> None:
    """Note what a loop's variable may hold; as a program's name it stays unknown."""
    variable = node.child_by_field_name("variable")
    if variable is not None:
        values = (word(child, source, known)[0] for child in node.children_by_field_name("value"))
        known["from " + text_of(variable, source)] = " ".join(values)[:_KNOWN].replace(SPLIT, " ")


def _aliased(argv: tuple[str, ...], known: dict[str, str]) -> tuple[str, ...]:
    """Remember what ``alias`` defines, and put it in the place of its name; no variable has a blank in its name."""
    if argv[:1] == ("alias",):
        for name, _, value in (arg.partition("=") for arg in argv[1:]):
            if value and len(value) <= _KNOWN:
                known["alias " + name] = value
    elif argv and (value := known.get("alias " + argv[0], "")):
        return (*value.split(), *argv[1:])
    return argv


def _argv(node: Node, source: bytes, known: dict[str, str]) -> tuple[tuple[str, ...], bool]:
    argv: list[str] = []
    dynamic = False
    for child in islice(node.named_children, MAX_WORDS):
        if child.type in _NOT_WORDS:
            continue
        text, unknown = word(child, source, known)
        if not argv:
            name = text.rpartition("/")[2]
            # "/bin/r?" runs whatever file has such a name.
            dynamic = (unknown and ("$" in name or text.startswith(("$(", "`", "<(")))) or (
                not source.startswith(b'"', child.start_byte) and _GLOB.search(name) is not None
            )
            if braces := _BRACES.fullmatch(text):
                text = braces[1].replace(",", SPLIT)
        if SPLIT in text:
            argv.extend(part for part in text.split(SPLIT) if part)
        else:
            argv.append(text)
    return tuple(argv), dynamic


def _redirect(node: Node, source: bytes, known: dict[str, str]) -> Command:
    text = text_of(node, source, _SHOWN)
    operator = text.lstrip(_DESCRIPTORS)
    if not operator.startswith((">", "&>", "<>")) or operator.startswith(">&") or not node.named_children:
        return Command()
    target, _ = word(node.named_children[-1], source, known)
    start = source.rfind(b"\n", max(0, node.start_byte - 100), node.start_byte) + 1 or max(0, node.start_byte - 100)
    shown = source[start : node.end_byte].decode("utf-8", "replace")
    return Command(writes=target.replace(SPLIT, " "), appends=operator.startswith((">>", "&>>")), text=short(shown))


def _brought(argv: tuple[str, ...], known: dict[str, str]) -> str:
    """Return the substitutions that variables in a command's words hold; no variable has a blank in its name."""
    found = (known.get("from " + name, "") for arg in argv for name in _VARIABLE.findall(arg[:_SHOWN])[:8])
    return " ".join(found)[:_SHOWN]


def _read_by(node: Node, source: bytes, known: dict[str, str]) -> str:
    """Return the file that a statement's redirection reads."""
    for child in node.named_children:
        if child.type == "file_redirect" and child.named_children:
            operator = source[child.start_byte : child.start_byte + 3].lstrip(b"0123456789")
            if operator.startswith(b"<") and not operator.startswith((b"<(", b"<&", b"<>")):
                return word(child.named_children[-1], source, known)[0].replace(SPLIT, " ") + " "
    return ""


def _here_text(node: Node, source: bytes, known: dict[str, str]) -> str:
    """Return the here-documents and here-strings that stand directly in a node."""
    parts: list[str] = []
    for child in node.named_children:
        if child.type == "heredoc_body":
            parts.append(text_of(child, source))
        elif child.type == "herestring_redirect" and child.named_children:
            parts.append(word(child.named_children[-1], source, known)[0].replace(SPLIT, " "))
        elif child.type == "heredoc_redirect":
            parts.extend(text_of(inner, source) for inner in child.named_children if inner.type == "heredoc_body")
    return "\n".join(parts)


SPLIT = "\0"
"""Stands where an unquoted variable's value is split into words; scripts lose their NULs before they are read."""

_EXPANSION = lazy_regex(r"\$\{?(\w+)(?:\[[@*\d]+\])?\}?")
_ESCAPED = lazy_regex(r"\\(\n|.)", re.DOTALL)
_ESCAPED_IN_QUOTES = lazy_regex(r'\\([$`"\\\n])')
_ANSI_C = lazy_regex(r"\\(x[0-9A-Fa-f]{1,2}|u[0-9A-Fa-f]{1,4}|U[0-9A-Fa-f]{1,8}|[0-7]{1,3}|.)", re.DOTALL)
_ANSI_C_LETTERS = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "a": "\a",
    "b": "\b",
    "e": "\x1b",
    "E": "\x1b",
    "f": "\f",
    "v": "\v",
}
_AT_RUN_TIME = frozenset(
    {"simple_expansion", "expansion", "command_substitution", "process_substitution", "arithmetic_expansion"}
)


MAX_SUBSTITUTION = 2_000
"""Bytes of a substitution that stay in the word: nested ones would take quadratic time, and are read by themselves."""

MAX_PARTS = 1_000
"""Parts of one word that are read: texts and variables side by side."""


def text_of(node: Node, source: bytes, most: int | None = None) -> str:
    """Return a node's source text, or the first ``most`` bytes of it."""
    end = node.end_byte if most is None else min(node.end_byte, node.start_byte + most)
    return source[node.start_byte : end].decode("utf-8", "replace")


def word(node: Node, source: bytes, known: Mapping[str, str]) -> tuple[str, bool]:
    """Return a word's value, and whether a part of it is known only at run time (that part stays as written)."""
    kind = node.type
    if kind == "word":
        text = text_of(node, source)
        return (_ESCAPED.sub(_escaped, text) if "\\" in text else text), False
    if kind == "command_name" and node.named_children:
        return word(node.named_children[0], source, known)
    if kind in ("string", "translated_string"):
        return _in_quotes(node, source, known)
    if kind == "concatenation":
        parts = [word(child, source, known) for child in node.children[:MAX_PARTS]]
        unknown = len(node.children) > MAX_PARTS or any(dynamic for _, dynamic in parts)
        return "".join(part for part, _ in parts), unknown
    if kind in _AT_RUN_TIME:
        text = text_of(node, source, MAX_SUBSTITUTION)
        found = _EXPANSION.fullmatch(text)
        value = known.get(found[1]) if found else None
        return (text, True) if value is None else (SPLIT.join(re.split(r"\s", value)), False)
    if kind == "array":
        return " ".join(word(child, source, known)[0] for child in node.named_children), False
    text = text_of(node, source)
    if kind == "raw_string":
        return text[1:-1], False
    if kind == "ansi_c_string":
        return _ANSI_C.sub(_ansi_c, text[2:-1]), False
    return (_ESCAPED.sub(_escaped, text) if "\\" in text else text), False


def _in_quotes(node: Node, source: bytes, known: Mapping[str, str]) -> tuple[str, bool]:
    """Read the inside of double quotes, from what lies between its expansions: blanks belong to no child node."""
    parts: list[str] = []
    dynamic = node.named_child_count > MAX_PARTS
    at = node.start_byte + (2 if node.type == "translated_string" else 1)
    for child in node.named_children[:MAX_PARTS]:
        if child.type not in _AT_RUN_TIME:
            continue
        parts.append(_plain(source[at : child.start_byte]))
        value, unknown = word(child, source, known)
        parts.append(value.replace(SPLIT, " "))
        dynamic = dynamic or unknown
        at = child.end_byte
    return "".join([*parts, _plain(source[at : node.end_byte - 1])]), dynamic


def _plain(source: bytes) -> str:
    text = source.decode("utf-8", "replace")
    return _ESCAPED_IN_QUOTES.sub(_escaped, text) if "\\" in text else text


def _escaped(found: re.Match[str]) -> str:
    return "" if found[1] == "\n" else found[1]


def _ansi_c(found: re.Match[str]) -> str:
    code = found[1]
    if code[0] in "xuU" and len(code) > 1:
        number = int(code[1:], 16)
        return chr(number) if 0 < number < 0x110000 else ""
    if code[0] in "01234567":
        return chr(int(code, 8) % 256 or 32)  # never NUL, which is SPLIT
    return _ANSI_C_LETTERS.get(code, code)


# The grammar's scanner reads beyond its tables at some characters outside ASCII, and ends the process. To bash they are
# letters of words; so are these bytes, and all places in the text stay where they are.
_PLAIN = bytes(code if code < 128 else ord("_") for code in range(256))
_PART = 1_024
READ_TIMES = 16
"""Multiple of a script's length that its parser may read; usual scripts are read one to three times."""
READ_FIRST = 200_000
"""Bytes that it may read in any case."""


class _Reader:
    """Hands out a text in parts, until more than its share has been read."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._left = READ_TIMES * len(source) + READ_FIRST

    def read(self, offset: int, _point: object) -> bytes:
        self._left -= _PART
        return self._source[offset : offset + _PART] if self._left > 0 else b""

    def is_spent(self, _offset: int, _has_error: bool) -> bool:
        return self._left <= 0


@cache
def _bash() -> Language:
    import tree_sitter_bash
    from tree_sitter import Language

    return Language(tree_sitter_bash.language())


def parse(source: bytes) -> Node | None:
    """Return the root of a script's syntax tree, or None where the parser would take too long.

    Behind an error its scanner reads to the end of the text at every step, which takes quadratic time; no real script
    makes it do that often. What it reads is counted, not the time it takes, so that the same script always gets the
    same answer.

    Examples
    --------
    >>> parse(b"cd x && ls").type
    'program'
    >>> parse(b"|" * 10_000) is None
    True
    """
    from tree_sitter import Parser

    reader = _Reader(source.translate(_PLAIN))
    try:
        root = Parser(_bash()).parse(reader.read, progress_callback=reader.is_spent).root_node
    except ValueError:  # it was stopped
        return None
    return None if reader.is_spent(0, False) else root
