"""Output of ``coherence blame``: the steps and agents of a failed run, ranked, with reasons."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import get_terminal_size

import click
import msgspec

from coherence.cli.columns import aligned
from coherence.cli.documents import print_document
from coherence.cli.inputs import tell_warnings
from coherence.core.config import disabled
from coherence.core.errors import TranscriptError
from coherence.core.readings import excerpt, number_of, one_line
from coherence.evaluation.blame import SHORT, STEP_ONE, Blame, BlamedStep, blame
from coherence.providers.readers import read_transcripts
from coherence.providers.transcript import Transcript

WIDTH = 80
"""Columns of the output where no terminal is narrower."""

NAME = 24
"""Characters of an agent's name that are shown."""

NAMED = 200
"""Characters of a run's name that are shown where it is to be copied."""

LEAST = 20
"""Columns that reasons have in the narrowest terminal."""


def blame_file(path: Path, *, form: str | None, run: str | None, top: int, as_json: bool) -> int:
    """Judge the runs of a file, or the one that is named; print what was found and return the exit status."""
    if disabled():
        raise click.UsageError("COHERENCE_DISABLED is set; unset it to judge runs")
    try:
        transcripts = read_transcripts(path, form)
    except TranscriptError as error:
        click.echo(f"error: {one_line(str(error))}", err=True)
        return 2
    tell_warnings(path, transcripts)
    if run is not None:
        transcripts = [_named(transcripts, run)]
    found = [blame(transcript) for transcript in transcripts]
    if as_json:
        plain = [msgspec.to_builtins(_first(each, top)) for each in found]
        print_document("coherence.blame/1", {"runs": plain})
    elif len(found) == 1:
        _write(_lines(found[0], top))
    else:
        _write(_overview(found))
    return 0


def _named(transcripts: Sequence[Transcript], name: str) -> Transcript:
    for transcript in transcripts:
        if transcript.id == name:
            return transcript
    known = ", ".join(excerpt(transcript.id, 40) for transcript in transcripts[:5])
    more = f" and {len(transcripts) - 5} more" if len(transcripts) > 5 else ""
    raise click.BadParameter(f"no run is called {name!r}; there are {known}{more}", param_hint="--run")


def _first(found: Blame, top: int) -> Blame:
    return msgspec.structs.replace(found, steps=found.steps[:top])


def _write(lines: Iterator[str]) -> None:
    for line in lines:
        sys.stdout.write(line.rstrip() + "\n")


def _width() -> int:
    return max(min(get_terminal_size((WIDTH, 24)).columns, WIDTH), 2 * LEAST)


def _lines(found: Blame, top: int) -> Iterator[str]:
    width = _width()
    yield from _wrapped(excerpt(found.run, NAMED), width)
    yield from _wrapped(f"{found.verdict}: {one_line(found.why)}.", width)
    if found.right is not None:
        yield from _wrapped(
            f"Of such verdicts, about {found.right:.0%} named the step that people had named, on labelled runs; "
            f"{_beside(found)}.",
            width,
        )
    shown = found.steps[:top]
    if not shown:
        return
    yield ""
    table = aligned([("step", "share", "agent"), *((str(s.step), f"{s.share:.0%}", _name(s.agent)) for s in shown)])
    indent = max(map(len, table)) + 2
    beside = width - indent >= LEAST
    if not beside:
        indent = 6
    yield f"{table[0].ljust(indent)}why" if beside else table[0]
    for line, step in zip(table[1:], shown, strict=True):
        why = _wrapped(_reasons(step), width - indent)
        yield f"{line.ljust(indent)}{why.pop(0)}" if beside else line
        yield from (" " * indent + part for part in why)
    if len(found.steps) > top:
        yield f"and {number_of(len(found.steps) - top, 'more step')} (--top)"
    yield ""
    rows = [(_name(a.agent), str(a.step), f"{a.share:.0%}", str(a.steps)) for a in found.agents[:top]]
    yield from aligned([("agent", "likeliest step", "share", "of steps"), *rows])


def _beside(found: Blame) -> str:
    """Say what a look at the place or the length alone is worth in runs like this."""
    if len(found.steps) > SHORT:
        return f"in runs of more than {SHORT} steps, taking the longest step did no worse"
    low, high = STEP_ONE
    return f"always taking step 1 of so short a run was right in {low:.0%} to {high:.0%}"


def _wrapped(text: str, width: int) -> list[str]:
    """Return lines that fit; a path with a hyphen stays in one piece where it fits."""
    return textwrap.wrap(text, width, break_on_hyphens=False)


def _name(agent: str) -> str:
    return excerpt(agent, NAME)


def _reasons(step: BlamedStep) -> str:
    quote = f" “{step.quote}”" if step.quote else ""
    first, *more = step.reasons
    return one_line("; ".join((f"{first}{quote}", *more)))


def _overview(found: Sequence[Blame]) -> Iterator[str]:
    """One line a run; its name comes last, and whole, to be given to --run."""
    rows = [("verdict", "step", "share", "agent", "run")]
    for each in found:
        first = each.steps[0] if each.steps and each.verdict != "not failed" else None
        also = f" or {each.as_likely}" if each.as_likely is not None else ""
        cells = (
            (f"{first.step}{also}", f"{first.share:.0%}", _name(first.agent)) if first is not None else ("-", "-", "-")
        )
        rows.append((each.verdict, *cells, excerpt(each.run, NAMED)))
    yield from aligned(rows)
    yield ""
    if any(each.as_likely is not None for each in found):
        yield "The first step of each run (or 1: step 1 is as likely); --run ID shows the reasons."
    else:
        yield "The first step of each run; --run ID shows the reasons."
