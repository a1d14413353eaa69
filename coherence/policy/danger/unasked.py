"""Destructive calls that no request asked for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cached_property

import msgspec

from coherence.core.decisions import DecisionKind, Finding
from coherence.core.forbidden_calls import ForbiddenCall
from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.detect.call_words import only_reads
from coherence.detect.detector import EventDetector, Observed, read_arguments
from coherence.detect.directives import delegates
from coherence.detect.fingerprints import name_words
from coherence.detect.text_analysis import tokens
from coherence.policy.danger.asking import MAX_ORDERS, acts_of, is_asked, orders_in
from coherence.policy.danger.classify import commands_of, judge
from coherence.policy.danger.danger import UNJUDGED, Command, Danger, Match, short
from coherence.policy.danger.folders import FolderLife, builds_again, may_remove_folders, removed_folders, script_of
from coherence.policy.danger.table import DEFAULT
from coherence.policy.deny_list import deny_finding, forbidding
from coherence.policy.rules.finding_builders import found

RULE = "destructive_unasked"
"""Name of the findings."""

ENFORCED_RULE = "harmful_call"
"""Name of the findings of enforced calls that no request asked for."""

ASKING = tokens(
    "delete remove drop clean clear purge wipe erase reset revert undo cancel terminate kill stop destroy force "
    "overwrite truncate prune uninstall discard archive close transfer reboot shut empty cut rotate revoke disable "
    "deactivate rid"
)
"""Words of a request for something destructive."""

DESTROYING = word_set(
    "cancel delete remove drop purge wipe erase destroy terminate revoke uninstall truncate disable deactivate"
)
"""Words in the name of a tool that destroys something, where the table has no row for it."""

PAYING = word_set("pay payment money transfer refund purchase buy checkout withdraw certificate")
"""Words in the name of a tool that spends money."""

ASKING_TO_PAY = tokens(
    "pay paid payment bill rent transfer send money refund purchase buy bought order book reservation invoice "
    "subscription compensation certificate upgrade exchange return"
)
"""Words of a request to spend money."""

REQUEST_CHARS = 600
"""Characters of a request that are looked at, half from each end: a long one describes more than it asks for."""

ASKED, UNASKED = 0.3, 1.0
"""Score of a destructive call where a request speaks of destruction, and where none does."""

DELEGATED = 0.4
"""Share of the score that is left where the user delegated the decision to a text."""

RESTORED = 0.3
"""Share of that where a file is set back to what version control has, or a folder goes that the agent has made one in:
mostly it takes its own work back."""

PROVISIONAL = frozenset({"cart", "basket", "draft", "wishlist"})
"""Words of a tool's name by which nothing is lost yet."""

FADES = 0.7
"""Share of the score that is left at each later message or call."""

EVERYBODYS = frozenset({".", "..", "tmp", "src", "home", "usr", "var", "opt", "lib", "tests", "test", "app"})
"""Folders that a project has anyway: that one was made in them says nothing of the others there."""

MOSTLY = 2 / 3
"""Share of the files removed at once that the agent must have made: some come from its scripts."""

MAX_MADE = 200
ASKED_CHARS = 10_000
"""Characters of a request in which money is looked for: a false word only makes this calmer."""
COMMAND_CHARS = 2_000
"""Characters of a call that are looked at for files it makes or removes."""

_WRITTEN = lazy_regex(
    r">{1,2}\s{0,3}([\w./-]{1,200})|\"(?:file_?path|path|file_?name)\"\s{0,2}:\s{0,2}\"([^\"\n]{1,200})\"",
    re.IGNORECASE,
)
_SAVED = lazy_regex(
    r"(?:(?:write|save|dump|export|creat)\w{0,20}|\bto_\w{1,20})\(\s{0,3}[\\\"']{1,2}([\w./-]{1,200})"
    r"|open\(\s{0,3}[\\\"']{1,2}([\w./-]{1,200})[\\\"']{1,2},\s{0,3}(?:mode=)?[\\\"']{1,2}[wax]"
)
"""A line of a script that saves a file, told by the function's name or the mode: what the agent's scripts make is its
own."""
_REMOVED = lazy_regex(r"\brm\s([\w./-]{1,200}(?:\s[\w./-]{1,200}){0,39})")
_FOLDERS = lazy_regex(r"\bmkdir\s((?:-\w{1,9}\s){0,3}[\w./-]{1,200}(?:\s[\w./-]{1,200}){0,9})")
_RESTORES = lazy_regex(r"\bgit (?:checkout|restore)\b")

_WIPES = next(row.asking for row in DEFAULT if row.name == "wipe-files")

LEAST = 0.6
"""From here on a finding is active."""


