"""The account of one agent: what it was given, what it stated, and what of its tools' results it used."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence
from itertools import islice, repeat
from math import isfinite
from typing import Any

import msgspec

from coherence.core.protocols import Extractor
from coherence.core.readings import MAX_CLAIMS, Claim
from coherence.core.registry import create_extractor
from coherence.core.validation import shown
from coherence.detect.answer_text import unwrapped
from coherence.detect.detector import EventDetector, Observed
from coherence.detect.extractors import BUILT_IN, extract_some, quotes
from coherence.detect.fingerprints import WRITES, name_words
from coherence.detect.grounding import Flaw, Grounds, judge, judge_claims, stated_in
from coherence.detect.languages import differ
from coherence.detect.misplaced import misplaced
from coherence.detect.records import Kept, keep_result
from coherence.detect.sources import (
    MAX_CHARS,
    Given,
    Outputs,
    know_words,
    note_asked,
    note_output,
    note_said,
    open_values,
    take_source,
)
from coherence.detect.terms import unknown_terms
from coherence.detect.text_analysis import most_of
from coherence.detect.values import fold, words
from coherence.detect.written_prose import facts_of, plans, prose_of

MAX_CALLS = 16
"""Calls without a result whose arguments are remembered."""

MAX_ARGUMENTS = 4_000
"""Characters of one call's arguments that are read."""

CHECKED_IN_CALLS = frozenset({"id", "url", "email"})
"""Kinds of values of a call's arguments that are judged: numbers, dates and new files are what a call is for."""

_NAMING = "add book create generate make new open post put register save set start submit upload write"
NAMING = frozenset(_NAMING.split())
"""First words of tools that may give a thing its id."""

ID_DIGITS = 2
"""Digits, besides letters, of an id that names one thing: others may count or name anything."""

UNTRIED = 0.6
"""Weight of an id that nothing has given as long as no other was given: all of them may be known from elsewhere."""

UNKNOWN_FADES = 0.7
"""Share of that weight that is left at each later message or call."""


MAX_TOLD = 20_000
"""Characters of a goal, message or memory that are read, half from each end."""

MAX_TRIED, MAX_TRIED_CHARS = 6, 400
"""Calls that failed whose arguments are remembered, and characters of those."""

MAX_MISPLACED = 2
"""Parts of one text that are named because another record of a result has what they say."""

MAX_MISPLACED_CHARS = 6_000
"""Characters of a text up to which that is asked."""


class PendingCall(msgspec.Struct):
    """A call whose result has not come."""

    id: str
    text: str
    """Its arguments, one a line."""


