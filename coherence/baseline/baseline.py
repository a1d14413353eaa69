"""What is usual for an agent: an exponentially weighted mean and variance of one signal."""

from __future__ import annotations

import math

import msgspec


class Baseline(msgspec.Struct):
    r"""The usual level and spread of one signal.

    .. math:: \mu \leftarrow \alpha x + (1 - \alpha) \mu, \quad v \leftarrow \alpha (x - \mu_{old})^2 + (1 - \alpha) v

    The first sample is taken as it is, with variance 0.

    References
    ----------
    The recursion and its test values are those of ``soma-ai`` 2026.4.30. It is the incremental form of T. Finch,
    "Incremental calculation of weighted mean and variance", 2009, but for its variance, which lacks a factor.

    Examples
    --------
    >>> baseline = Baseline()
    >>> for sample in (0.5, 0.5, 0.1):
    ...     baseline.learn(sample, alpha=0.08)
    >>> round(baseline.usual(blend=5, cold_mean=0.05), 4), round(baseline.std, 4)
    (0.3008, 0.1131)
    """

    mean: float = 0.0
    variance: float = 0.0
    count: int = 0
    refused: int = 0
    """Samples in a row that were too unusual to be learned."""

    def learn(self, sample: float, alpha: float) -> None:
        """Take in a sample; NaN and infinity are passed over.

        Parameters
        ----------
        sample : float
            In [0, 1] mostly.
        alpha : float
            Weight of the new sample, in (0, 1].
        """
        if not math.isfinite(sample):
            return
        if self.count == 0:
            self.mean = sample
        else:
            off = sample - self.mean
            self.mean = alpha * sample + (1.0 - alpha) * self.mean
            self.variance = alpha * (off * off) + (1.0 - alpha) * self.variance
        self.count += 1
        self.refused = 0

    @property
    def std(self) -> float:
        """The standard deviation, 1e-9 or more; 0.1 before the first sample."""
        return max(math.sqrt(self.variance), 1e-9) if self.count else 0.1

    def usual(self, blend: int, cold_mean: float | None) -> float:
        """Return the mean; over the first ``blend`` samples mixed with what is expected of any agent, if anything is.

        Parameters
        ----------
        blend : int
            Samples, 1 or more.
        cold_mean : float, optional
            What is expected before anything is known; ``None``: nothing.
        """
        if cold_mean is None:
            return self.mean
        trust = min(self.count / blend, 1.0)
        return trust * self.mean + (1.0 - trust) * cold_mean
