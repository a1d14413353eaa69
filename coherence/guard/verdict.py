"""Patched calls against the baseline, call by call: keep looking, promote, or roll back."""

from __future__ import annotations

from typing import Literal

import msgspec

from coherence.baseline.e_process import MAX_EVIDENCE
from coherence.core.validation import check_count, check_number
from coherence.guard.baseline import Baseline, CallOutcome, Spread
from coherence.guard.sequential import Excess

ALPHA = 0.05
"""Probability that a harmless patch is ever rolled back, at most; and that one worse by a margin is shown harmless."""

MAX_CALLS = 300
"""A trial ends there."""

SUCCESS_MARGIN = 0.1
"""A patch whose rate of success is lower by less counts as harmless."""

OTHER_MARGIN = 0.15
"""The same for latency, cost and index: how much more often calls lie among what was the worst third."""

SUCCESS_WEIGHT = 2.0
"""Of the shares of :data:`ALPHA`; latency, cost and index have 1 each, if the baseline knows them."""

FEWEST = 3
"""Patched calls before anything is rolled back: after hundreds of successes one failure would be evidence enough, and
convince nobody who reads it."""

FIRST_RUN, FIRST_SHARE = 5, 0.4
"""A patch that fails from its first call on: so many failures at least, and at most this share of :data:`ALPHA`."""

LATER_RUN, LATER_SHARE = 3, 0.05
"""The same for failures in a row that begin after a success, all of them together."""

MAX_RUN = 40
"""Failures in a row beyond which a run is no test."""

FEW_CALLS, UNKNOWN_RUN = 10, 10
"""With a baseline of fewer calls, so many failures from the first call on roll back: a policy, not a test."""

Kind = Literal["keep_looking", "promote", "roll_back"]
"""``keep_looking`` is the only one that changes later."""


class Verdict(msgspec.Struct, frozen=True):
    """Decision on a patch on trial."""

    kind: Kind
    why: str = ""
    """One sentence; empty while looking."""
    metric: str | None = None
    """Metric that has got worse: ``success``, ``failure_run``, ``latency``, ``cost`` or ``index``."""
    evidence: float | None = None
    """Capital of the bet, or for a run 1 / its probability; ``None`` where a policy decided."""
    limit: float | None = None
    """Limit that the evidence had to reach: 1 / the metric's share of alpha."""


KEEP_LOOKING = Verdict("keep_looking")


