"""What follows from a state: each of the six lines has a rule, and a state's policy is what its lines ask for."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from coherence.guard.router.lines import LINES, LineName
from coherence.guard.router.states import State

Value: TypeAlias = bool | float


class Knob(msgspec.Struct, frozen=True):
    """One key of a patch."""

    calm: Value
    """The value while no line asks for caution: as the agent is configured."""
    strict: Value
    """The value at the other end of its range."""
    what: str


KNOBS: dict[str, Knob] = {
    "canary_share": Knob(0.10, 0.0, "share of calls on which something new may be tried"),
    "fallback": Knob(False, True, "use the fallback model or tool"),
    "timeout_factor": Knob(1.0, 1.25, "times the configured time limit"),
    "serial": Knob(False, True, "one call at a time, no fan-out"),
    "context_share": Knob(1.0, 0.75, "share of the configured context that is filled"),
    "single_retry": Knob(False, True, "retry a failed call once at most"),
    "pin_route": Knob(False, True, "no choice of tools or models beyond the default ones"),
}
"""Key -> what it may be. All are relative to what is configured: the calm value changes nothing of it."""

RULES: dict[LineName, dict[str, Value]] = {
    "stability": {"fallback": True, "timeout_factor": 1.25, "canary_share": 0.0},
    "efficiency": {"serial": True, "context_share": 0.75, "canary_share": 0.05},
    "learning": {"single_retry": True, "canary_share": 0.05},
    "routing": {"pin_route": True, "canary_share": 0.05},
    "collaboration": {"serial": True, "canary_share": 0.05},
    "governance": {"canary_share": 0.0},
}
"""Line -> what it asks for while it is yin or falling."""

AUTO_APPLY = "auto_apply"
"""Set to false while governance is cautious: the patch waits for a person. A patch never sets it to true."""


def policy_of(state: State) -> dict[str, Value]:
    """Return the patch that a state's lines ask for: eight entries at most, each within its knob's range.

    Where lines ask for different values of a key, the strictest holds. To be strict one line is enough; a calm value
    is given back only where every line with a say in it is known. What no known line has a say in is left out.

    Examples
    --------
    >>> from coherence.guard.router.states import make_state
    >>> policy_of(make_state([0.3, 0.9, 0.9, None, None, None]))
    {'canary_share': 0.0, 'fallback': True, 'timeout_factor': 1.25, 'context_share': 1.0, 'single_retry': False}
    >>> policy_of(make_state([None] * 6))
    {}
    """
    lines = {line.name: line for line in state.lines}
    patch: dict[str, Value] = {}
    for key, knob in KNOBS.items():
        owners = [name for name in LINES if key in RULES[name]]
        asked = [RULES[name][key] for name in owners if lines[name].score is not None and lines[name].cautious]
        if asked:
            patch[key] = min(asked) if knob.strict < knob.calm else max(asked)
        elif all(lines[name].score is not None for name in owners):
            patch[key] = knob.calm
    if lines["governance"].cautious:
        patch[AUTO_APPLY] = False
    return patch
