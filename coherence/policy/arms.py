"""Random choice of the firings that are delivered: one of two in a row, by a coin that is fixed beforehand."""

from __future__ import annotations

import hashlib
import operator

from coherence.core.decisions import Arm


def pair_of(count: int) -> int:
    """Return the number of the pair that the next firing belongs to, after ``count`` firings.

    Examples
    --------
    >>> [pair_of(count) for count in range(5)]
    [0, 0, 1, 1, 2]
    """
    count = operator.index(count)
    if count < 0:
        raise ValueError(f"count must be 0 or more, not {count}")
    return count // 2


def draw_arm(seed: int, agent: str, pattern: str, count: int) -> Arm:
    """Return the arm of the next firing of a pattern: permuted blocks of two.

    Each pair holds one of either arm; the order is a fair coin, a hash of everything but the place within the pair, so
    that it can be drawn again.

    Parameters
    ----------
    seed : int
        Of the experiment; nobody who can change when a pattern fires should choose it to their liking.
    agent, pattern : str
        Whose firing, and of what.
    count : int
        How many firings of this pattern and agent came before, in all of the agent's sessions: 0 or more. Counting
        from 0 in every session would draw the same coins in each.

    Examples
    --------
    >>> [draw_arm(1, "main", "loop", count) for count in range(4)]
    ['control', 'treatment', 'treatment', 'control']
    """
    text = f"{operator.index(seed)}:{len(agent)}:{agent}:{len(pattern)}:{pattern}:{pair_of(count)}"
    coin = hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest()[0] & 1
    return "treatment" if (count + coin) % 2 else "control"
