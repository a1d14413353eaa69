"""The assertion that a run stays on course."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

from coherence.core.decisions import Finding
from coherence.core.readings import Band, excerpt
from coherence.monitor.monitor import Monitor
from coherence.pytest_plugin.rule_names import name_of, rules_meant
from coherence.report.cells import strip_text
from coherence.report.score import FROM_BEST, ScoredRun, light_of

Light: TypeAlias = Literal["green", "yellow", "orange", "red"]
"""The worst light that a run may have."""

Run: TypeAlias = Monitor | str | Path | Sequence[Mapping[str, Any]]
"""A monitor, a file of transcripts or a store, or the messages of a chat."""

TEXT = 160
"""Characters of a step or of a cause that a message shows."""

MAX_EVIDENCE = 4
"""Steps that are quoted for one fault."""

MAX_FAULTS = 5
"""Faults that a message tells."""


def assert_coherent(run: Run, light: Light = "yellow", no: Sequence[str] = (), *, known: bool = False) -> None:
    """Raise ``AssertionError`` unless a run stayed on course; it says what was seen, where and why.

    Parameters
    ----------
    run : Monitor, path or sequence of mapping
        A monitor, whose own measurements count; a file that ``coherence score`` reads, each run of which has to pass;
        or the messages of a chat, oldest first.
    light : {"green", "yellow", "orange", "red"}
        The worst light that passes; ``"red"`` passes all. A refused call is red.
    no : sequence of str
        Rules that must not have been active at any step, by their names or the short ones, such as ``"loop"``.
    known : bool
        ``True``: a run of which nothing could be measured fails, too. By default it passes, as a short one has to.

    Raises
    ------
    AssertionError
        If it did not.
    TypeError, ValueError
        For a bad argument, or a file that cannot be read; a name that is not known is answered with those that are.

    Examples
    --------
    >>> from coherence import Monitor, assert_coherent
    >>> with Monitor(goal="List the files.", embedder=False) as m:
    ...     m.tool_result("a.txt b.txt", call=m.tool_call("Bash", {"command": "ls"}))
    ...     assert_coherent(m, light="green", no=["loop", "hijack"])
    """
    __tracebackhide__ = True  # pytest shows the line of the test instead
    meant = rules_meant(no)
    if light not in get_args(Light):
        raise ValueError(f"light must be one of {', '.join(get_args(Light))}, not {light!r}")
    found = [fault for scored in scored_runs(run) for fault in faults_of(scored, Band(light), meant, known=known)]
    if found:
        more = [f"and {len(found) - MAX_FAULTS} more"] if len(found) > MAX_FAULTS else []
        raise AssertionError("\n".join([*found[:MAX_FAULTS], *more]))


def scored_runs(run: Run) -> list[ScoredRun | None]:
    """Return what :func:`assert_coherent` takes as scored runs; ``None`` stands for a monitor without a step."""
    if isinstance(run, Monitor):
        from coherence.report.live import scored_monitor

        return [scored_monitor(run)]
    from coherence.report.score import score_transcript

    if isinstance(run, str | Path):
        from coherence.providers.readers import read_transcripts
        from coherence.report.recorded import read_recorded
        from coherence.store.open import is_sqlite

        transcripts = read_recorded(run) if is_sqlite(run) else read_transcripts(run)
    elif isinstance(run, Sequence) and all(isinstance(message, Mapping) for message in run):
        from coherence.providers.readers import read_messages

        transcripts = [read_messages([message for message in run if isinstance(message, Mapping)])]
    else:
        raise TypeError(f"run must be a Monitor, a path or a list of messages, not {type(run).__name__}")
    return [score_transcript(transcript) for transcript in transcripts]


def faults_of(
    run: ScoredRun | None, light: Band, meant: Mapping[str, str], *, known: bool = False, named: bool = True
) -> list[str]:
    """Return what is wrong with a run, each fault in a few lines.

    Parameters
    ----------
    run : ScoredRun, optional
        The run; ``None``: it has no step.
    light : Band
        The worst light that passes.
    meant : mapping
        Rule that must not have been active -> its name in the test.
    known : bool
        ``True`` if something has to be known.
    named : bool
        ``False`` leaves out the run's name.
    """
    whose = f"run {excerpt(run.transcript.id)!r}" if run is not None and named else "the run"
    if run is None or not run.lights or max(map(FROM_BEST.index, run.lights)) == 0:
        steps = "has no step" if run is None or not run.lights else "could not be measured at any step"
        return [f"{whose} {steps}, and known=True asks for a light"] if known else []
    faults = []
    worst = max(range(len(run.lights)), key=lambda at: FROM_BEST.index(run.lights[at]))
    if FROM_BEST.index(run.lights[worst]) > FROM_BEST.index(light):
        faults.append(_light_fault(run, worst, whose, light))
    told: set[str] = set()
    for at, decision in enumerate(run.decisions):
        for finding in decision.findings:
            name = name_of(finding.rule, meant) if finding.active else None
            if name is not None and finding.rule not in told:
                told.add(finding.rule)
                rule = finding.rule if name == finding.rule else f"{finding.rule} ({name})"
                lines = [f"{whose} has the finding {rule} after step {at}, which no= forbids"]
                lines += [f"  cause: {excerpt(finding.why, TEXT)}", *_quoted(run, run.finding_steps(finding) or [at])]
                faults.append("\n".join(lines))
    return faults


def _light_fault(run: ScoredRun, at: int, whose: str, light: Band) -> str:
    reading, decision = run.readings[at], run.decisions[at]
    asked = run.asked(reading)
    if FROM_BEST.index(light_of(decision, reading.band)) > FROM_BEST.index(reading.band):
        asked = next((finding for finding in decision.findings if finding.active), None)
    index = "" if reading.coherence_index is None else f", index {reading.coherence_index:.2f}"
    return "\n".join(
        [
            f"{whose} is {run.lights[at]} after step {at} of {len(run.lights)}, worse than light={light.value!r}",
            f"  cause: {_cause(run, at, asked)}",
            f"  decision: {decision.kind}{index}",
            *_quoted(run, _evidence(run, at, asked)),
            f"  lights: {strip_text(run.lights)}",
        ]
    )


def _cause(run: ScoredRun, at: int, asked: Finding | None) -> str:
    if asked is not None:
        return excerpt(f"{asked.rule}: {asked.why}", TEXT)
    return excerpt(run.why(run.readings[at]), TEXT)


def _evidence(run: ScoredRun, at: int, asked: Finding | None) -> list[int]:
    """Return the steps behind a light: those of the finding, else of the sign, else the step itself."""
    reading = run.readings[at]
    steps = run.finding_steps(asked) if asked is not None else []
    return steps or run.evidence_steps(reading, reading.evidence.get(reading.cause)) or [at]


def _quoted(run: ScoredRun, steps: Sequence[int]) -> list[str]:
    lines = []
    for at in steps[-MAX_EVIDENCE:]:
        step = run.transcript.steps[at]
        who = f"{step.role} {step.tool_name}" if step.tool_name else step.role
        failed = ", failed" if step.is_error else ""
        lines.append(f"  step {at} ({excerpt(who, TEXT)}{failed}): {excerpt(step.text(), TEXT)}")
    return lines
