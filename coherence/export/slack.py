"""Slack: messages about agents that need somebody, by an incoming webhook."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

from coherence.core.decisions import KINDS, Decision, DecisionKind
from coherence.core.readings import one_line
from coherence.core.redact import redacted_start
from coherence.core.validation import shown
from coherence.export.webhook import Webhook
from coherence.monitor.sinks import AgentRecord
from coherence.monitor.tick_result import TickResult

MAX_SECTION = 3_000
"""Characters that Slack takes in the text of a block, after escaping; a longer one is refused with all its message."""

MAX_TITLE = 200
"""Characters of a name, and of what has happened, in a message."""

MAX_TOLD = 1_000
"""Sessions whose last message is known."""

_ESCAPES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}


class SlackWebhook(Webhook):
    """Sink that posts to Slack when a decision is to warn or to block. Needs the extra ``webhook``.

    It tells of a decision once: of the next ones of the session only if their kind or the active rules are others. Of a
    guard it takes notices, each of which is told: ``Guard(notifier=slack.emit)``. All else is as with a
    :class:`~coherence.export.webhook.Webhook`: off the calling thread, with retries, without secrets.

    Parameters
    ----------
    url : str
        Address of the webhook, ``https://hooks.slack.com/services/…``. It is a secret, and is never logged.
    least : {"guide", "warn", "block"}
        The mildest decision that is told.
    timeout_s, retries, most_waiting, headers
        As with a ``Webhook``.

    Raises
    ------
    TypeError, ValueError
        If a parameter is none of these.
    MissingExtraError
        If httpx or tenacity is not installed.

    Examples
    --------
    >>> from coherence import Monitor
    >>> slack = SlackWebhook("https://hooks.slack.com/services/T0/B0/x", least="block")
    >>> slack
    SlackWebhook(https://hooks.slack.com)
    >>> with Monitor(agent="fixer", goal="Make the tests pass", embedder=False, sinks=[slack]) as m:
    ...     m.message("assistant", "I run the tests.")
    >>> slack.counts()
    WebhookCounts(sent=0, failed=0, dropped=0, waiting=0)
    >>> slack.close()
    True
    """

    def __init__(
        self,
        url: str,
        *,
        least: DecisionKind = "warn",
        timeout_s: float = 5.0,
        retries: int = 3,
        most_waiting: int = 100,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        if least not in KINDS[1:]:
            raise ValueError(f'least must be "guide", "warn" or "block", not {shown(least)}')
        super().__init__(url, timeout_s=timeout_s, retries=retries, most_waiting=most_waiting, headers=headers)
        self.least = least
        self._told_lock = threading.Lock()
        self._told: OrderedDict[tuple[str, str, bool], tuple[str, ...]] = OrderedDict()
        """Agent, session and whether a call was asked about -> kind and rules of the last message."""

    def __repr__(self) -> str:
        return f"SlackWebhook({self._url.scheme}://{self._url.host})"

    def emit(self, record: object) -> None:
        """Queue a message if the record is worth one; returns at once, and raises nothing."""
        try:
            message = self._message(record)
        except Exception as error:
            self._count("failed", f"a record could not be read: {type(error).__name__}")
            return
        if message is not None:
            super().emit(message)

    def _message(self, record: Any) -> dict[str, Any] | None:
        if isinstance(record, AgentRecord):
            return None if record.result is None else self._of_decision(record, record.result)
        return slack_message(str(record.agent), str(record.kind), str(record.why), "patch of a guard")

    def _of_decision(self, record: AgentRecord, result: TickResult) -> dict[str, Any] | None:
        decision, reading = result.decision, result.reading
        key = record.agent, record.session, reading is None
        if KINDS.index(decision.kind) < KINDS.index(self.least):
            if reading is not None:  # a call that may run says nothing of those that may not
                with self._told_lock:
                    self._told.pop(key, None)
            return None
        state = decision.kind, *sorted({finding.rule for finding in decision.findings if finding.active})
        with self._told_lock:
            if self._told.get(key) == state:
                return None
            self._told[key] = state
            self._told.move_to_end(key)
            if len(self._told) > MAX_TOLD:
                self._told.popitem(last=False)
        parts = [f"session {record.session}", f"event {record.seq}"]
        if reading is not None:
            parts = [f"index {reading.short()}", f"pressure {result.appraisal.effective:.2f}", *parts]
        return slack_message(
            record.agent, _kind_in_words(decision, reading is None), decision.message, ", ".join(parts)
        )

    def _begin(self) -> None:
        super()._begin()
        self._told_lock = threading.Lock()  # in a forked child, too: the parent may have held it


def _kind_in_words(decision: Decision, is_question: bool) -> str:
    return "refused call" if is_question and not decision else decision.kind


def slack_message(agent: str, title: str, text: str, context: str) -> dict[str, Any]:
    r"""Return a message of Slack, each text without secrets, escaped and within Slack's limits.

    Parameters
    ----------
    agent, title : str
        Whom it is about, and what has happened, in a word.
    text : str
        More about it; may be empty.
    context : str
        Figures, in small letters below it.

    Examples
    --------
    >>> message = slack_message("a<b", "warn", "5 > 3 & <!channel>", "index 0.10 red")
    >>> message["text"]
    'a&lt;b: warn: 5 &gt; 3 &amp; &lt;!channel&gt;'
    >>> message["blocks"][0]["text"]
    {'type': 'mrkdwn', 'text': '*a&lt;b*: warn\n5 &gt; 3 &amp; &lt;!channel&gt;'}
    """
    name, what = (escaped(one_line(each), MAX_TITLE) for each in (agent, title))
    head = f"*{name}*: {what}"
    body = escaped(text, MAX_SECTION - len(head) - 1)
    plain = escaped(f"{agent}: {title}: {text}".removesuffix(": "), MAX_SECTION)
    return {
        "text": plain,
        "blocks": [
            {"type": "section", "text": {"type": "mrkdwn", "text": f"{head}\n{body}".rstrip()}},
            {"type": "context", "elements": [{"type": "mrkdwn", "text": escaped(context, MAX_SECTION)}]},
        ],
    }


def escaped(text: str, most: int) -> str:
    """Return a text without secrets, with ``&``, ``<`` and ``>`` as Slack wants them, at most so many characters.

    Examples
    --------
    >>> escaped("a < b", 20), escaped("a <<< b", 9)
    ('a &lt; b', 'a &lt;…')
    """
    found: list[str] = []
    length = 0
    for character in redacted_start(text, most + 1):
        part = _ESCAPES.get(character, character)
        if length + len(part) > most:
            while length > most - 1:
                length -= len(found.pop())
            return "".join(found) + "…"
        found.append(part)
        length += len(part)
    return "".join(found)
