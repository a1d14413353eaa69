"""The state router as a strategy of a guard: from calls and measures to a small patch."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from coherence.core.validation import check_text
from coherence.guard.router.lines import Measures, known_measures, line_scores, trends
from coherence.guard.router.policy import AUTO_APPLY, KNOBS, Value, policy_of
from coherence.guard.router.states import State, make_state
from coherence.guard.router.windows import two_windows


class StateRouter:
    """A state machine: six scores make one of 64 states, and a state's lines make a patch.

    It learns nothing, predicts nothing beyond a straight line, and keeps nothing between two calls: the same calls and
    measures give the same patch.

    Parameters
    ----------
    keys : collection of str, optional
        The keys of :data:`~coherence.guard.router.policy.KNOBS` that the agent's configuration has; others are left out
        of a patch. Default: all.

    Raises
    ------
    TypeError, ValueError
        For keys that do not exist.

    Examples
    --------
    >>> calls = [{"success": True}] * 10 + [{"success": False}] * 10
    >>> router = StateRouter(keys=["fallback", "serial"])
    >>> router.analyze(agent_id="support", traces=calls, before_metrics={})
    {'fallback': True}
    >>> state = router.diagnose(traces=calls)
    >>> state.code, state.moving, state.lines[0].trend
    ('011111', (1,), -1.0)
    """

    def __init__(self, keys: Collection[str] | None = None) -> None:
        if isinstance(keys, str):
            raise TypeError("keys must be a list of names, not one text")
        for key in keys or ():
            if check_text("keys", key) not in KNOBS:
                raise ValueError(f"keys: no entry is called {key!r}; there are {', '.join(KNOBS)}")
        self.keys = frozenset(KNOBS if keys is None else keys)

    def analyze(
        self, *, agent_id: str, traces: Sequence[Any], before_metrics: Measures | None = None
    ) -> dict[str, Value] | None:
        """Return the patch, or ``None`` where nothing is known that asks for one.

        Parameters
        ----------
        agent_id : str
            Whose calls these are; the answer does not depend on it.
        traces : sequence
            Calls, oldest first, as :func:`~coherence.guard.router.windows.two_windows` takes them.
        before_metrics : mapping, optional
            Measure -> value now; goes before what the calls tell. Unknown names are passed over.

        Returns
        -------
        dict or None
            At most eight entries, see :func:`~coherence.guard.router.policy.policy_of`. Nothing of how it came about is
            in it; that is what :meth:`diagnose` tells.
        """
        state = self.diagnose(traces=traces, before_metrics=before_metrics)
        patch = policy_of(state)
        kept = {key: value for key, value in patch.items() if key in self.keys}
        if kept and AUTO_APPLY in patch:
            kept[AUTO_APPLY] = patch[AUTO_APPLY]
        return kept or None

    def diagnose(self, *, traces: Sequence[Any], before_metrics: Measures | None = None) -> State:
        """Return the state with its lines, for people and logs."""
        later, earlier = two_windows(traces)
        now: dict[str, float | None] = {**later, **known_measures(before_metrics or {})}
        return make_state(line_scores(now), trends(earlier, later) if earlier is not None else None)
