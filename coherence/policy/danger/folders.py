"""Folders that hold work: what a session has shown of them, what the agent has made itself, and what it removes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from zlib import crc32

import msgspec

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.detect.bloom_filter import BloomFilter
from coherence.detect.call_words import only_reads
from coherence.detect.text_analysis import tokens
from coherence.policy.danger.arguments import is_shell, words_of
from coherence.policy.danger.asking import NEGATED
from coherence.policy.danger.danger import Command
from coherence.policy.danger.files import asks_first, deletes_each, is_recursive, takes_all
from coherence.policy.danger.paths import holds_everything, normal

REMOVERS = word_set("rm rmdir rd del erase deltree rimraf ri remove-item srm wipe")

_WHOLE = frozenset({"rimraf", "deltree", "srm", "wipe"})
"""Programs that need no flag to remove a folder with all that is in it."""

_TAKES_FOLDERS = ("rm", "rd ", "rmdir", "del ", "deltree", "erase", "rimraf", "remove-item", "ri ", "wipe", "-delete")
"""A call without any of these in its text removes no folder."""

_DISPOSABLE = word_set(
    "build builds dist out output outputs target bin obj release debug tmp temp cache caches coverage htmlcov "
    "artifacts artefacts generated gen venv env virtualenv node_modules __pycache__ bower_components deriveddata pods "
    "sandbox scratch playground wheels wheelhouse trash"
)
"""Words in names of folders that are made again, or made to be thrown away."""

_HIDDEN_WORK = word_set(".github .gitlab .circleci .husky .vscode .devcontainer .claude .config .changeset .storybook")
"""Folders with a dot in front that hold work; the others keep what programs make again."""

SOURCES = word_set("src source sources app apps packages tests backend frontend server client cmd internal pkg .github")
"""Folders that hold work wherever there is one, also where the session has not shown it."""

_PART = lazy_regex(r"[a-z]+")
_NAME = lazy_regex(r"\.?\w[\w-]{0,60}")
_PATHS = lazy_regex(r"(?<![\w.@/:-])(?:\.{0,2}/)?((?:[\w.@-]{1,60}/){1,12})")
"""A path in a result; what stands before its last slash are folders."""
_LISTED = lazy_regex(r"^(?:d[rwxsStT-]{9}.{1,80}? |\./)?(\.?\w[\w-]{0,60})$", re.MULTILINE)
"""A line that is one name without an ending, or a folder in a long listing."""
_MISSING = ("no such file", "not found", "cannot ", "does not exist", "doesn't exist")
"""Signs in a line of a result that what it names is not there."""
_UNSEEN = lazy_regex(r"[12&]?>{1,2} ?(?:/dev/null|&[12])")
"""Redirections that write no file."""
_WORDS = lazy_regex(r"[\w.@~-][\w./@~-]{0,200}")
_SEGMENTS = lazy_regex(r"[;&|\n]+")
_HERE = lazy_regex(r"<<-?\s?[\"']?(\w{1,40})[\"']?")
"""Beginning of a here-document, with the word that ends it."""
_CODE_MAKES = lazy_regex(r"mkdir|makedirs|copytree|ensure_?dir|create_?dir", re.IGNORECASE)
"""Signs of code that makes folders."""
_QUOTED = lazy_regex(r"[\"']([\w./-]{2,100})[\"']")
_READS = word_set(
    "ls ll cat head tail less more find fd grep egrep rg ag tree wc stat file du df cd pwd test [ echo printf sed awk "
    "sort uniq diff rm rmdir rd del mv dir type which nl cut jq pytest tox unittest git"
)
"""Programs that make nothing of a name that is given to them, at the beginning of a command."""
_MAKES = lazy_regex(
    r"\s*(?:git (?:clone|init|worktree)|mkdir|md|cp|tar|unzip|\S*django-admin|\S*(?:npm|npx|pnpm|yarn|bun) "
    r"(?:init|create)|cargo new|npx create-\S*|cookiecutter|\S*python\S* -m venv)\b"
)
"""Commands that make the folders that they name."""
_BUILDS = lazy_regex(
    r"(?:^|&&|[;\n])[^\S\n]*(?:\w+=\S*\s+)*"
    r"(?:npx |(?:npm|pnpm|yarn|bun)\s+(?:run\s+)?(?:build|install|ci|compile|generate)"
    r"|tsc\b|make\b|ninja\b|cmake\b|cargo\b|go (?:build|generate)|mvn\b|\.?/?gradlew?\b|bazel\b|sphinx-build\b|mkdocs\b"
    r"|hugo\b|jekyll\b|webpack\b|vite\b|rollup\b|dotnet\b|python3? -m (?:build|sphinx|venv|mkdocs)|terraform init)"
)
"""Commands that make again what was removed before them."""

_FILE_KEYS = word_set("file_path path filename file notebook_path")
_WRITES = word_set("write create save new touch")

_KEEPING = tokens(
    "tell explain show list describe summarise summarize count find review read look run test check analyse analyze "
    "fix add implement write document improve what which why how where"
)
"""Words of a request by which no folder goes, though it names one."""
_TAKING = tokens(
    "delete remove drop clean clear purge wipe erase reset destroy truncate discard replace rewrite regenerate "
    "recreate rebuild move rename migrate merge reorganise reorganize restructure convert port split upgrade restore "
    "redo consolidate flatten archive empty prune rid away obsolete unused need scratch fresh leftover useless junk"
)
"""Words of a request by which something may have to go."""
_NAMED_IN = lazy_regex(r"[\w.-]{2,60}")

SHORT_REQUEST = 300
"""Characters of a request in which it is enough to name a folder; what is longer describes more than it asks for."""

MAX_TEXT = 10_000
"""Characters of a call or a result that are looked at for names of folders."""

MAX_BODIES = 20
"""Here-documents of a script that are told from its commands."""

MAX_OWN, MAX_WORK = 6_000, 3_000
"""Names that are remembered."""

MAX_ASKED = 400
"""Words of requests that are remembered."""


class FolderLife(msgspec.Struct):
    """Names of folders, by who was first to name them; plain data."""

    own: BloomFilter = msgspec.field(default_factory=BloomFilter)
    """Names that the agent's calls made, or used before anything showed them."""
    work: BloomFilter = msgspec.field(default_factory=BloomFilter)
    """Names that results have shown first."""
    full: bool = False
    """True once there were more own names than are remembered: from then on nothing new counts as work."""
    asked: list[str] = []
    """Words of sentences by which something may have to go, the newest."""

    def ask(self, text: str, statements: Iterable[str]) -> None:
        """Take in a request: which folders it may be about when something is to go."""
        short = len(text) <= SHORT_REQUEST
        for statement in statements:
            found = tokens(statement.replace("-", " "))
            takes = not _TAKING.isdisjoint(found)
            if NEGATED.search(statement) is not None or not (takes or (short and _KEEPING.isdisjoint(found))):
                continue
            words = (name.strip(".-").casefold() for name in _NAMED_IN.findall(statement[:2_000]))
            self.asked = [*dict.fromkeys([*self.asked, *filter(None, words)])][-MAX_ASKED:]

    def call(self, tool: str, arguments: object) -> None:
        """Take in what a call names: what it makes is the agent's own."""
        words, script, bodies = words_of(tool), "", [script_of(arguments)]
        if paths := [value for key, value in _texts(arguments) if key in _FILE_KEYS]:
            folders = [name for path in paths for name in _outer(path)]
            if _WRITES.isdisjoint(words):
                self._show(folders)
            else:
                self._own(folders)
        elif only_reads(tool):
            return
        elif is_shell(words):
            script, bodies = _without_bodies(bodies[0])
        made = [name for segment in _SEGMENTS.split(_UNSEEN.sub(" ", script)) for name in _made(segment)]
        self._own([*made, *(name for body in bodies for name in _made_by_code(body))])

    def result(self, text: str) -> None:
        """Take in what a result shows."""
        lines = text[:MAX_TEXT].splitlines()
        seen = "\n".join(line for line in lines if not any(cue in line.casefold() for cue in _MISSING))
        names = [name for found in _PATHS.findall(seen) for name in found.split("/")]
        self._show([*names, *_LISTED.findall(seen)])

    def is_work(self, path: str) -> bool:
        """Return whether a folder holds work that is not the agent's own, as far as the session has shown."""
        *outer, name = [part.casefold() for part in path.split("/") if part not in ("", ".", "..", "~")] or [""]
        if not name or any(map(_is_disposable, (*outer, name))) or _digest(name) in self.own:
            return False
        if any(_digest(part) in self.own and _digest(part) not in self.work for part in outer):
            return False
        return name in SOURCES or _digest(name) in self.work

    def is_asked_for(self, path: str) -> bool:
        """Return whether a request names a folder, or one that it lies in."""
        return not set(self.asked).isdisjoint(part.casefold().lstrip(".") for part in path.split("/") if part)

    def _own(self, names: Iterable[str]) -> None:
        new = {_digest(name) for name in names if name}
        new = {code for code in new if code not in self.work and code not in self.own}
        if new and not self.own.add(sorted(new), most=MAX_OWN):
            self.full = True

    def _show(self, names: Iterable[str]) -> None:
        if self.full:
            return
        new = {_digest(name) for name in names if name}
        new = {code for code in new if code not in self.own and code not in self.work}
        if new:
            self.work.add(sorted(new)[:MAX_WORK], most=MAX_WORK)


