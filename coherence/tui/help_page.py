"""Page of help: keys and signs."""

from __future__ import annotations

from coherence.tui.guidance_rows import REFUSED, VERDICTS
from coherence.tui.lines import Line
from coherence.tui.palette import BANDS, DECISION_STYLES, DECISIONS, LETTERS, MARK_STYLES, MARKS, OUTCOMES, SHAPES

_KEYS = {
    "Everywhere": {
        "↑ ↓ PgUp PgDn": "move, or scroll",
        "⏎ or click": "open",
        "esc": "back, or all sessions again",
        "l": "label: good, bad or none",
        "u": "let a blocked agent go on, with a reason",
        "m": "mute a session in this window, or hear it again",
        "g": "guidance, and what came after it",
        "/": "search",
        "q": "back, or quit",
    },
    "Agents": {"f": "filter by light, state, label or rule", "s": "next order", "space": "fold those below"},
    "Session": {
        "← →": "earlier and later in the chart",
        ", .": "one step back and on",
        "home end": "first step; newest, and follow",
        "+ -": "zoom around the step",
        "n N": "next and previous mark, or hit of a search",
        "w": "whole reason and texts, or their beginnings",
        "tab": "between step and guidance",
    },
}


def _page() -> list[Line]:
    lines: list[Line] = []
    for name, keys in _KEYS.items():
        lines.append(((name, "title"),))
        lines += [((f"  {key:<15}", "key"), (meaning, "")) for key, meaning in keys.items()]
        lines.append(())
    lines.append((("Signs", "title"),))
    lights = [(f"{SHAPES[band]} {LETTERS[band]} {band}  ", band) for band in reversed(BANDS)]
    lines.append((("  light          ", "dim"), *lights[1:]))
    lines.append((("                 ", "dim"), *lights[:1], ("(nothing was measured)", "dim")))
    lines.append((("  index          ", "dim"), ("1 = on course, 0 = off course", "")))
    lines.append((("  pressure       ", "dim"), ("how unusual this is for the agent, 0 to 1", "")))
    decisions = [(f"{sign} {kind}  ", DECISION_STYLES[kind]) for kind, sign in DECISIONS.items()]
    lines.append((("  decision       ", "dim"), *decisions))
    marks = [(f"{sign} {kind}  ", MARK_STYLES.get(kind, "dim")) for kind, sign in MARKS.items()]
    lines.append((("  events         ", "dim"), *marks[:4]))
    lines.append((("                 ", "dim"), *marks[4:]))
    verdicts = [(f"{sign} {words or 'not known'}  ", style) for sign, words, style in VERDICTS.values()]
    lines.append((("  guidance       ", "dim"), *verdicts[:2]))
    lines.append((("                 ", "dim"), *verdicts[2:4]))
    lines.append((("                 ", "dim"), *verdicts[4:], (f"{REFUSED} refused", "red")))
    outcomes = [(f"{sign} {outcome}  ", style) for outcome, (sign, style) in OUTCOMES.items()]
    lines.append((("  outcome        ", "dim"), *outcomes))
    return lines


PAGE = _page()
"""Lines of the page."""
