"""Sessions of a store that are not among the runs that were read of it, in numbers and in words."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from coherence.core.cards import moment
from coherence.core.readings import number_of


class LeftOut(NamedTuple):
    """Counts of the sessions of a store that were not read, by reason."""

    milder: int = 0
    """Sessions for which there was no room, all of them milder than those that were read."""
    stepless: int = 0
    """Sessions with an event and no step: nobody has said or done anything."""
    refused: int = 0
    """Those of them in which a call was refused."""
    older: int = 0
    """Sessions without an event since the moment that was asked for."""
    since: float | None = None
    """That moment, Unix time in seconds."""
    newest: float | None = None
    """Time of the newest event of all sessions that were asked for by name, Unix time in seconds."""

    def reasons(self) -> list[str]:
        """Return a sentence, without its stop, for each reason but a lack of room.

        Examples
        --------
        >>> for reason in LeftOut(stepless=1, older=2, since=1795828766.0).reasons():
        ...     print(reason)
        1 session without a step is left out
        2 sessions without an event since 2026-11-28 01:19:26 UTC are left out
        """
        told = []
        if self.stepless:
            also = f"; calls were refused in {self.refused} of them" if self.refused else ""
            told.append(f"{number_of(self.stepless, 'session')} without a step {_are(self.stepless)} left out{also}")
        if self.older and self.since is not None:
            without = f"without an event since {moment(self.since)}"
            told.append(f"{number_of(self.older, 'session')} {without} {_are(self.older)} left out")
        return told

    def nothing(self) -> str:
        """Say why there is no run, and what to do."""
        if self.older and self.since is not None and not self.stepless:
            ended = f"; the newest ended {moment(self.newest)}" if self.newest else ""
            return f"No session has an event since {moment(self.since)}{ended}. Ask for an earlier moment."
        if self.stepless:
            step = "A step is a message of the agent, or the result of a tool."
            return f"There is no run yet: {'; '.join(self.reasons())}. {step}"
        return "The store holds no session with a step yet. Give its path to Monitor(store=…), or run coherence init."


def together(parts: Iterable[LeftOut]) -> LeftOut:
    """Return what was not read of several stores, asked in the same way."""
    found = list(parts)
    return LeftOut(
        milder=sum(part.milder for part in found),
        stepless=sum(part.stepless for part in found),
        refused=sum(part.refused for part in found),
        older=sum(part.older for part in found),
        since=next((part.since for part in found if part.since is not None), None),
        newest=max((part.newest for part in found if part.newest is not None), default=None),
    )


def _are(count: int) -> str:
    return "is" if count == 1 else "are"