def may_remove_folders(text: str) -> bool:
    """Return whether a call's text may remove folders.

    Examples
    --------
    >>> may_remove_folders("rm -rf src"), may_remove_folders("ls src")
    (True, False)
    """
    low = text.casefold()
    return any(cue in low for cue in _TAKES_FOLDERS)


def removed_folders(command: Command) -> Iterator[str]:
    """Yield the folders that a command removes with all that is in them, those that hold everything left out.

    Examples
    --------
    >>> from coherence.policy.danger.danger import command_of
    >>> list(removed_folders(command_of(("rm", "-rf", "src/", "app/*", "notes.txt", "."))))
    ['src', 'app']
    """
    if command.program in REMOVERS:
        if asks_first(command) or not (is_recursive(command) or command.program in _WHOLE):
            return
        found: Sequence[str] = command.operands[:200]
    elif command.program == "find" and deletes_each(command.args) and takes_all(command.args):
        found = command.operands[:1]
    else:
        return
    for operand in found:
        path = normal(operand).removeprefix("./")
        if path and not holds_everything(operand, command.folder) and _is_folder(path):
            yield f"{command.folder.rstrip('/')}/{path}" if command.folder and path[:1] not in ("/", "~") else path


def builds_again(text: str) -> bool:
    """Return whether a script makes again what it has removed.

    Examples
    --------
    >>> builds_again("rm -rf lib && npm run build"), builds_again("rm -rf lib && ls")
    (True, False)
    """
    at = max(text.find(cue) for cue in ("rm -", "rimraf", "emove-", "-delete"))
    return at >= 0 and _BUILDS.search(text, at) is not None


