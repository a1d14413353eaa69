"""Confidence of the model in its answer: from its tokens' probabilities, or else guessed from the text."""

from __future__ import annotations

from math import fsum

import msgspec

from coherence.core.events import LOW_LOGPROB, MAX_SPANS, Logprobs, Span

WINDOW = 128
"""Newest known tokens that a confidence is taken of."""

SHORT = 40
"""Characters below which an answer is short."""

ASKING = 0.02
"""Share of question marks from which an answer asks."""


class Tokens(msgspec.Struct):
    """The tokens of a turn, summed up as they come; bounded whatever their number.

    Examples
    --------
    >>> tokens = Tokens()
    >>> for logprob in (-0.5, -3.0, -4.0, None, -0.5):
    ...     tokens.add(logprob)
    >>> tokens.confidence, tokens.coverage
    (0.8333333333333333, 0.8)
    >>> tokens.pop().spans
    (Span(first=1, count=2, mean=-3.5),)
    """

    newest: list[float] = []
    usable: int = 0
    missing: int = 0
    """Tokens of the turn whose probability is unavailable."""
    text_confidence: float = 0.5
    """Of the answer's text; 0.5 while there is none."""
    place: int = 0
    """Tokens of the answer so far; the rest is of the answer, too."""
    count: int = 0
    total: float = 0.0
    lowest: float = 0.0
    low: int = 0
    run: int = 0
    """Unlikely tokens in a row up to the newest."""
    run_total: float = 0.0
    spans: list[Span] = []

    @property
    def confidence(self) -> float:
        """In [0, 1]: ``0.5 + 0.5 (4 - u) / 3``, *u* = mean of ``-logprob`` over the newest 128, or of the text."""
        if not self.newest:
            return self.text_confidence
        unlikely = -fsum(self.newest) / len(self.newest)
        return min(1.0, max(0.0, 0.5 + 0.5 * (4.0 - unlikely) / 3.0))

    @property
    def coverage(self) -> float:
        """Share of the turn's tokens whose probability is known, 0 without any token."""
        whole = self.usable + self.missing
        return self.usable / whole if whole else 0.0

    def add(self, logprob: float | None) -> None:
        """Take in a token; ``None`` = its probability is unavailable."""
        self.place += 1
        if logprob is None:
            self.missing += 1
            self._end_run(self.place - 1)
            return
        self.usable += 1
        self.newest.append(logprob)
        if len(self.newest) > WINDOW:
            del self.newest[0]
        self.count += 1
        self.total += logprob
        self.lowest = min(self.lowest, logprob)
        if logprob < LOW_LOGPROB:
            self.low += 1
            self.run += 1
            self.run_total += logprob
        elif self.run:
            self._end_run(self.place - 1)

    def _end_run(self, end: int) -> None:
        if not self.run:
            return
        self.spans.append(Span(end - self.run, self.run, self.run_total / self.run))
        self.run, self.run_total = 0, 0.0
        if len(self.spans) > MAX_SPANS:
            # the least unlikely: log-probabilities are below 0
            self.spans.remove(max(self.spans, key=lambda span: (span.mean * span.count, span.first)))

    def pop(self) -> Logprobs | None:
        """End the answer: return what is kept of its tokens, ``None`` if none is known."""
        self._end_run(self.place)
        found = None
        if self.count:
            mean = self.total / self.count
            found = Logprobs(self.count, mean, self.lowest, self.low, tuple(self.spans))
        self.place = self.count = self.low = 0
        self.total = self.lowest = 0.0
        self.spans = []
        return found


def text_confidence(text: str) -> float:
    """Return how sure an answer looks: 0.7, less if it is short (under 40 characters) or asks (2 % question marks).

    Examples
    --------
    >>> [text_confidence(text) for text in ("", "Which one?", "Yes.", "?" + "x" * 40, "x" * 40)]
    [0.5, 0.2, 0.4, 0.4, 0.7]
    """
    if not text:
        return 0.5
    doubts = (len(text) < SHORT) + (text.count("?") >= ASKING * len(text))
    return (0.7, 0.4, 0.2)[doubts]
