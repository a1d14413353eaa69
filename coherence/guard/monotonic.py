"""A time that never goes back, from a wall clock that may be set."""

from __future__ import annotations

import msgspec

from coherence.core.callback import LATEST_S
from coherence.core.validation import check_number

TOLERANCE_S = 60.0
"""A step back of up to this many seconds makes steady time stand still until the wall clock has caught up."""

MAX_STEP_S = 366 * 86_400.0
"""Seconds that one step ahead counts at most: longer than every window and cool-down."""


class SteadyClock(msgspec.Struct):
    """A fold of wall readings into a time that never decreases; serialisable, so that it goes on after a restart.

    * **Set back** by more than :data:`TOLERANCE_S`: steady time goes on from where it was at the normal rate. A wall
      clock that is set back two hours changes no window and no cool-down.
    * **A little back** (up to the tolerance; a correction by NTP, or two machines whose clocks differ): steady time
      stands still until the wall clock has caught up, so that small differences between writers never add up.
    * **Set ahead**: looks like time in which nobody called, and is taken as time that passed, at most
      :data:`MAX_STEP_S` a step. A cool-down may end early, a window may empty; set back again, nothing freezes.
      A host that adds the elapsed ``time.monotonic()`` to the wall time at which its process started is not exposed to
      jumps while it runs.

    Parameters
    ----------
    now_s : float or None
        Steady time, seconds; begins at the first wall reading. None before it.
    offset_s : float
        What is added to a wall reading.

    Examples
    --------
    >>> clock = SteadyClock()
    >>> [clock.read(wall) for wall in (1000.0, 1010.0, 1005.0, 1012.0)]  # five seconds back: waits
    [1000.0, 1010.0, 1010.0, 1012.0]
    >>> [clock.read(wall) for wall in (1012.0 - 7200, 1022.0 - 7200)]  # two hours back: goes on
    [1012.0, 1022.0]
    """

    now_s: float | None = None
    offset_s: float = 0.0

    def read(self, wall_s: float) -> float:
        """Return the steady time of a wall reading, seconds.

        Parameters
        ----------
        wall_s : float
            What the wall clock shows, Unix seconds.

        Raises
        ------
        TypeError
            If it is not a number.
        ValueError
            If it is not within ``[-LATEST_S, LATEST_S]``.
        """
        wall = check_number("wall_s", wall_s, least=-LATEST_S, most=LATEST_S)
        before = self.now_s
        if before is None:
            self.now_s = wall + self.offset_s
            return self.now_s
        shown = wall + self.offset_s
        now = min(max(shown, before), before + MAX_STEP_S)
        # the wall clock was set: from here on it is read from this moment
        if shown < before - TOLERANCE_S or shown > now:
            self.offset_s = now - wall
        self.now_s = now
        return now