def _is_folder(path: str) -> bool:
    """Return whether a path, without signs for several, names a folder rather than a file."""
    if any(sign in path for sign in "*?[]{}$`%<>|\n"):
        return False
    name = path.rpartition("/")[2]
    return "." not in name.lstrip(".")


def _is_disposable(name: str) -> bool:
    if name.startswith("."):
        return name not in _HIDDEN_WORK
    return not _DISPOSABLE.isdisjoint((name, *_PART.findall(name)))


def _without_bodies(script: str) -> tuple[str, list[str]]:
    """Return a script without what its here-documents hold, and that."""
    kept, bodies, at = [], [], 0
    for found in islice(_HERE.finditer(script), MAX_BODIES):
        begin = script.find("\n", found.end())
        end = script.find(f"\n{found[1]}", begin)
        if found.start() >= at and 0 <= begin < end:
            kept.append(script[at:begin])
            bodies.append(script[begin:end])
            at = end + 1 + len(found[1])
    return "".join([*kept, script[at:]]), bodies


def _made(segment: str) -> Iterator[str]:
    """Yield the names of folders that a command may make."""
    first = segment.split(None, 1)[:1]
    if _MAKES.match(segment) is not None:
        yield from _names(segment)
    elif first and (first[0] not in _READS or ">" in segment):
        yield from (name for name in _names(segment) if name not in SOURCES)


def _made_by_code(code: str) -> Iterator[str]:
    """Yield the names of folders that code makes if it is run; in which of its texts a name stands is not told."""
    if _CODE_MAKES.search(code) is not None:
        yield from (name for text in _QUOTED.findall(code) for name in _names(text))
    yield from (name for line in _SEGMENTS.split(code) if _MAKES.match(line) is not None for name in _names(line))


def _names(segment: str) -> Iterator[str]:
    for word in _WORDS.findall(segment):
        for part in word.split("/"):
            stem = part.partition(".")[0]
            if stem and _NAME.fullmatch(stem) is not None:
                yield stem.casefold()


def _outer(path: str) -> list[str]:
    return [part.casefold() for part in path.replace("\\", "/").split("/")[:-1] if part not in ("", ".", "..", "~")]


def script_of(arguments: object) -> str:
    """Return the texts of a call's arguments, a line or more each."""
    return "\n".join(value for _, value in _texts(arguments))[:MAX_TEXT]


def _texts(arguments: object) -> Iterator[tuple[str, str]]:
    if isinstance(arguments, str):
        yield "", arguments
    elif isinstance(arguments, dict):
        yield from ((str(key).casefold(), value) for key, value in arguments.items() if isinstance(value, str))


def _digest(name: str) -> int:
    return crc32(name.casefold().encode("utf-8", "surrogatepass"))
