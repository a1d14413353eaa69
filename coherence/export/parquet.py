"""Parquet: the events and readings of a store as two tables, for pandas, Polars, DuckDB or Spark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias

import msgspec

import coherence.core.events as events
from coherence.core.decisions import Decision
from coherence.core.errors import MissingExtraError
from coherence.core.files import make_folder, open_output
from coherence.monitor.codec import decode_result
from coherence.store.rows import EventRow, SessionRow
from coherence.store.store import Store

INSTALL = '  pip install "coherence-sensor[parquet]"'

MAX_ROWS = 20_000
"""Rows of a row group."""

MAX_TEXT = 16_000_000
"""Characters of texts in a row group."""

METRIC = "metric."
"""Beginning of the name of a metric's column."""

MAX_OPEN = 10_000
"""Calls of a session that wait for their results; of more, the oldest are given up."""

EVENTS_FILE, READINGS_FILE = "events.parquet", "readings.parquet"

Type: TypeAlias = Literal["string", "int64", "float64", "bool_", "strings"]

Row: TypeAlias = list[Any]


class Column(NamedTuple):
    """One column of a table."""

    name: str
    type: Type
    help: str
    """Content and unit; it stands in the file, too, as metadata of the column."""


COMMON = (
    Column("agent", "string", "name of the agent"),
    Column("session", "string", "name of its session"),
    Column("source", "string", "origin of the session: api, hook, wrap, replay or test"),
    Column("seq", "int64", "number of the event in its session, from 1"),
    Column("ts", "float64", "Unix time in seconds"),
)

EVENT_COLUMNS = (
    *COMMON,
    Column("kind", "string", "kind of the event: goal, message, tool_call, tool_result, usage, tick and others"),
    Column("ends_step", "bool_", "true for an answer of the model and for the result of a tool"),
    Column("role", "string", "of a message: user, assistant, system or tool"),
    Column("tool", "string", "tool of a call, of its result, or of a question whether it may run"),
    Column("call_id", "string", "id that joins a call and its result"),
    Column("text", "string", "text of a goal, message, result, memory and others"),
    Column("arguments", "string", "arguments of a call, as JSON"),
    Column("error", "bool_", "of a result: whether the call failed"),
    Column("error_type", "string", "class of the error"),
    Column("duration_s", "float64", "duration of a call or of an answer of the model, seconds"),
    Column("model", "string", "model that answered"),
    Column("input_tokens", "int64", "tokens that the model read, cached ones included"),
    Column("cached_tokens", "int64", "tokens that the model read from a cache"),
    Column("output_tokens", "int64", "tokens that the model wrote"),
    Column("cost_usd", "float64", "cost of the model call, US dollars"),
    Column("success", "bool_", "of an outcome: whether the task succeeded"),
    Column("decision", "string", "of a tick: continue, guide, warn or block"),
)

READING_COLUMNS = (
    *COMMON,
    Column("index", "float64", "chance that the run is on course, 0 to 1; null = unknown"),
    Column("band", "string", "green, yellow, orange, red or unknown"),
    Column("risk", "float64", "chance that the run is off course, 0 to 1; null = unknown, or a classic index"),
    Column("cause", "string", "strongest sign against the run, or the rule that asked for the band"),
    Column("coverage", "float64", "share of the weight that is known, 0 to 1"),
    Column("scale", "string", "version of the scale; empty = a classic index"),
    Column("pressure", "float64", "the agent's own pressure, 0 to 1, 0 = calm"),
    Column("mode", "string", "range of the pressure: observe, guide, warn or block"),
    Column("decision", "string", "continue, guide, warn or block"),
    Column("findings", "strings", "rules that were active, the most severe first"),
)
"""Columns of the table of readings; those of the metrics follow."""


class Written(NamedTuple):
    """Rows that were written."""

    events: int
    readings: int
    unread: int
    """Events that this version cannot read, or whose content was purged: they have their common columns and kind."""