class GroundingAccount(msgspec.Struct, dict=True):
    """Everything that is remembered of where an agent's statements come from.

    What it has in its dictionary beside, follows from that and is not stored.
    """

    given: Given = msgspec.field(default_factory=Given)
    outputs: Outputs = msgspec.field(default_factory=Outputs)
    pending: list[PendingCall] = []
    results: int = 0
    """Tool results in this task."""
    ended: bool = False
    """True once the outcome of the task is known: the next request of the user begins another."""
    failed: dict[str, str] = {}
    """Extractor of somebody else -> how it failed."""
    open_seq: int = 0
    """The newest message of the agent, until it calls a tool."""
    open_text: str = ""
    """Its text, until it is held against the records of the results: that waits until it is known to be an answer."""
    open_new: list[int] = []
    """Digests of its tokens that nobody had said before."""
    asked_seq: int = 0
    """The newest message of the agent after which the host asked for a decision: it is an answer, not a remark."""
    answer: Grounds | None = None
    """Of the newest message of the agent in this task."""
    call: Grounds | None = None
    """Of the newest call, where it came after that message."""
    unknown_id: str = ""
    """The newest id that a call refers to although nothing has given it."""
    unknown_seq: int = 0
    """That call; 0 = of an earlier session."""
    known_ids: bool = False
    """True if any call has referred to something by an id that was given."""
    unknown: float = 0.0
    """Weight of that id by its age, in [0, 1]: 1 = the newest call."""
    kept: Kept = msgspec.field(default_factory=Kept)
    """The newest short results."""
    written: Grounds | None = None
    """Of what the newest call writes for people, if it does."""

    @property
    def newest(self) -> Grounds | None:
        """The newest statement of the agent: its newest message, or the call after it."""
        return self.call or self.answer

    def waits(self, seq: int) -> bool:
        """Tell whether a message has flaws that nobody has asked for."""
        if self.answer is None or not self.answer.seq == seq != self.asked_seq:
            return False
        return self.answer.lost > 0.0 or bool(self.misplaced())

    def misplaced(self) -> list[Flaw]:
        """Return what the newest message says of one record of a result although another one has it."""
        if not self.open_text:
            return []
        # Nothing that it depends on changes while the message waits.
        found: tuple[str, list[Flaw]] | None = vars(self).get("found")
        if found is None or found[0] is not self.open_text:
            known = self.outputs.known.keys() - set(self.open_new)
            found = vars(self)["found"] = self.open_text, _misplaced(self, self.open_text, known)
        return found[1]

    def renumber(self) -> None:
        """Let the next event be number 1: events of an earlier session have no number."""
        given = self.given
        given.values, given.opened = dict.fromkeys(given.values, 0), dict.fromkeys(given.opened, 0)
        given.numbers = [msgspec.structs.replace(number, seq=-abs(number.seq)) for number in given.numbers]
        self.outputs = Outputs(known=self.outputs.known)
        self.kept = Kept()
        self.answer = self.call = self.written = None
        self.pending = []
        self.asked_seq = self.open_seq = self.unknown_seq = 0
        self.close()

    def begin_task(self) -> None:
        """Begin a task: what was given stays, what was stated and looked up counts anew.

        What an earlier task gave and nobody remembers is forgotten too, else one long file would blind the whole life.
        """
        self.given.lost = self.given.lost_words = self.given.lost_numbers = 0
        self.results = 0
        self.kept = Kept()
        self.ended = False
        self.unknown = 0.0
        self.answer = self.call = self.written = None
        self.outputs.newest.clear()

    def close(self) -> None:
        """Take the newest message for no answer any more."""
        self.open_seq, self.open_text, self.open_new = 0, "", []
        vars(self).pop("found", None)


def _note_unknown(
    account: GroundingAccount, seq: int, tool: str, leaves: Iterable[str], claims: Sequence[Claim]
) -> None:
    """Remember an id that is a whole argument of a call, that nothing has given, and that this call does not give."""
    account.unknown *= UNKNOWN_FADES
    if account.call is None or not NAMING.isdisjoint(name_words(tool)[:1]):
        return
    flawed = {flaw.text: flaw.flaw for flaw in account.call.grave}
    whole = {leaf.partition(": ")[2].strip() for leaf in leaves}
    for claim in claims:
        if claim.kind != "id" or claim.text not in whole or not _is_name(claim.text):
            continue
        if claim.text not in flawed:
            account.known_ids = True
        elif flawed[claim.text] == "absent" and account.results:
            account.unknown_id, account.unknown_seq = claim.text, seq
            account.unknown = 1.0 if account.known_ids else UNTRIED


def _is_name(text: str) -> bool:
    """Tell whether an id is peculiar enough to name one thing."""
    return sum(map(str.isdigit, text)) >= ID_DIGITS and any(map(str.isalpha, text))


def _misplaced(account: GroundingAccount, text: str, asked: Container[int]) -> list[Flaw]:
    """Return what a text says of one record of a result although another one has it."""
    if not account.kept.whole or not account.kept.results or len(text) > MAX_MISPLACED_CHARS:
        return []
    folded = fold(unwrapped(text))
    found = misplaced(account.kept, folded, asked)
    flaws = [Flaw("record", each.text[:80], "row", each.near, each.seq) for each in islice(found, MAX_MISPLACED)]
    if len(flaws) < MAX_MISPLACED:
        terms = unknown_terms(account.given, account.kept, folded)
        flaws += [
            Flaw("term", name[:80], "altered" if near else "absent", near)
            for name, near in islice(dict(terms).items(), MAX_MISPLACED - len(flaws))
        ]
    return flaws


def _leaves(value: Any, room: int, name: str = "") -> Iterator[str]:
    """Yield the texts and numbers within arguments, each behind its name."""
    waiting: list[Iterator[tuple[str, Any]]] = [iter([(name, value)])]
    while waiting and room > 0:
        name, value = next(waiting[-1], ("", waiting))
        if value is waiting:
            waiting.pop()
        elif isinstance(value, dict):
            waiting.append((str(key), item) for key, item in value.items())
        elif isinstance(value, list):
            waiting.append(zip(repeat(name), value))
        elif value is not None and not isinstance(value, bool):
            line = f"{name}: {value[:room] if isinstance(value, str) else value}"
            room -= len(line)
            yield line
        # Containers without a text take room, too: nested without end, they would never fill it.
        room -= 1


