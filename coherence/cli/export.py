"""Work of ``coherence export``: one session as a file that others can read."""

from __future__ import annotations

import heapq
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import msgspec

import coherence
from coherence.cli.documents import versioned
from coherence.cli.logs import event_record
from coherence.cli.outputs import check_outputs
from coherence.cli.target import find_sessions, opened, split_target
from coherence.core.errors import MissingExtraError
from coherence.core.files import open_output
from coherence.core.readings import number_of
from coherence.monitor.session_header import base_of, began_as, is_without_text
from coherence.providers.readers.recorded_events import SCHEMA, ExportedAgent, ExportHead
from coherence.store.rows import EventRow, SessionRow
from coherence.store.runs import session_label
from coherence.store.store import Store

LABELS = {True: "good", False: "bad", None: None}


def export_session(session: str | None, *, store: Path | None, output: Path | None, parquet: Path | None) -> None:
    """Write one session, and what went on from it, with all its agents; or tables of it, or of a whole store."""
    path, name = split_target(session, store)
    if parquet is not None:
        return _export_tables(path, name, output=output, folder=parquet)
    if name is None:
        raise click.UsageError("name a session: coherence sessions lists them; only --parquet takes a whole store")
    check_outputs({"--output": output}, [], store=path)
    with opened(path) as kept:
        rows = _of_session(kept, name)
        heads = [_head(kept, row) for row in rows]
        lines = _lines(kept, name, rows, heads)
        if output is None:
            sys.stdout.writelines(f"{line}\n" for line in lines)
        else:
            _write(output, lines)
            count = number_of(sum(head.events for head in heads), "event")
            click.echo(f"{count} of {number_of(len(heads), 'session')}: {output}", err=True)
    return None


def _export_tables(path: Path, name: str | None, *, output: Path | None, folder: Path) -> None:
    from coherence.export.parquet import EVENTS_FILE, READINGS_FILE, write_parquet

    if output is not None:
        raise click.UsageError("--output is of JSON lines; --parquet names the folder of its two files")
    check_outputs({"--parquet": folder / EVENTS_FILE, "the table": folder / READINGS_FILE}, [], store=path)
    with opened(path) as kept:
        rows = kept.sessions() if name is None else _of_session(kept, name)
        try:
            written = write_parquet(kept, rows, folder)
        except MissingExtraError as error:
            raise click.UsageError(str(error)) from error
        except OSError as error:
            raise click.UsageError(f"{folder}: cannot be written: {error.strerror or error}") from error
    told = f"{number_of(written.events, 'event')} and {number_of(written.readings, 'reading')}"
    unread = f"; of {number_of(written.unread, 'event')} the content was purged or is unknown" if written.unread else ""
    click.echo(f"{told} of {number_of(len(rows), 'session')}: {folder}{unread}", err=True)


def _of_session(store: Store, session: str) -> list[SessionRow]:
    """Return the sessions that a name means, of all agents, with those that went on from them."""
    found = {(row.agent, began_as(store, row.agent, row.session)) for row in find_sessions(store, session, file=False)}
    return [row for row in store.sessions() if {(row.agent, row.session), (row.agent, base_of(row.session))} & found]


def _head(store: Store, row: SessionRow) -> ExportedAgent:
    return ExportedAgent(
        agent=row.agent,
        session=row.session,
        parent=row.parent,
        source=row.source,
        started=row.started,
        events=store.count_events(row.id),
        without_text=is_without_text(row),
        label=LABELS[session_label(store, row.agent, began_as(store, row.agent, row.session))],
    )


def _lines(store: Store, session: str, rows: list[SessionRow], heads: list[ExportedAgent]) -> Iterator[str]:
    head = ExportHead(schema=SCHEMA, version=coherence.__version__, session=session, agents=heads)
    yield json.dumps(msgspec.to_builtins(head))
    # what is added while this is written is left out: the first line has told how many there are
    each = (_events(store, row, head.events) for row, head in zip(rows, heads, strict=True))
    for row, event in heapq.merge(*each, key=lambda found: found[1].ts):
        yield json.dumps(versioned("coherence.log/1", event_record(row, event)))


def _events(store: Store, row: SessionRow, count: int) -> Iterator[tuple[SessionRow, EventRow]]:
    for event in store.events(row.id, limit=count):
        yield row, event


def _write(path: Path, lines: Iterable[str]) -> None:
    try:
        with open_output(path) as file:
            for line in lines:
                file.write(f"{line}\n".encode())
    except OSError as error:
        raise click.UsageError(f"{path}: cannot be written: {error.strerror or error}") from error
