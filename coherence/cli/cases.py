"""Output of ``coherence eval-cases``: the verdict of each case beside the one it is to have."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec

from coherence.cli.columns import print_columns
from coherence.cli.documents import print_document
from coherence.core.config import disabled
from coherence.core.readings import excerpt, number_of, one_line
from coherence.guard.cases.packet import PacketError, read_packet, shipped_packet
from coherence.guard.cases.play import Played, play_packet

NAME = 60
"""Characters of a case's name that are shown."""


def evaluate_cases(path: Path | None, *, as_json: bool) -> int:
    """Play the cases of a file, or those of the package, print what came of them, and return the exit status."""
    if disabled():
        raise click.UsageError("COHERENCE_DISABLED is set; unset it to play cases")
    try:
        played = play_packet(shipped_packet() if path is None else read_packet(path))
    except PacketError as error:
        click.echo(f"error: {one_line(str(error))}", err=True)
        return 2
    if as_json:
        print_document("coherence.eval-cases/1", {"cases": msgspec.to_builtins(played), **_counted(played)})
    else:
        _print(played)
    return 0 if all(case.right for case in played) else 1


def _counted(played: Sequence[Played]) -> dict[str, int]:
    failures = [case for case in played if not case.healthy]
    healthy = [case for case in played if case.healthy]
    return {
        "wrong": sum(not case.right for case in played),
        "failures": len(failures),
        "found": sum(bool(case.rule) for case in failures),
        "healthy": len(healthy),
        "healthy_blocked": sum(case.verdict == "blocked" for case in healthy),
    }


def _print(played: Sequence[Played]) -> None:
    rows = [("case", "expected", "verdict", "by", "")]
    for case in played:
        by = f"{case.rule} at event {case.event}" if case.rule else "-"
        marks = ("healthy" if case.healthy else "") if case.right else "WRONG"
        rows.append((excerpt(case.id, NAME), case.expected, case.verdict, excerpt(by, NAME), marks))
    print_columns(rows)
    for case in played:
        if not case.right:
            found = excerpt(case.found, 200) or "nothing was found"
            sys.stdout.write(f"WRONG {excerpt(case.id, NAME)}: {case.verdict}, expected {case.expected}: {found}\n")
    count = _counted(played)
    seen = f"The monitor itself sees {count['found']} of {number_of(count['failures'], 'failure')}"
    calm = f"it blocks {count['healthy_blocked']} of {number_of(count['healthy'], 'healthy session')}"
    sys.stdout.write(f"\n{number_of(len(played), 'case')}, {count['wrong']} wrong. {seen}; {calm}.\n")