class GroundingDetector(EventDetector[GroundingAccount]):
    """Keeps the account of an agent; an extractor that fails is named in it and finds nothing.

    Parameters
    ----------
    names : sequence of str
        Extractors, see :class:`~coherence.core.config.GroundingConfig`.

    Raises
    ------
    PluginError
        If nobody offers an extractor of a name.
    """

    name, data_type = "grounding", GroundingAccount

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__()
        self._named = [(name, create_extractor(name)) for name in names]
        self._read: dict[str, tuple[list[Claim], bool]] = {}
        """Arguments of calls that wait for their results -> the values in them, which need not be looked for again."""
        self._guard()

    def restore(self, data: GroundingAccount) -> None:
        """Go on with what was remembered elsewhere."""
        super().restore(data)
        self._guard()

    def _guard(self) -> None:
        self._extractors = [_Guarded(name, extractor, self.data.failed) for name, extractor in self._named]

    def on_goal(self, observed: Observed) -> None:
        """Take in what is asked."""
        self._close_answer()
        if self.data.ended or observed.new_goal:
            self.data.begin_task()
        self._give(observed.seq, observed.event.text)

    def on_message(self, observed: Observed) -> None:
        """Judge what the agent states; what others say is given to it."""
        account, event, seq = self.data, observed.event, observed.seq
        if event.role == "assistant":
            account.close()
            account.open_seq = seq
            if event.content.strip():
                self._judge(seq, event.content)
            return
        self._close_answer()
        if event.role == "tool":
            self._take_result(seq, "", event.content, error=False)
        elif not observed.text.is_blank:
            if account.ended and event.role == "user":
                account.begin_task()
            self._give(seq, event.content)

    def on_tool_call(self, observed: Observed) -> None:
        """Judge the ids and addresses of a call and what it writes, and keep its arguments until it has succeeded."""
        account, event, seq = self.data, observed.event, observed.seq
        account.close()
        leaves = list(_leaves(observed.arguments, MAX_ARGUMENTS))
        text = "\n".join(leaves)[:MAX_ARGUMENTS]
        folded = fold(text)
        read = extract_some(folded, self._extractors)
        claims = [claim for claim in read[0] if claim.kind in CHECKED_IN_CALLS]
        looked_up = account.results > 0
        account.call = judge_claims(account.given, folded, claims, looked_up=looked_up, seq=seq, cited=False)
        tool = event.tool_name
        _note_unknown(account, seq, tool, leaves, claims)
        if not text.strip() and not WRITES.isdisjoint(name_words(tool)):
            account.given.lost += 1  # the host leaves out what was written
            account.given.lost_words += 1
        account.written = self._judge_written(seq, tool, fold(prose_of(tool, observed.arguments)))
        account.pending = [*account.pending, PendingCall(event.call_id, text)][-MAX_CALLS:]
        self._read = {call.text: self._read[call.text] for call in account.pending if call.text in self._read}
        self._read[text] = read
        know_words(account.given, words(tool[:200]))
        note_said(account.outputs, seq, text, answer=False)

    def on_tool_result(self, observed: Observed) -> None:
        """Take in what a tool returned."""
        event = observed.event
        self.data.close()
        self._take_result(observed.seq, event.call_id, event.result, error=event.error)

    def on_correction(self, observed: Observed) -> None:
        """Take in what the agent is told or remembers."""
        if not observed.event.removed:
            self._close_answer()
            self._give(observed.seq, observed.event.text)

    on_memory = on_correction

    def on_outcome(self, observed: Observed) -> None:
        """Take in that the task has ended."""
        self._close_answer()
        self.data.ended = True

    def on_tick(self, observed: Observed) -> None:
        """Take in that the host asks for a decision: the newest message is an answer then."""
        if observed.event.reason == "decide" and self.data.open_seq:
            self.data.asked_seq = self.data.open_seq
            self._close_answer()

    def renumber(self) -> None:
        """Let the next event be number 1."""
        self.data.renumber()

    def _give(self, seq: int, text: str) -> None:
        """Take in what the agent was told or remembers: a goal, a message of its user or host, a memory."""
        given = self.data.given
        open_values(given, seq, take_source(given, seq, text, self._extractors, MAX_TOLD))
        note_asked(self.data.outputs, text)

    def _take_result(self, seq: int, call_id: str | None, text: str, *, error: bool) -> None:
        """Take in a result, also of an error; a call that succeeded grounds what it named, and opened it."""
        account, pending = self.data, self.data.pending
        at = next((at for at in range(len(pending) - 1, -1, -1) if call_id is None or pending[at].id == call_id), None)
        call = pending.pop(at) if at is not None else None
        if call is not None and error:
            account.given.tried = [*account.given.tried[1 - MAX_TRIED :], call.text[:MAX_TRIED_CHARS]]
        elif call is not None:
            read = self._read.get(call.text)
            open_values(account.given, seq, take_source(account.given, seq, call.text, self._extractors, read=read))
        take_source(account.given, seq, text, self._extractors, most_of(text, MAX_CHARS))
        account.results += 1
        keep_result(account.kept, seq, text)
        note_output(account.outputs, seq, text)

    def _judge(self, seq: int, text: str) -> None:
        """Judge a message of the agent. It grounds nothing."""
        account = self.data
        account.answer = judge(account.given, text, self._chosen(text), looked_up=account.results > 0, seq=seq)
        account.call = account.written = None
        account.unknown *= UNKNOWN_FADES
        new = note_said(account.outputs, seq, text, answer=True)
        if account.kept.whole and account.kept.results and len(text) <= MAX_MISPLACED_CHARS:
            # a lone surrogate could not be stored
            account.open_text, account.open_new = text.encode("utf-8", "replace").decode(), new

    def _judge_written(self, seq: int, tool: str, prose: str) -> Grounds | None:
        """Judge what a call writes for people; ``None`` if it writes nothing."""
        account = self.data
        if not prose:
            return None
        stated = facts_of(stated_in(account.given, prose, self._extractors), prose, planned=plans(tool, prose))
        more, looked_up = _misplaced(account, prose, account.outputs.known), account.results > 0
        return judge_claims(account.given, prose, stated, looked_up=looked_up, seq=seq, cited=False, more=more)

    def _close_answer(self) -> None:
        """Hold the newest message, which is an answer, against the records of the results, once."""
        account = self.data
        answer, text, more = account.answer, account.open_text, account.misplaced()
        account.open_text, account.open_new = "", []
        vars(account).pop("found", None)
        if more and answer is not None:
            chosen, looked_up, seq = self._chosen(text), answer.looked_up, answer.seq
            account.answer = judge(account.given, text, chosen, looked_up=looked_up, seq=seq, more=more)

    def _chosen(self, text: str) -> Sequence[Extractor]:
        """Return extractors; without that of quotations where results in another language had to be translated."""
        told = "\n".join(result.text for result in self.data.kept.results)
        if not told or _QUOTING.isdisjoint(text) or not differ(text, told):
            return self._extractors
        return [each for each in self._extractors if each.extractor is not quotes]


