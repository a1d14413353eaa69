r"""Do calls lie beyond a cut more often than those of the baseline? Evidence both ways, valid however often one looks.

Let k of the n calls of the baseline lie within the cut, and let the cut be the worst of those k. Whatever the
distribution, a later call lies beyond it with a probability drawn from Beta(n - k + 1, k), and after i of m later calls
the next one does so with a probability of ``(n - k + 1 + i) / (n + 1 + m)``: that the baseline is an estimate from n
calls is part of it. A bet at these odds is a martingale, so its capital ever reaches ``1 / a`` with a probability of at
most ``a`` if patched calls are like the baseline's.

Success is the same case. Think of a call as failing if a uniform number lies above its chance of success: then at least
the failures, and perhaps more, lie beyond the worst number of a success. Betting against Beta(failures + 1, successes)
therefore errs to the cautious side at each rate of success, as Clopper and Pearson's interval does, and more so for a
patch that improves.

Where unpatched calls go on meanwhile, patched calls are compared with those made at the same time, block by block: with
rates a and b bet on for a patched and an unpatched call, and m their mean over the block's calls, the bet on each call
is at the odds of m. That is fair at each common rate of a block, so it stays valid while the rate changes for all. A
block is some calls of one kind in a row and then as many of the other, or fewer if the first kind comes back: for x and
y calls it is worth x y / (x + y) calls, so it pays to wait for the whole of a slice.

That a patch does no harm is bet on in the same way against the reference made worse by the margin, with a beta
distribution of the same variance. Of that side the error is simulated, and not derived.

References
----------
Wilks (1941), Determination of sample sizes for setting tolerance limits, Annals of Mathematical Statistics 12(1): the
law beyond an order statistic. Clopper, Pearson (1934), Biometrika 26(4). Waudby-Smith, Ramdas (2024), Estimating means
of bounded random variables by betting, Journal of the Royal Statistical Society B 86(1): bets spread over a grid.
Turner, Ly, Grünwald (2024), Generic E-variables for exact sequential k-sample tests that allow for optional stopping,
Journal of Statistical Planning and Inference 230: blocks.
"""

from __future__ import annotations

from math import exp, log

import msgspec

from coherence.baseline.e_process import MAX_EVIDENCE

WORSE = ((0.12, 0.4), (0.22, 0.45), (0.6, 0.15))
"""Bets on harm: the part of the calls within the cut that has moved beyond it, and the share of the stake.

0.22 is a loss of 20 points of success out of 90; 0.6 finds a patch that breaks nearly everything."""

SAME = ((1.0, 0.7), (0.5, 0.3))
"""Bets on no harm: times the baseline's share beyond the cut, share of the stake."""

BETTER = ((0.5, 0.5), (0.15, 0.5))
"""Bets on a cure: times the unpatched calls' share beyond the cut, share of the stake."""

MAX_GAINED = 4.0
"""Factor by which one block multiplies that at most: the end of an outage between two slices is no cure."""

GIVE_WAY = 10
"""Calls of the frozen baseline whose place one unpatched call takes: what goes on now says more than what was."""

LONELY = 10
"""Patched calls without an unpatched one after which none is expected any more, and the reference counts again."""

MAX_WON = 500.0
"""Natural logarithm of what a block multiplies a stake by, at most: a block may be long."""


