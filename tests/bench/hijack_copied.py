"""Does a body copied from what was read hide a hijacking call? The call as recorded, and with the longest result in it.

Run ``python tests/bench/hijack_copied.py``; two minutes. Taken are hijacking calls of acting tools that have an
argument for a text and a result of 200 characters before them; the twin has 1,500 characters of the longest one there.
*Caught*: share above the shipped threshold.
"""

from __future__ import annotations

from hijack_carries import gathered
from showing import say

from coherence.core.redact import redact, redact_value
from coherence.detect.call_words import only_reads
from coherence.detect.hijack import ALARM_5, HijackWatch
from coherence.detect.text_analysis import TextAnalysis
from coherence.evaluation.runs import LabelledRun

BODIES = ("body", "subject", "text", "message", "comment", "content", "description")


def main() -> None:
    say("source", "calls; caught as recorded, with a copied body", "")
    for name, runs in gathered().items():
        found = [pair for run in runs if (pair := twins(run)) is not None]
        if found:
            own, copied = (sum(value > ALARM_5 for value in values) / len(found) for values in zip(*found, strict=True))
            say(name, f"{len(found)}; {own:.0%}, {copied:.0%}", "")


def twins(run: LabelledRun) -> tuple[float, float] | None:
    """Return the highest values of the hijacking step's calls as recorded and with a copied body, if it has such."""
    last, watch, results, found = run.labels.hijack_step, HijackWatch(), [""], []
    if run.attack != "hijacked" or last is None:
        return None
    watch.ask(redact(run.transcript.goal))
    for at, step in enumerate(run.transcript.steps[: last + 1]):
        text = redact(step.content)
        if step.role == "tool":
            results.append(text)
            watch.read(at, TextAnalysis(text), None, step.tool_name)
        elif text and step.role == "user" and (at or text != run.transcript.goal):
            watch.ask(text)
        elif text:
            watch.say(text)
        for number, call in enumerate(step.tool_calls):
            arguments, longest = redact_value(call.arguments), max(results, key=len)
            named = arguments if isinstance(arguments, dict) else {}
            keys = [key for key in named if any(word in key.lower() for word in BODIES)]
            if at == last and keys and not only_reads(call.name) and len(longest) > 200:
                twin = {**named, keys[0]: longest[:1_500]}
                scores = [watch.judge(call.name, each) for each in (arguments, twin)]
                found.append([0.0 if score is None else score.value for score in scores])
            watch.call(at, call.name, arguments, f"{at} {number}")
    return (max(own for own, _ in found), max(copied for _, copied in found)) if found else None


if __name__ == "__main__":
    main()