_QUOTING = frozenset('"“”„«»「」')


_COPY = msgspec.msgpack.Decoder(list[Claim])


class _Guarded:
    """An extractor that finds nothing where it fails, and is named then."""

    def __init__(self, name: str, extractor: Extractor, failed: dict[str, str]) -> None:
        self._name, self.extractor, self._failed = name, extractor, failed
        self._is_ours = extractor in BUILT_IN.values()  # ours give claims of the right types

    def __call__(self, text: str) -> Sequence[Claim]:
        """Return the claims of a text, checked."""
        try:
            if self._is_ours:
                return self.extractor(text)
            return _checked(list(islice(self.extractor(text), MAX_CLAIMS)), len(text))
        except Exception as error:
            self._failed[self._name] = f"{type(error).__name__}: {error}"[:200]
            return ()


def _checked(claims: list[Claim], length: int) -> list[Claim]:
    """Return claims of a text of that length, or raise for one that is of no use, or that could not be stored."""
    found = _COPY.decode(msgspec.msgpack.encode(claims))
    for claim in found:
        if not claim.forms or not 0 <= claim.start <= length:
            raise ValueError(f"a claim needs forms, and a place in the text: {shown(claim)}")
        if not (isfinite(claim.value or 0.0) and isfinite(claim.grain)):
            raise ValueError(f"the number of a claim must be finite: {shown(claim)}")
    return found