class Excess(msgspec.Struct):
    """Calls beyond a cut, against a baseline of which some were.

    Make one with :meth:`against`. Each call of :meth:`take` costs the same.

    Examples
    --------
    450 of 500 calls succeeded, then every second one fails:

    >>> excess = Excess.against(beyond=50, within=450, margin=0.1, limit=40.0)
    >>> for call in range(20):
    ...     excess.observe(call % 2 == 0)
    >>> round(excess.harm), round(excess.safe, 3)
    (2008, 0.002)
    """

    margin: float
    """Share by which calls may lie beyond the cut more often and be harmless, in (0, 1); at most half of what
    lies within: where few calls succeed, to lose them all is no small harm."""
    limit: float
    """Evidence of harm that is enough."""
    beyond: float
    within: float
    """Calls of the reference; those of the frozen baseline give way to concurrent ones."""
    frozen: int
    """Calls of the frozen baseline that have not given way."""
    rate: float
    """Share of the frozen baseline that is beyond the cut."""
    harm: float = 1.0
    """Evidence now that calls lie beyond the cut more often than before; 1 = none."""
    safe: float = 1.0
    """Evidence now that they do not do so by the margin; 1 = none."""
    gain: float = 1.0
    """Evidence now that patched calls lie beyond the cut less often than unpatched ones; 1 = none."""
    seen_beyond: int = 0
    seen_within: int = 0
    worse: tuple[float, float, float] = (WORSE[0][1], WORSE[1][1], WORSE[2][1])
    same: tuple[float, float] = (SAME[0][1], SAME[1][1])
    better: tuple[float, float] = (BETTER[0][1], BETTER[1][1])
    """Stakes as the bets have left them."""
    worse_rates: tuple[float, float, float] = (0.0, 0.0, 0.0)
    same_rates: tuple[float, float] = (0.0, 0.0)
    """The shares beyond the cut that are bet on."""
    same_time: bool = False
    """True = patched calls are compared with unpatched ones of the same time."""
    block: tuple[int, int, int, int] = (0, 0, 0, 0)
    """Patched calls beyond and within, then unpatched ones, since the last bet on such a block."""
    tolerable_beyond: float = 0.0
    tolerable_within: float = 0.0
    """The reference, worse by the margin; both 0 = none of it lies within, and nothing can be worse."""

    @classmethod
    def against(cls, *, beyond: int, within: int, margin: float, limit: float) -> Excess:
        """Return one that begins. As long as no call of the reference lies within, nothing can get worse."""
        size = beyond + within
        excess = cls(margin, limit, float(beyond), float(within), size, beyond / max(size, 1))
        excess._set_odds()
        return excess

    def observe(self, is_beyond: bool) -> None:
        """Take in one patched call."""
        # once there are unpatched calls, what hits both kinds alike is no evidence
        if self.same_time:
            self._pair(is_beyond, patched=True)
        elif self.within > 0.0:
            odds = (self.beyond + 1.0 + self.seen_beyond, self.within + self.seen_within)
            self.worse = _bet3(self.worse, self.worse_rates, odds, is_beyond)
            self.harm = sum(self.worse)
        if self.tolerable_within > 0.0:
            odds = (self.tolerable_beyond + self.seen_beyond, self.tolerable_within + self.seen_within)
            self.same = _bet2(self.same, self.same_rates, odds, is_beyond)
            self.safe = sum(self.same)
        if is_beyond:
            self.seen_beyond += 1
        else:
            self.seen_within += 1

    def compare(self, is_beyond: bool) -> None:
        """Take in one unpatched call made meanwhile."""
        self.same_time = True
        self._pair(is_beyond, patched=False)

    def forget(self) -> None:
        """Begin anew with the evidence of harm; later calls are compared with unpatched ones of the same time."""
        self.worse = WORSE[0][1], WORSE[1][1], WORSE[2][1]
        self.harm, self.same_time, self.block = 1.0, True, (0, 0, 0, 0)

    def _pair(self, is_beyond: bool, *, patched: bool) -> None:
        """Add a call to the block. Of two kinds that are in it, the one with more calls came first."""
        ours, others = sum(self.block[:2]), sum(self.block[2:])
        if ours and others and patched == (ours > others):
            self._close()
            ours = others = 0
        place = 2 * (not patched) + (not is_beyond)
        counts = [*self.block]
        counts[place] += 1
        self.block = counts[0], counts[1], counts[2], counts[3]
        ours, others = ours + patched, others + (not patched)
        if ours == others:
            self._close()
        elif not others and ours >= LONELY:
            self.same_time, self.block = False, (0, 0, 0, 0)

    def _close(self) -> None:
        usual = (self.beyond + 0.5) / (self.beyond + self.within + 1.0)
        if self.within > 0.0:
            first, second, third = (self._won(rate, usual) for rate in self.worse_rates)
            one, two, three = self.worse
            self.worse = (
                min(one * first, MAX_EVIDENCE),
                min(two * second, MAX_EVIDENCE),
                min(three * third, MAX_EVIDENCE),
            )
            self.harm = sum(self.worse)
        first, second = (min(self._won(usual * times, usual), MAX_GAINED) for times, _ in BETTER)
        one, two = self.better
        self.better = min(one * first, MAX_EVIDENCE), min(two * second, MAX_EVIDENCE)
        self.gain = sum(self.better)
        self._renew(*self.block[2:])
        self.block = (0, 0, 0, 0)

    def _won(self, rate: float, usual: float) -> float:
        """Return what the block multiplies a stake by that is bet on a rate of the patched calls."""
        beyond, within, other_beyond, other_within = self.block
        share = (beyond + within) / sum(self.block)
        mean = share * rate + (1.0 - share) * usual
        won = beyond * log(rate / mean) + within * log((1.0 - rate) / (1.0 - mean))
        won += other_beyond * log(usual / mean) + other_within * log((1.0 - usual) / (1.0 - mean))
        return exp(min(won, MAX_WON))

    def _renew(self, beyond: int, within: int) -> None:
        """Let calls of the frozen baseline give way to unpatched ones."""
        if self.frozen:
            gone = min(GIVE_WAY * (beyond + within), self.frozen)
            self.frozen -= gone
            self.beyond -= gone * self.rate
            self.within -= gone * (1.0 - self.rate)
            if not self.frozen:  # without what rounding has left
                self.beyond, self.within = float(round(self.beyond)), float(round(self.within))
        self.beyond += beyond
        self.within += within
        self._set_odds()

    def _set_odds(self) -> None:
        rate = (self.beyond + 1.0) / (self.beyond + 1.0 + self.within)
        first, second, third = (rate + moved * (1.0 - rate) for moved, _ in WORSE)
        self.worse_rates = first, second, third
        size = self.beyond + self.within + 1.0
        rate = (self.beyond + 0.5) / size
        self.same_rates = rate * SAME[0][0], rate * SAME[1][0]
        tolerable = rate + min(self.margin, (1.0 - rate) / 2.0)
        if self.within > 0.0:  # as uncertain as the rate itself: a beta distribution of the same variance
            size = max(tolerable * (1.0 - tolerable) * (size + 1.0) / (rate * (1.0 - rate)) - 1.0, 2.0)
            self.tolerable_beyond, self.tolerable_within = tolerable * size, (1.0 - tolerable) * size
        else:
            self.tolerable_beyond = self.tolerable_within = 0.0


