"""One agent of a session: hooks and transcript together tell its life, each thing once, as the transcript orders it."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path
from time import monotonic, sleep
from typing import Any, NamedTuple

import msgspec

from coherence.core.readings import number_of
from coherence.integrations.claude_code.costs import CostFeed
from coherence.integrations.claude_code.known import INTERRUPTED, Known
from coherence.integrations.claude_code.permissions import Questions
from coherence.integrations.claude_code.transcript_tail import NOT_WANTED, Entry, TranscriptTail, shown_text
from coherence.integrations.host_session import REFUSED, UNTOLD, News
from coherence.monitor.monitor import Monitor

MAX_TICKS = 64
"""Steps that are measured for one event; of a longer gap, the rest is recorded and measured at once."""

LAG_S = 0.5
"""Seconds for which the end of a turn waits for its last words in the transcript."""

MAX_CALLS = 1_000
"""Calls and results that wait; the oldest leave."""

REPEATED = 8
"""Newest calls among which one that is made again is looked for."""

STOPPED = "The user stopped this call."
"""Recorded as the result of a call that had begun."""

_STOPPED = {
    True: STOPPED,
    False: "The user did not let this call run.",
    None: "The user stopped this call, or did not let it run.",
}
"""True for a call that had begun, ``None`` = unknown -> text that is recorded as its result."""

_INVALID = "<tool_use_error>"
"""Beginning of the result of a call that the client itself has refused before any hook was asked."""

_NOT_RUN = (_INVALID, "Permission to use ", "Claude requested permissions to ")
"""Beginnings of the results of calls that the client itself has refused."""

_ASIDE = ("prompt", "context", "interruption", "compaction")
"""Entries that are not missed where others follow them that are recorded."""


class _Call(NamedTuple):
    tool: str
    arguments: Any


class _Result(NamedTuple):
    """Result as a hook has told it."""

    tool: str
    text: Any
    error: bool
    duration_s: float | None


class Agent:
    """Record an agent's steps: a message with its calls and tokens, then the results.

    A hook is asked about a call before the transcript has it, perhaps, and is told a result before the transcript has
    it. So a call waits for its message, and results wait for the end of the step, when the client tells what the
    agent was shown. After each part is measured, as in a transcript that is scored.

    Parameters
    ----------
    monitor : Monitor
        Of the agent; it measures when it is told to.
    transcript : Path, optional
        The agent's transcript; without it, what hooks tell is recorded at once.
    lag_s : float
        Seconds for which a call waits for its message in the transcript; once that was in vain, no call waits.
    """

    def __init__(self, monitor: Monitor, transcript: Path | None, *, lag_s: float = 0.0) -> None:
        self.monitor = monitor
        self._lag_s = lag_s
        self.news = News(monitor)
        self._tail = TranscriptTail(transcript) if transcript is not None else None
        self._known = Known.of(monitor)
        self._goes_on = bool(self._known)
        """True until the place in the transcript is found at which the record ends."""
        self._is_hooked = self._goes_on
        """False while the transcript tells of a time before hooks were there."""
        self._has_caught_up = False
        self._message = ""
        """Id of the message whose step is under way."""
        self._opened = ""
        """Id of the newest message that was recorded here; what follows in it is no repetition."""
        self._words: list[Entry] = []
        """Of that message, as long as it is not recorded."""
        self._usage: Entry | None = None
        """Tokens of that message: each of its parts repeats them, the last one knows best."""
        self._made: dict[str, _Call] = {}
        """Calls of that message that are not recorded: no hook has told them yet, or one before them."""
        self._told: set[str] = set()
        """Those of them that a hook has told."""
        self._waiting: dict[str, _Call] = {}
        """Calls that hooks have told before the transcript."""
        self._refused: dict[str, _Call] = {}
        self._results: dict[str, _Result] = {}
        """Results that hooks have told."""
        self._shown: dict[str, Entry] = {}
        """Results that the transcript has told."""
        self._lost = 0
        """Bytes of the transcript that were left out, as far as it was recorded."""
        self._ticks = 0
        self._model = ""
        """Model of the newest message."""
        self._calls: deque[bytes] = deque(maxlen=REPEATED)
        self._trouble = False
        self.questions = Questions(monitor)
        self.costs = CostFeed(monitor)

    @property
    def troubled(self) -> bool:
        """True if something of this step has failed or was done before, or the newest decision was no plain yes.

        Only then a hook waits for the step to be measured: what there is to tell must be told before the next call.
        """
        return self._trouble or self.news.decision.kind != "continue"

    def note_call(self, tool: str, arguments: object) -> None:
        """Remember a call; one that was made before is trouble."""
        call = blake2b(msgspec.json.encode((tool, arguments)), digest_size=8).digest()
        self._trouble |= call in self._calls
        self._calls.append(call)

    def note_trouble(self) -> None:
        """Remember that what was told of this step is no plain yes."""
        self._trouble = True

    def tell(self) -> str:
        """Return what the agent is to know before its next step, as far as it is measured."""
        told = self.news.now() if self.troubled else self.news.next()
        self._trouble = False
        return told

    def begin(self) -> None:
        """Take in that hooks tell of the agent from its first step on."""
        self._is_hooked = True

    def prepare(self, call: str) -> None:
        """Record what led to a call that is about to be made."""
        if self._read():
            assert self._tail is not None
            if self._lag_s and call not in self._known and call not in self._made:
                self._await_call(call, self._tail)
            self._take(self._tail.up_to_call(call))

    def _await_call(self, id: str, tail: TranscriptTail) -> None:
        until = monotonic() + self._lag_s
        while not tail.up_to_call(id):
            if monotonic() > until:
                self._lag_s = 0.0
                return
            sleep(LAG_S / 100)
            tail.read()

    def call(self, id: str, tool: str, arguments: Any) -> None:
        """Take in that a call is made."""
        if id and id in self._known:
            return
        if id in self._made:
            self._told.add(id)
            self._record_told()
        elif self._tail is None or not id:
            self._record_call(id, _Call(tool, arguments))
        else:
            _put(self._waiting, id, _Call(tool, arguments))

    def refuse(self, id: str, tool: str, arguments: Any) -> None:
        """Take in that a call was refused; it may run all the same, if nobody waited for the answer."""
        _put(self._refused, id, _Call(tool, arguments))

    def result(
        self,
        id: str,
        tool: str,
        arguments: Any,
        text: Any,
        *,
        error: bool,
        duration_s: float | None = None,
        ran: bool = True,
    ) -> None:
        """Take in what came of a call."""
        if id and self._known.has_result(id):
            return
        if ran:
            self.questions.let_through(id)
        self._refused.pop(id, None)
        if id and id not in self._waiting:
            self.call(id, tool, arguments)
        if self._tail is None or not id:
            self._record_result(id, _Result(tool, text, error, duration_s))
            return
        self.prepare(id)
        _put(self._results, id, _Result(tool, text, error, duration_s))

    def end_step(self, shown: Mapping[str, Any]) -> None:
        """Take in that all calls of a message are done.

        Parameters
        ----------
        shown : mapping
            Id of each call -> what the agent is shown of its result.
        """
        for id, response in shown.items():
            self._take_response(id, response)
        if self._read():
            assert self._tail is not None
            self._take(self._tail.up_to_results(shown))
        self._settle(shown, whole=True)

    def _take_response(self, id: str, response: Any) -> None:
        """Take in what the agent is shown of a call that a hook was asked about, if no hook has told its result.

        The transcript may not have it yet, which knows best whether the call has failed.
        """
        refused, said = self._refused.get(id), shown_text(response) or ""
        if said.startswith(NOT_WANTED) or (refused is not None and REFUSED in said):
            return
        asked = refused is not None or id in self._waiting or id in self._told or id in self._known
        if asked and response is not None and id not in self._results:
            tool, arguments = refused or ("", None)
            denied = said.startswith(_NOT_RUN)
            self.result(id, tool, arguments, said or response, error=denied, ran=not denied)

    def prompt(self, text: str, id: str = "", *, counts: bool = True, anew: bool = False) -> None:
        """Take in what the user asks; what does not count is no request, and ``anew`` begins another task."""
        if self._read():
            assert self._tail is not None
            place = self._tail.up_to_prompt(id, text)
            self._take(len(self._tail.waiting) if place is None else place)
        self._settle(whole=True)
        if self._known.told_prompt(id, text) and counts and text.strip():
            if anew:
                self.monitor.goal(text)
            self._record_prompt(text)

    def end_turn(self, said: str) -> None:
        """Take in that the agent waits, with its last words."""
        if self._read():
            assert self._tail is not None
            until = monotonic() + LAG_S
            while self._awaits(said, self._tail) and monotonic() < until:
                sleep(LAG_S / 20)
                self._tail.read()
            self._take(self._tail.up_to_words(said))
        self._settle(whole=True)
        if said.strip() and said.strip() != self._known.last_said.strip():
            self._known.tell_ahead(said)
            self.monitor.message("assistant", said)
            self._known.last_said = said
            self._tick()

    def _awaits(self, said: str, tail: TranscriptTail) -> bool:
        """Tell whether the transcript is about to tell words: their tokens are to be measured with them."""
        new = said.strip() and said.strip() != self._known.last_said.strip()
        return bool(new) and tail.exists and not tail.has_words(said)

    def catch_up(self, *, to_compaction: bool = False) -> None:
        """Take in all that the transcript says, up to the next prompt that no hook has told, or to a compaction."""
        if self._read():
            assert self._tail is not None
            new = (
                at
                for at, each in enumerate(self._tail.waiting)
                if (to_compaction and each.kind == "compaction")
                or (each.kind == "prompt" and each.value and not self._known.is_told(each.message, each.value))
            )
            self._take(next(new, len(self._tail.waiting)))
        self._settle(whole=True)

    def close(self) -> None:
        """Record what waits for a transcript that is not there; another is read on when the session goes on."""
        if self._tail is None or not self._tail.exists:
            self._settle(whole=True)

    def _read(self) -> bool:
        """Read more of the transcript; ``False`` as long as it is not known where the record ends in it."""
        self._ticks = 0
        if self._tail is None:
            return False
        self._is_hooked |= self._has_caught_up
        self._tail.read()
        self._has_caught_up = self._tail.at_end
        if self._goes_on and self._tail.at_end:
            self._goes_on = False
            self._skip_recorded(self._tail)
        if not self._goes_on:
            lost, self._lost = self._tail.left_out - self._lost, self._tail.left_out
            if lost and self._is_hooked:
                self.monitor.fault(UNTOLD, f"{lost:,} bytes of the transcript were too many to read")
        return not self._goes_on

    def _skip_recorded(self, tail: TranscriptTail) -> None:
        """Let go of what is recorded: all before the first entry that is, and what people said before the last one."""
        places = [at for at, each in enumerate(tail.waiting) if self._is_known(each)]
        if places:
            self._lost = tail.left_out  # it lies before
            after, kept = tail.waiting[places[-1] :], tail.waiting[places[0] : places[-1]]
            messages = [tail.waiting[at].message for at in places]
            self._message = next((each for each in reversed(messages) if each), "")
            missed = [each for each in kept if each.kind not in _ASIDE and not self._is_known(each)]
            tail.waiting = [*missed, *after]

    def _is_known(self, entry: Entry) -> bool:
        if entry.kind in ("result", "refusal"):
            return self._known.has_result(entry.value)
        if entry.kind == "usage":
            return self._known.has_usage(entry.message)
        return (entry.kind == "call" and entry.value in self._known) or (
            entry.kind == "text" and (entry.message in self._known or entry.value.strip() in self._known.ahead)
        )

    def _take(self, count: int) -> None:
        """Record what the transcript says, up to a place."""
        assert self._tail is not None
        for entry in self._tail.take(count):
            if entry.kind == "context":
                self.news.seen(entry.value)
            elif entry.kind == "prompt":
                self._settle()
                if self._known.took_prompt(entry.message, entry.value) and entry.value:
                    self._record_prompt(entry.value)
            elif entry.kind == "compaction":
                self._settle()
            elif entry.kind in ("refusal", "interruption"):
                self._take_interruption(entry)
            elif entry.kind == "result":
                if not self._known.has_result(entry.value):
                    _put(self._shown, entry.value, entry)
            else:
                if self._message and entry.message != self._message:
                    self._settle()
                self._message = entry.message
                self._take_part(entry)

    def _take_interruption(self, entry: Entry) -> None:
        """Take in that the user stopped the agent: a call that they stopped has not failed."""
        id = entry.value
        if entry.kind == "interruption":
            self._settle(whole=True)
            if not self._known.is_interrupted:
                self.monitor.note(INTERRUPTED)
            self._known.is_interrupted = True
        elif not self._known.has_result(id):
            if entry.ran:
                self.questions.let_through(id)
                if id in self._refused and id not in self._made:
                    _put(self._waiting, id, self._refused[id])
            elif (entry.ran is False and self.questions.refused(id)) or id in self._refused:
                return
            _put(self._shown, id, Entry("result", id, data=_STOPPED[entry.ran]))

    def _take_part(self, entry: Entry) -> None:
        """Take in a part of a message: tokens, words or a call."""
        if entry.kind == "usage":
            self._usage = entry if not self._known.has_usage(entry.message) else None
        elif entry.kind == "text":
            self._words.append(entry)
        elif entry.value not in self._known:
            self._open_message(entry)
            _put(self._made, entry.value, _Call(entry.tool, entry.data))
            if self._waiting.pop(entry.value, None) is not None:
                self._told.add(entry.value)
            self._record_told()
        elif self._words:
            self._open_message(entry)

    def _open_message(self, part: Entry) -> None:
        """Record the agent's words, be they none, before its first call."""
        words = "\n".join(each.value for each in self._words)
        self._words.clear()
        if words.strip() in self._known.ahead:
            self._known.ahead.remove(words.strip())
        elif part.message not in self._known or (words and part.message == self._opened):
            self._opened = part.message
            self.monitor.message("assistant", words, model=part.model or None, response_id=part.message or None)
            self._known.last_said, self._known.is_measured = words, False
        self._known.add(part.message)

    def _settle(self, shown: Mapping[str, Any] | None = None, *, whole: bool = False) -> None:
        """Record the step under way to its end.

        Parameters
        ----------
        shown : mapping, optional
            Id of each call -> what the agent is shown of its result.
        whole : bool
            Nothing more is to come of calls that hooks have told.
        """
        shown = shown or {}
        if self._words:
            self._open_message(self._words[0])
        if whole:
            for id in list(self._waiting):
                self._record_call(id, self._waiting.pop(id))
        self._record_made(shown)
        self._record_usage()
        if not self._known.is_measured:
            self._tick()
        for id in dict.fromkeys((*self._shown, *shown, *self._results)):
            if id in self._known and (found := self._result_of(id, shown.get(id))) is not None:
                self._record_result(id, found)
        self._shown.clear()

    def _record_told(self) -> None:
        """Record the calls of the message that hooks have told, up to the first that none has: its hook may run yet."""
        for id in list(self._made):
            if id in self._told:
                self._record_call(id, self._made.pop(id))
            elif id not in self._refused:
                break

    def _record_made(self, shown: Mapping[str, Any]) -> None:
        """Record the calls of the message that are left, also those that no hook has told: now none will."""
        missed = 0
        for id, made in self._made.items():
            said = self._shown[id].data if id in self._shown else None
            refused = REFUSED in said if said is not None else id in self._refused
            if id in self._told:
                self._record_call(id, made)
            elif not refused and (said is not None or id in shown):
                missed += id not in self._refused and not (said or "").startswith(_INVALID)
                self._record_call(id, made)
        self._made.clear()
        self._told.clear()
        if missed and self._is_hooked:
            calls = number_of(missed, "call")
            self.monitor.fault(UNTOLD, f"{calls} taken from the transcript: no hook told, or the daemon was killed")

    def _result_of(self, id: str, response: Any) -> _Result | None:
        """Return the result of a call as the agent was shown it, ``None`` if it is not known."""
        told, shown = self._results.pop(id, None), self._shown.get(id)
        if self._known.has_result(id):
            return None
        if told is not None and told.text == STOPPED:
            return told
        if shown is not None:
            tool, duration = (told.tool, told.duration_s) if told is not None else ("", None)
            return _Result(tool, shown.data, shown.error, duration)
        text = shown_text(response) if response is not None else None
        return told if told is None or text is None else told._replace(text=text)

    def _record_prompt(self, text: str) -> None:
        self.monitor.message("user", text)
        self._known.last_said = ""
        self._tick()

    def _record_call(self, id: str, made: _Call) -> None:
        self.monitor.tool_call(made.tool, made.arguments, call=id or None)
        self._known.last_said, self._known.is_measured = "", False
        if id:
            self._known.add(id)

    def _record_result(self, id: str, came: _Result) -> None:
        self.monitor.tool_result(
            came.text, error=came.error, duration_s=came.duration_s, call=id or None, tool=came.tool or None
        )
        if id:
            self._known.add_result(id)
        self._tick()

    def _record_usage(self) -> None:
        found, self._usage = self._usage, None
        if found is not None and found.usage is not None:
            if self._model and found.model and found.model != self._model:
                self.monitor.note(f"the model changed from {self._model} to {found.model}")
            self._model = found.model or self._model
            tokens = found.usage.to_counters()
            self.monitor.usage(
                tokens_in=tokens.tokens_in,
                tokens_out=tokens.tokens_out,
                tokens_cached=found.usage.cache_read_input_tokens,
                cost_usd=self.costs.take(),
                model=found.model or None,
                response_id=found.message or None,
            )
            self._known.add_usage(found.message)

    def _tick(self) -> None:
        """Have the step measured; those of a long gap together."""
        self._known.is_measured = True
        self._ticks += 1
        if self._ticks <= MAX_TICKS:
            self.monitor.tick()


def _put(into: dict[str, Any], id: str, value: Any) -> None:
    into[id] = value
    while len(into) > MAX_CALLS:
        del into[next(iter(into))]
