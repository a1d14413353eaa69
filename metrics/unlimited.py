"""A share of a budget that nobody has set."""

from __future__ import annotations

from dataclasses import dataclass

from coherence.core.errors import UnknownSourceError


@dataclass(frozen=True)
class Unlimited:
    """A metric that is always unknown, because there is no limit to take a share of.

    Parameters
    ----------
    name : str
        The metric it stands for: ``token_usage``, ``cost``.
    what : str
        What would be limited, in a word.
    """

    name: str
    what: str
    inverted = True
    in_place = True

    def compute(self) -> float | None:
        """Raise, which makes the metric unknown with this reason."""
        raise UnknownSourceError(f"no budget of {self.what} is set")
