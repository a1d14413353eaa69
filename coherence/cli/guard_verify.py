"""``coherence guard verify``: whether a trail explains each of its rollbacks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from coherence.guard.verified import Verified

MAX_SHOWN = 20
"""Faults and remarks that are printed of a trail; --json has 1,000."""

FAILED, UNREADABLE = 1, 2
"""Exit statuses."""


@click.command()
@click.argument("trails", metavar="TRAIL...", nargs=-1, required=True)
@click.option("--agent", help="Of a store, the trail of this agent only.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def verify(trails: tuple[str, ...], agent: str | None, as_json: bool) -> None:
    """Derive each rollback again from a trail alone.

    TRAIL is a file that `coherence guard export` wrote, - for standard input, or the file of a store. Exit status: 0
    each rollback was derived or made by hand, 1 something is wrong or cannot be known, 2 bad usage or a trail that
    cannot be read (the others are verified all the same).
    """
    from coherence.guard.export import TrailError, read_entries
    from coherence.guard.verifier import verify_trail

    results: list[tuple[str, Verified | str]] = []
    for name, file in _opened(trails, agent):
        try:
            with file:
                found = verify_trail(read_entries(file))
            results.append((name, found if found.entries else "there is no entry of a guard's trail in it"))
        except (TrailError, OSError) as error:
            results.append((name, str(error)))
    if as_json:
        _print_json(results)
    else:
        for name, result in results:
            _print(name, result)
    statuses = [
        UNREADABLE if isinstance(result, str) else FAILED if result.verdict != "verified" else 0
        for _, result in results
    ]
    raise SystemExit(max(statuses))


def _opened(trails: tuple[str, ...], agent: str | None) -> Iterator[tuple[str, IO[bytes]]]:
    """Yield each trail with its name; a store has one for each agent."""
    if agent is not None and not any(_is_store(trail) for trail in trails):
        raise click.UsageError("--agent tells the trails of a store apart, and no TRAIL is a store")
    for trail in trails:
        if _is_store(trail):
            yield from _exported(Path(trail), agent)
        elif trail == "-" or Path(trail).is_file():
            yield "standard input" if trail == "-" else trail, click.open_file(trail, "rb")
        else:
            raise click.UsageError(f"{trail}: no such file")


def _exported(path: Path, agent: str | None) -> Iterator[tuple[str, IO[bytes]]]:
    from tempfile import TemporaryFile

    from coherence.cli.guard_state import agents
    from coherence.cli.guard_tables import NAME
    from coherence.cli.guard_views import known_agent
    from coherence.cli.target import opened
    from coherence.core.readings import excerpt
    from coherence.guard.export import export_trail

    with opened(path, option=False) as store:
        known = agents(store)
        if not known and agent is None:
            raise click.UsageError(f"{path}: no agent under guard is in this store")
        for name in known if agent is None else [known_agent(store, agent)]:
            file = TemporaryFile()  # noqa: SIM115  closed by who takes it
            export_trail(store, name, file)
            file.seek(0)
            yield f"{path}, agent {excerpt(name, NAME)}", file


def _is_store(trail: str) -> bool:
    from coherence.store.open import MAGIC

    try:
        with Path(trail).open("rb") as file:
            return file.read(len(MAGIC)) == MAGIC
    except (OSError, ValueError):
        return False


def _print_json(results: list[tuple[str, Verified | str]]) -> None:
    import msgspec

    from coherence.cli.documents import print_document

    told: list[dict[str, Any]] = []
    for name, result in results:
        if isinstance(result, str):
            told.append({"trail": name, "verdict": "unreadable", "error": result})
        else:
            told.append({"trail": name, "verdict": result.verdict, **msgspec.to_builtins(result)})
    print_document("coherence.guard.verify/1", told)


def _print(name: str, result: Verified | str) -> None:
    from coherence.cli.columns import print_columns
    from coherence.core.readings import excerpt, one_line

    if isinstance(result, str):
        sys.stdout.write(one_line(f"{name}: unreadable: {result}") + "\n")
        return
    count = f"entries {result.entries}, calls {result.calls}, patches {result.patches}, confirmed {result.confirmed}"
    derived = f"steps derived {result.steps}, unknown {result.unknown}"
    sys.stdout.write(one_line(f"{name}: {result.verdict.upper()}") + f"\n  {count}; {derived}\n")
    if result.rollbacks:
        rows = [("  patch", "at", "rule", "metric", "evidence", "failed", "restored", "derived")]
        rows += [
            (
                f"  {each.patch}",
                str(each.seq),
                each.rule,
                excerpt(each.metric or "-", 11),
                "-" if each.evidence is None or each.limit is None else f"{each.evidence:.3g}/{each.limit:.3g}",
                f"{each.failures} of {each.calls}",
                "-" if each.restored is None else str(each.restored),
                each.derived,
            )
            for each in result.rollbacks
        ]
        print_columns(rows)
    for title, told, count_of in (
        ("wrong", result.faults, result.fault_count),
        ("note", result.remarks, len(result.remarks)),
    ):
        for remark in told[:MAX_SHOWN]:
            sys.stdout.write(one_line(f"  {title}, entry {remark.seq}: {remark.what}") + "\n")
        if count_of > MAX_SHOWN:
            sys.stdout.write(f"  {title}: {count_of - min(MAX_SHOWN, len(told))} more\n")
    for each in result.rollbacks:
        if each.derived == "unknown":
            sys.stdout.write(one_line(f"  unknown, entry {each.seq}: {each.why_not}") + "\n")