def write_parquet(store: Store, sessions: Sequence[SessionRow], folder: Path) -> Written:
    """Write the events and readings of some sessions as ``events.parquet`` and ``readings.parquet``.

    Row groups are written as they are full, so that memory does not grow with the store. What is added to the store
    meanwhile is left out. A metric is a column ``metric.NAME`` in [0, 1]; null = unknown.

    Parameters
    ----------
    store : Store
        The store.
    sessions : sequence of SessionRow
        Sessions that are written, in this order.
    folder : Path
        Made if it is not there; files in it are written over.

    Raises
    ------
    MissingExtraError
        If pyarrow is not installed.
    OSError
        A file cannot be written.
    """
    arrow = _arrow()
    ends = [(row, store.last_seq(row.id)) for row in sessions]
    metrics = _metric_names(store, ends)
    columns = (*READING_COLUMNS, *(Column(f"{METRIC}{name}", "float64", f"metric {name}, 0 to 1") for name in metrics))
    make_folder(folder)
    unread = 0
    with ExitStack() as stack:
        written = stack.enter_context(_Table(arrow, folder / EVENTS_FILE, EVENT_COLUMNS))
        readings = stack.enter_context(_Table(arrow, folder / READINGS_FILE, columns))
        for session, end in ends:
            open_calls: dict[str, str] = {}
            for row in store.events(session.id, until=end):
                common = [session.agent, session.session, session.source, row.seq, row.ts]
                try:
                    event, result = events.decode_event(row.data), decode_result(row)
                except (ValueError, msgspec.DecodeError):
                    unread += 1
                    written.add([*common, row.kind, *[None] * (len(EVENT_COLUMNS) - len(common) - 1)], 0)
                    continue
                cells = _event_cells(row, event, _tool_of(event, open_calls))
                written.add([*common, *cells], sum(len(cell) for cell in cells if isinstance(cell, str)))
                if result is not None and result.reading is not None:
                    reading, appraisal = result.reading, result.appraisal
                    readings.add(
                        [
                            *common,
                            reading.coherence_index,
                            str(reading.band),
                            reading.risk,
                            reading.cause,
                            reading.coverage,
                            reading.scale,
                            appraisal.pressure,
                            str(appraisal.mode),
                            result.decision.kind,
                            _active(result.decision),
                            *(reading.metrics.get(name) for name in metrics),
                        ],
                        0,
                    )
    return Written(written.rows, readings.rows, unread)


def _event_cells(row: EventRow, event: events.Event, tool: str | None) -> Row:
    """Return the cells of an event, from its kind on."""
    outcome = events.is_success(event) if isinstance(event, events.Outcome) else None
    arguments = getattr(event, "arguments", msgspec.UNSET)
    return [
        row.kind,
        events.ends_step(event),
        getattr(event, "role", None),
        tool,
        getattr(event, "call_id", None),
        events.text_of(event) or None,
        None if arguments is msgspec.UNSET else bytes(arguments).decode(),
        getattr(event, "error", None),
        getattr(event, "error_type", None),
        getattr(event, "duration_s", None),
        getattr(event, "model", None),
        getattr(event, "input_tokens", None),
        getattr(event, "cached_tokens", None),
        getattr(event, "output_tokens", None),
        getattr(event, "cost_usd", None),
        outcome,
        None if row.decision is None else row.decision.kind,
    ]


def _tool_of(event: events.Event, open_calls: dict[str, str]) -> str | None:
    """Return the tool that an event names; that of a result is named by its call."""
    if isinstance(event, events.ToolCall):
        if len(open_calls) >= MAX_OPEN:
            del open_calls[next(iter(open_calls))]
        open_calls[event.call_id] = event.tool_name
    elif isinstance(event, events.ToolResult) and open_calls:
        called = open_calls.pop(event.call_id or next(reversed(open_calls)), None)
        return event.tool_name or called
    return getattr(event, "tool_name", None)


def _active(decision: Decision) -> list[str]:
    return [finding.rule for finding in decision.findings if finding.active]


def _metric_names(store: Store, ends: Iterable[tuple[SessionRow, int]]) -> list[str]:
    """Return the names of all metrics of some sessions, sorted: a file's columns are known before its first row."""
    found: set[str] = set()
    sql = (
        "SELECT DISTINCT m.key FROM readings AS r, json_each(r.data, '$.reading.metrics') AS m "
        "WHERE r.session_id = ? AND r.seq <= ?"
    )
    for row, end in ends:
        found.update(name for (name,) in store.fetch(sql, (row.id, end)))
    return sorted(found)


class _Table:
    """A Parquet file that is written row group by row group.

    Parameters
    ----------
    arrow : module
        The module ``pyarrow``.
    path : Path
        The file.
    columns : sequence of Column
        Its columns.
    """

    def __init__(self, arrow: Any, path: Path, columns: Sequence[Column]) -> None:
        self._arrow = arrow
        self._schema = arrow.schema([_field(arrow, column) for column in columns])
        self._path = path
        self._rows: list[Row] = []
        self._text = 0
        self.rows = 0

    def __enter__(self) -> _Table:
        self._file = open_output(self._path)
        self._writer = self._arrow.parquet.ParquetWriter(self._file, self._schema, compression="zstd")
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._flush()
            self._writer.close()
        finally:
            self._file.close()

    def add(self, row: Row, text: int) -> None:
        """Take a row with so many characters of text."""
        self._rows.append(row)
        self._text += text
        self.rows += 1
        if len(self._rows) >= MAX_ROWS or self._text >= MAX_TEXT:
            self._flush()

    def _flush(self) -> None:
        if self._rows:
            columns = zip(*self._rows, strict=True)
            arrays = [self._arrow.array(cells, field.type) for cells, field in zip(columns, self._schema, strict=True)]
            self._writer.write_table(self._arrow.Table.from_arrays(arrays, schema=self._schema))
            self._rows, self._text = [], 0


def _field(arrow: Any, column: Column) -> Any:
    kind = arrow.list_(arrow.string()) if column.type == "strings" else getattr(arrow, column.type)()
    return arrow.field(column.name, kind, metadata={"description": column.help})


def _arrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise MissingExtraError("pyarrow", INSTALL) from error
    return pyarrow