class Trial(msgspec.Struct):
    r"""A patch on trial. A call costs the same however many there were; the state is plain data.

    Make one with :meth:`begin`. It rolls back on the first of these that happens:

    - the bet of :class:`~coherence.guard.sequential.Excess` on success, latency, cost or index reaches 1 / its
    share;
    - failures in a row, from the first call on or later, that the baseline makes improbable: of the uncertain rate of
      failure, k in a row have :math:`\prod_{i<k} (f + 1 + i) / (n + 1 + i)` for f failures of n calls;
    - with a baseline of fewer than 10 calls, 10 failures from the first call on.

    It promotes when each metric of the baseline is shown to be no worse than by its margin, when patched calls are
    shown to succeed more often than unpatched ones of the same time and nothing else looks worse, or after
    ``most_calls``.
    What the runs do not use of alpha is shared by the metrics that the baseline knows, so all tests together roll back
    a patch with a probability of at most alpha if its calls are like the baseline's, or better, and independent of
    each other. Where unpatched calls go on, patched ones are
    compared with those of the same time, and alpha holds although the rate changes for both. A run of failures that
    begins later than with the first call then counts only once an unpatched call has succeeded after its begin, and
    ends where one fails: so a bad hour of the provider is no evidence against the patch, as far as both kinds of calls
    are made in it. Slices of calls in turn show less of it than calls drawn one by one.

    Examples
    --------
    >>> trial = Trial.begin(Baseline(calls=500, successes=450))
    >>> for _ in range(3):
    ...     verdict = trial.observe(CallOutcome(success=False))
    >>> verdict.kind, verdict.metric, verdict.why
    ('roll_back', 'success', 'success fell: 0 of 3 patched calls, 450 of 500 before')
    """

    baseline: Baseline
    alpha: float
    most_calls: int
    first_run: int | None
    later_run: int | None
    success: Excess
    latency: Excess | None
    cost: Excess | None
    index: Excess | None
    calls: int = 0
    run: int = 0
    """Failures in a row now."""
    fails_from_first: bool = True
    """True = the run began with the first call."""
    vouched: bool = False
    """True = an unpatched call has succeeded since the run began."""
    verdict: Verdict = KEEP_LOOKING

    @classmethod
    def begin(cls, baseline: Baseline, *, alpha: float = ALPHA, most_calls: int = MAX_CALLS) -> Trial:
        """Return a trial of a patch against a baseline.

        Parameters
        ----------
        alpha : float
            In [0.0001, 0.5]. Lower rolls back fewer harmless patches, and harmful ones later.
        most_calls : int
            10 or more.
        """
        check_number("alpha", alpha, least=1e-4, most=0.5)
        check_count("most_calls", most_calls, least=10)
        failures = baseline.calls - baseline.successes
        first = _run_length(failures, baseline.calls, FIRST_RUN, FIRST_SHARE * alpha)
        later = _run_length(failures, baseline.calls, LATER_RUN, LATER_SHARE * alpha / most_calls)
        used = _run_chance(failures, baseline.calls, first) + most_calls * _run_chance(failures, baseline.calls, later)
        known = sum(spread is not None for spread in (baseline.latency, baseline.cost, baseline.index))
        limit = (SUCCESS_WEIGHT + known) / (alpha - used)
        return cls(
            baseline=baseline,
            alpha=alpha,
            most_calls=most_calls,
            first_run=first,
            later_run=later,
            success=Excess.against(
                beyond=failures, within=baseline.successes, margin=SUCCESS_MARGIN, limit=limit / SUCCESS_WEIGHT
            ),
            latency=_third(baseline.latency, limit),
            cost=_third(baseline.cost, limit),
            index=_third(baseline.index, limit),
        )

    def observe(self, outcome: CallOutcome) -> Verdict:
        """Take in one patched call and return what is to be done; a decided trial stays as it is."""
        if self.verdict.kind != "keep_looking":
            return self.verdict
        self.calls += 1
        self.run = 0 if outcome.success else self.run + 1
        self.vouched = self.vouched and not outcome.success
        self.fails_from_first = self.fails_from_first and not outcome.success
        tests = self.tests
        for metric, is_beyond in self.baseline.beyond(outcome):
            tests[metric].observe(is_beyond)
        self.verdict = self._decide(tests)
        return self.verdict

    def compare(self, outcome: CallOutcome) -> Verdict:
        """Take in one unpatched call made meanwhile and return what is to be done; a decided trial stays as it is."""
        if self.verdict.kind != "keep_looking":
            return self.verdict
        if outcome.success:
            self.vouched = self.run > 0
        else:
            # it fails without the patch, too: the provider may be down
            self.run, self.fails_from_first, self.vouched = 0, False, False
        tests = self.tests
        for metric, is_beyond in self.baseline.beyond(outcome):
            tests[metric].compare(is_beyond)
        self.verdict = self._decide(tests)
        return self.verdict

    def reprieve(self) -> None:
        """Take back a rollback, and forget all evidence of harm so far: calls are not as the baseline says."""
        if self.verdict.kind == "promote":
            return
        self.run, self.fails_from_first, self.vouched, self.verdict = 0, False, False, KEEP_LOOKING
        self.later_run = None  # by the baseline as well
        for test in self.tests.values():
            test.forget()

    @property
    def tests(self) -> dict[str, Excess]:
        """Bets by metric, of those that the baseline knows."""
        found = {"success": self.success, "latency": self.latency, "cost": self.cost, "index": self.index}
        return {metric: test for metric, test in found.items() if test is not None}

    def _decide(self, tests: dict[str, Excess]) -> Verdict:
        enough, shown = self.calls >= FEWEST, True
        for metric, test in tests.items():
            if enough and test.harm >= test.limit:
                return self._worse(metric, test)
            shown = shown and test.safe >= 1.0 / self.alpha
        if self.run and (failing := self._failing()):
            return failing
        if self.success.gain >= 1.0 / self.alpha and all(test.harm <= 1.0 for test in tests.values()):
            why = f"success rose: {self.success.seen_within} of {self.calls} patched calls, and less of the others"
            return Verdict("promote", why, "success", self.success.gain, 1.0 / self.alpha)
        if shown:
            evidence = min(test.safe for test in tests.values())
            return Verdict("promote", f"shown harmless by {self.calls} patched calls", None, evidence, 1.0 / self.alpha)
        if self.calls >= self.most_calls:
            return Verdict("promote", f"no evidence of harm in {self.calls} patched calls")
        return KEEP_LOOKING

    def _worse(self, metric: str, test: Excess) -> Verdict:
        seen = test.seen_beyond + test.seen_within
        before = self.baseline
        if metric == "success":
            why = (
                f"success fell: {test.seen_within} of {seen} patched calls, {before.successes} of {before.calls} before"
            )
        else:
            spread: Spread = getattr(before, metric)
            why = (
                f"{metric} got worse: {test.seen_beyond} of {seen} patched calls are beyond what "
                f"{spread.within} of {spread.known} calls kept to before"
            )
        return Verdict("roll_back", why, metric, test.harm, test.limit)

    def _failing(self) -> Verdict | None:
        before = self.baseline
        begun = self.fails_from_first
        if begun and before.calls < FEW_CALLS and self.run >= UNKNOWN_RUN:
            why = f"no success in {self.run} patched calls, and only {before.calls} calls before"
            return Verdict("roll_back", why, "failure_run")
        length = self.first_run if begun else self.later_run
        if length is None or self.run < length or not (begun or self.vouched or not self.success.same_time):
            return None
        failures = before.calls - before.successes
        limit = 1.0 / (FIRST_SHARE * self.alpha) if begun else self.most_calls / (LATER_SHARE * self.alpha)
        evidence = min(1.0 / _run_chance(failures, before.calls, self.run), MAX_EVIDENCE)
        why = f"{self.run} failures in a row, {before.successes} of {before.calls} calls succeeded before"
        return Verdict("roll_back", why, "failure_run", evidence, limit)


def _third(spread: Spread | None, limit: float) -> Excess | None:
    if spread is None:
        return None
    return Excess.against(beyond=spread.known - spread.within, within=spread.within, margin=OTHER_MARGIN, limit=limit)


def _run_chance(failures: int, calls: int, length: int | None) -> float:
    """Return how probable so many failures in a row are after a baseline; 0 for no run at all."""
    chance = 0.0 if length is None else 1.0
    for place in range(length or 0):
        chance *= (failures + 1.0 + place) / (calls + 1.0 + place)
    return chance


def _run_length(failures: int, calls: int, least: int, most_chance: float) -> int | None:
    for length in range(least, MAX_RUN + 1):
        if _run_chance(failures, calls, length) <= most_chance:
            return length
    return None