def _bet3(
    stakes: tuple[float, float, float], rates: tuple[float, float, float], odds: tuple[float, float], is_beyond: bool
) -> tuple[float, float, float]:
    """Return the stakes after one call; written out, for this is most of what a call costs."""
    first, second, third = stakes
    one, two, three = rates
    if is_beyond:
        won = (odds[0] + odds[1]) / odds[0]
    else:
        won = (odds[0] + odds[1]) / odds[1]
        one, two, three = 1.0 - one, 1.0 - two, 1.0 - three
    first, second, third = first * one * won, second * two * won, third * three * won
    if first + second + third > MAX_EVIDENCE:
        return min(first, MAX_EVIDENCE), min(second, MAX_EVIDENCE), min(third, MAX_EVIDENCE)
    return first, second, third


def _bet2(
    stakes: tuple[float, float], rates: tuple[float, float], odds: tuple[float, float], is_beyond: bool
) -> tuple[float, float]:
    first, second = stakes
    one, two = rates
    if is_beyond:
        won = (odds[0] + odds[1]) / odds[0]
    else:
        won = (odds[0] + odds[1]) / odds[1]
        one, two = 1.0 - one, 1.0 - two
    first, second = first * one * won, second * two * won
    return (first, second) if first + second <= MAX_EVIDENCE else (min(first, MAX_EVIDENCE), min(second, MAX_EVIDENCE))
