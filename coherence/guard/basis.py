"""Which of an account's parts are known where calls of the trail are missing."""

from __future__ import annotations

from coherence.guard.account import Account
from coherence.guard.patch_events import Accepted, Approved, Asked, Confirmed, Decision, GuardedCall, Restored
from coherence.guard.patch_state import Phase
from coherence.guard.rolling_files import NEWEST


class Basis:
    """Follows a trail, and tells what depends on calls that are not in it.

    A part that was made anew from entries that are all there is known again: the calls before a patch once the window
    is full of known ones, a trial that began after the gap, a confirmed patch whose trial did.
    """

    def __init__(self) -> None:
        self.complete = True
        """Whether nothing is missing so far."""
        self.lost_for_good = False
        """Whether even the phase is uncertain."""
        self.trial_lost = ""
        """Why the trial cannot be judged; empty = it can."""
        self._recent_lost = self._standing_lost = self._why = ""
        self._recent_known = 0
        self._served_lost = ""
        self._calls = NEWEST

    @property
    def newest(self) -> bool:
        """Whether all of the newest calls that are summed up for the classic rules are known."""
        return not self.lost_for_good and (self.complete or self._calls >= NEWEST)

    def lose(self, why: str, *, for_good: bool = False) -> None:
        """Note that entries are missing here."""
        self.complete = False
        self.lost_for_good = self.lost_for_good or for_good
        self._why = self._why if self.lost_for_good and self._why else why
        self.trial_lost = self._recent_lost = self._standing_lost = self._served_lost = self._why
        self._recent_known = self._calls = 0

    def missing(self, phase: Phase, *, depends: bool) -> str:
        """Return why what a step of this phase depends on is not known, or an empty text.

        ``depends`` tells whether it depends on calls at all.
        """
        if self.lost_for_good or not depends:
            return self._why if self.lost_for_good else ""
        if phase in ("serving", "paused"):
            return self.trial_lost
        return self._standing_lost if phase == "idle" else ""

    def observe(self, account: Account, at: float, happening: GuardedCall | Decision) -> None:
        """Let an account take in the next entry, and note what is known afterwards."""
        recent = account.recent
        had_trial, place = account.patching.trial is not None, (len(recent.newest), recent.at)
        undoes = account.patching.undo is not None
        account.observe(at, happening)
        if self.lost_for_good or self.complete:
            self.trial_lost = "" if self.complete and isinstance(happening, Asked | Approved) else self.trial_lost
            return
        if isinstance(happening, GuardedCall):
            self._calls += 1
            self._recent_known += (len(recent.newest), recent.at) != place
            if self._recent_known >= recent.window:
                self._recent_lost = ""
            if self._standing_lost and account.patching.unpatched is not None:
                account.patching.unpatched.alerts = ()  # whether it was told so is unknown
        elif isinstance(happening, Asked | Approved):
            self.trial_lost = self._recent_lost
        elif isinstance(happening, Accepted):
            self._served_lost = ""
        elif isinstance(happening, Confirmed):
            self._recent_lost = self._standing_lost = self._served_lost
            self._recent_known = 0
        elif isinstance(happening, Restored) and not had_trial:
            self._recent_lost = ""
            if not undoes:  # else the patch and its watch are those of before
                self._standing_lost = ""
