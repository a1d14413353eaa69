"""Texts that an agent reads before its next step, where its client shows it one text after a call."""

from __future__ import annotations

from coherence.core.readings import excerpt
from coherence.integrations.host_session import MAX_CONTEXT, News, requests_again
from coherence.monitor.monitor import Monitor


class Briefing:
    """Tell an agent its news, and once its context was compacted what the user wants; learn what of it was seen.

    Parameters
    ----------
    monitor : Monitor
        Of the agent.
    """

    def __init__(self, monitor: Monitor) -> None:
        self._monitor, self._news = monitor, News(monitor)
        self._compacted = False
        self._unseen: dict[str, str] = {}
        """Text that was given out -> the news in it."""

    def compacted(self, summary: str) -> None:
        """Record that the context was shortened to a summary."""
        self._compacted = True
        self._monitor.compaction(summary)

    def next(self) -> str:
        """Return what the agent is to read now, empty if it knows all."""
        news, again = self._news.now(), requests_again(self._monitor) if self._compacted else ""
        self._compacted = False
        text = excerpt(" ".join(filter(None, (again, news))), MAX_CONTEXT)
        if news:
            self._unseen[text] = news
        return text

    def seen(self, text: str) -> None:
        """Record that the agent was shown a text."""
        self._news.seen(self._unseen.pop(text, ""))