class DestructiveCalls(msgspec.Struct):
    """State of the detector; plain data."""

    requests: int = 0
    """Requests since the newest goal, that one included: without any, nothing is unasked."""
    asked: bool = False
    """True after a request for something destructive since the newest goal."""
    asked_to_pay: bool = False
    """True after a request to spend money since the newest goal."""
    delegated: bool = False
    """True if the user delegated the decision to a text."""
    made: list[str] = []
    """Files and folders that the agent has made, by name, the newest; with a slash, folders that it made one in."""
    value: float = 0.0
    seq: int = 0
    """Number of the call; 0 = of an earlier session."""
    what: str = ""
    orders: list[str] = []
    """Newest sentences since the newest goal that may ask for something enforced."""
    harmful: int = 0
    """Number of the newest call, if it is enforced and no request asked for it; else 0."""
    harmful_why: str = ""
    forbidden: int = 0
    """Number of the newest call, if the deny list forbids it; 0 = it does not."""
    forbidden_tool: str = ""
    forbidden_by: ForbiddenCall | None = None
    folders: FolderLife = msgspec.field(default_factory=FolderLife)
    """Folders that the session has shown, and those that the agent has made."""


class DangerDetector(EventDetector[DestructiveCalls]):
    """Follows which calls destroy something.

    Parameters
    ----------
    table : sequence of Danger, optional
        What is destructive. Default: the package's table.

    Examples
    --------
    >>> from coherence.core.events import Goal, ToolCall
    >>> detector = DangerDetector()
    >>> detector.observe(Observed.of(Goal("add a test for the parser"), 1))
    >>> detector.observe(Observed.of(ToolCall("Bash", b'{"command": "rm -rf src"}', "a"), 2))
    >>> detector.data.value, detector.data.what
    (1.0, 'rm -rf src deletes files')
    """

    name, data_type = "danger", DestructiveCalls

    def __init__(self, table: Sequence[Danger] | None = None, forbid: Sequence[ForbiddenCall] = ()) -> None:
        super().__init__()
        self.table = DEFAULT if table is None else table
        self.forbid = forbid

    @cached_property
    def _acts(self) -> frozenset[str]:
        return acts_of(self.table)

    def on_goal(self, observed: Observed) -> None:
        """Take in what is asked for."""
        if observed.new_goal:
            data = self.data
            data.asked = data.asked_to_pay = data.delegated = False
            data.requests, data.value = 0, 0.0
            data.orders, data.harmful, data.forbidden = [], 0, 0
        self._ask(observed)

    def on_message(self, observed: Observed) -> None:
        """Take in a further request, or fade with a message of the agent."""
        if observed.event.role == "assistant":
            self.data.value *= FADES
            self.data.harmful = self.data.forbidden = 0
        elif observed.event.role == "user":
            self._ask(observed)

    def on_correction(self, observed: Observed) -> None:
        """Take in what the user says."""
        self._ask(observed)

    def on_tool_call(self, observed: Observed) -> None:
        """Look whether the call destroys something."""
        event, data = observed.event, self.data
        data.harmful = data.forbidden = 0
        if self.forbid and (entry := forbidding(event.tool_name, bytes(event.arguments), self.forbid)) is not None:
            data.forbidden, data.forbidden_tool, data.forbidden_by = observed.seq, event.tool_name[:100], entry
        try:
            judged = judge(event.tool_name, observed.arguments, self.table)
        except (TypeError, ValueError, RecursionError):  # a row of somebody else that cannot judge it
            return
        match = judged.first
        unwanted = self.unwanted(judged.enforced) or self._removal(event.tool_name, observed.arguments)
        if unwanted is not None:
            data.harmful, data.harmful_why = observed.seq, _why(unwanted)
        data.folders.call(event.tool_name, observed.arguments)
        text = observed.text.raw[:COMMAND_CHARS]
        removed = _REMOVED.search(text) if "rm" in text else None
        gone = [name for name in removed[1].split() if name[0] != "-"] if removed else []
        own = set(data.made) if match is not None else set()
        if match is not None and gone and sum(not own.isdisjoint(_places(name)) for name in gone) >= MOSTLY * len(gone):
            match = None  # it tidies up after itself
        written = [each[1] or each[2] for each in _WRITTEN.finditer(text)]
        saved = (each[1] or each[2] for each in _SAVED.finditer(text)) if written and "(" in text else ()
        written += [name for name in saved if "." in name]
        made = _FOLDERS.finditer(text) if "mkdir" in text else ()
        folders = [name for each in made for name in each[1].split() if name[0] != "-"]
        if written or folders:
            data.made = [*data.made, *(name.rpartition("/")[2] for name in written), *_made(folders)][-MAX_MADE:]
        value, what = 0.0, ""
        words = set(name_words(event.tool_name))
        if not PROVISIONAL.isdisjoint(words):
            return
        if match is not None:
            value, what = ASKED if data.asked else UNASKED, match.what
            if _RESTORES.search(text) or any(name.rstrip("/") + "/" in own for name in gone):
                value *= RESTORED
        elif data.requests:
            value, what = self._by_name(event.tool_name, words)
        value *= DELEGATED if data.delegated else 1.0
        if value and value >= data.value:
            data.value, data.seq, data.what = value, observed.seq, what

    def on_tool_result(self, observed: Observed) -> None:
        """Take in which folders there are."""
        if not observed.event.error:
            self.data.folders.result(observed.text.raw)

    def _removal(self, tool: str, arguments: object) -> Match | None:
        """Return what a call is that removes a folder with work in it, where the agent has not made it itself."""
        data = self.data
        text = script_of(arguments)
        if not data.requests or not may_remove_folders(text) or builds_again(text):
            return None
        for command in commands_of(tool, arguments):
            for path in removed_folders(command):
                match = _folder_match(command, path)
                if (
                    data.folders.is_work(path)
                    and not data.folders.is_asked_for(path)
                    and not is_asked(match, data.orders)
                ):
                    return match
        return None

    def unwanted(self, enforced: Sequence[Match]) -> Match | None:
        """Return the first enforced match that no request asked for."""
        return next((match for match in enforced if not is_asked(match, self.data.orders)), None)

    def asked_call(self, seq: int, tool: str, arguments: bytes) -> list[Finding]:
        """Return the findings about a call that has not run; an enforced or forbidden one asks to block it."""
        entry = forbidding(tool, arguments, self.forbid) if self.forbid else None
        seen = [] if entry is None else [deny_finding(seq, tool, entry, "block")]
        match = self.unwanted(judge(tool, arguments, self.table).enforced)
        match = match or self._removal(tool, read_arguments(arguments))
        if match is None:
            return seen
        return [*seen, _harmful(seq, _why(match), "warn" if match.kind == UNJUDGED else "block")]

    def _by_name(self, tool: str, words: set[str]) -> tuple[float, str]:
        """Return the score of a call by its tool's name, and a phrase that says what it does."""
        shown = short(tool, 80)
        if not DESTROYING.isdisjoint(words):
            return (ASKED if self.data.asked else UNASKED), f"{shown} cannot be taken back"
        if not PAYING.isdisjoint(words) and not only_reads(tool):
            return (ASKED if self.data.asked_to_pay else UNASKED), f"{shown} spends money"
        return 0.0, ""

    def _ask(self, observed: Observed) -> None:
        data, read = self.data, observed.text.part(REQUEST_CHARS)
        data.requests += 1
        data.asked = data.asked or not ASKING.isdisjoint(read.tokens)
        data.asked_to_pay = data.asked_to_pay or not ASKING_TO_PAY.isdisjoint(observed.text.part(ASKED_CHARS).tokens)
        data.delegated = data.delegated or delegates(read.raw)
        data.orders = [*data.orders, *orders_in(observed.text, self._acts)][-MAX_ORDERS:]
        data.folders.ask(observed.text.raw, observed.text.part(ASKED_CHARS).statements)

    def findings(self, state: object, reading: object, appraisal: object) -> Sequence[Finding]:
        """Return the findings about unrequested destruction, and about the newest call."""
        data = self.data
        seen = [_harmful(data.harmful, data.harmful_why, "warn")] if data.harmful else []
        if data.forbidden and data.forbidden_by is not None:
            seen.append(deny_finding(data.forbidden, data.forbidden_tool, data.forbidden_by, "warn"))
        if data.value < 0.05:
            return seen
        why = f"{data.what}, and no request speaks of that"
        return [*seen, found(RULE, data.value, "guide", why, "ask the user before going on", [data.seq], LEAST)]

    def renumber(self) -> None:
        """Let the next event be number 1."""
        self.data.seq = self.data.harmful = self.data.forbidden = 0


def _folder_match(command: Command, path: str) -> Match:
    what = f"{short(command.text, 80)} deletes {short(path, 80)} with all that is in it"
    return Match(name="wipe-folder", kind="wipe", what=what, part=short(command.text), asking=_WIPES, targets=(path,))


def _why(match: Match) -> str:
    return match.what if match.kind == UNJUDGED else f"{match.what}, and nobody has asked for exactly that"


def _harmful(seq: int, why: str, severity: DecisionKind) -> Finding:
    action = "ask the user before it runs" if severity == "block" else "ask the user what to do about it"
    return found(ENFORCED_RULE, 1.0, severity, why, action, [seq], 1.0)


def _made(folders: Iterable[str]) -> list[str]:
    """Return the names of folders made, and with a slash those of the folders that they were made in."""
    made: list[str] = []
    for folder in folders:
        *outer, name = [part for part in folder.split("/") if part] or [""]
        made += [name, *(part + "/" for part in outer)]
    return made


def _places(path: str) -> list[str]:
    """Return the names that make a path an own one: its own, and those of the folders that it lies in."""
    *outer, name = [part for part in path.split("/") if part] or [""]
    return [name, *outer, *(part + "/" for part in outer if part not in EVERYBODYS)]
