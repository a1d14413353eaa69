"""Plug-in of pytest: a monitor for each test that asks for one, a mark that judges it, a summary and a report.

pytest imports this file in every run, so that nothing else of the package is loaded before a test uses it.
"""

from __future__ import annotations

import base64
import pickle
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from coherence.monitor.monitor import Monitor
    from coherence.report.score import ScoredRun

MARK = "coherence"
OPTION = "--coherence-report"
PREFIX = "coherence_"
"""Beginning of the names of the properties that a report of a test gets."""

_MONITOR = pytest.StashKey["Monitor"]()
_RUN = pytest.StashKey["ScoredRun"]()
_JUDGED = pytest.StashKey[bool]()
"""There in a test that the mark has failed: its message says what the monitor saw."""
_ATTRIBUTE = "coherence_run"
"""Attribute of a report that carries the run from a worker of pytest-xdist, as text."""

SHOWN_FINDINGS = 3
"""Findings that a row of the summary names."""


class _Wanted(NamedTuple):
    """Arguments of the mark."""

    light: str = "yellow"
    no: tuple[str, ...] = ()
    budget: Any = None
    known: bool = False


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option of the report."""
    parser.getgroup("coherence").addoption(
        OPTION, metavar="FILE", help="Write a report on all runs that coherence_monitor has watched, as one HTML file."
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the mark and, where results are shown, what collects them."""
    config.addinivalue_line(
        "markers",
        f"{MARK}(light='yellow', no=[], budget=None, known=False): fail the test if the run that coherence_monitor has "
        "watched has a worse light, one of the findings, or reaches the budget",
    )
    if not hasattr(config, "workerinput"):
        path = config.getoption(OPTION)
        if path and not Path(path).resolve().parent.is_dir():
            raise pytest.UsageError(f"{OPTION} {path}: its folder does not exist")
        config.pluginmanager.register(_Results(path), "coherence-results")


@pytest.fixture
def coherence_options() -> dict[str, Any]:
    """Options of the monitor that a test gets; override it for others, such as ``embedder`` or ``goal``."""
    return {}


@pytest.fixture
def coherence_monitor(request: pytest.FixtureRequest, coherence_options: Mapping[str, Any]) -> Iterator[Monitor]:
    """Monitor of this test's agent, held in memory; what it has seen becomes part of the test's report."""
    from coherence.monitor.monitor import Monitor

    wanted = _wanted(request.node)
    options = {"source": "test", **coherence_options}
    if wanted is not None and wanted.budget is not None:
        # The mark is about the limit itself: a warning before it would fail the test early.
        options["budget"] = {"soft": 1.0, **wanted.budget} if isinstance(wanted.budget, Mapping) else wanted.budget
    with Monitor(**options) as monitor:
        request.node.stash[_MONITOR] = monitor
        yield monitor
        from coherence.report.live import scored_monitor

        run = scored_monitor(monitor, request.node.nodeid)
        request.node.user_properties += _properties(run, monitor)
        if run is not None:
            request.node.stash[_RUN] = run


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Refuse a mark with arguments that mean nothing, before its test runs."""
    _wanted(item)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, None, None]:
    """Judge the run of a test that has passed, if it has the mark."""
    yield
    wanted = _wanted(item)
    if wanted is None:
        return
    monitor = item.stash.get(_MONITOR, None)
    if monitor is None:
        pytest.fail(
            f"the mark {MARK} judges the fixture coherence_monitor, which this test does not use", pytrace=False
        )
    from coherence.core.readings import Band
    from coherence.pytest_plugin.assertion import faults_of, scored_runs
    from coherence.pytest_plugin.rule_names import rules_meant

    (run,) = scored_runs(monitor)
    faults = faults_of(run, Band(wanted.light), rules_meant(wanted.no), known=wanted.known, named=False)
    if faults:
        item.stash[_JUDGED] = True
        pytest.fail("\n".join(faults), pytrace=False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add to a failed test what its monitor saw, and to the last report of a test its run for the HTML report."""
    report = yield
    monitor = item.stash.get(_MONITOR, None)
    if monitor is not None and call.when == "call" and report.failed and _JUDGED not in item.stash:
        report.sections.append(("coherence", _described(monitor)))
    run = item.stash.get(_RUN, None)
    if run is not None and call.when == "teardown" and item.config.getoption(OPTION):
        setattr(report, _ATTRIBUTE, base64.b85encode(pickle.dumps(run)).decode())
    return report


def _wanted(item: pytest.Item) -> _Wanted | None:
    """Return what the mark of a test asks for, ``None`` without one; a bad one fails the test."""
    mark = item.get_closest_marker(MARK)
    if mark is None:
        return None
    from typing import get_args

    from coherence.pytest_plugin.assertion import Light
    from coherence.pytest_plugin.rule_names import rules_meant

    unknown = sorted(set(mark.kwargs) - set(_Wanted._fields))
    try:
        if mark.args or unknown:
            raise TypeError(f"it takes only {', '.join(f'{name}=' for name in _Wanted._fields)}")
        wanted = _Wanted(**mark.kwargs)
        if wanted.light not in get_args(Light):
            raise ValueError(f"light must be one of {', '.join(get_args(Light))}, not {wanted.light!r}")
        rules_meant(wanted.no)
    except (TypeError, ValueError) as error:
        pytest.fail(f"the mark {MARK}: {error}", pytrace=False)
    return wanted if wanted.budget is None else wanted._replace(no=(*wanted.no, "budget"))


def _properties(run: ScoredRun | None, monitor: Monitor) -> list[tuple[str, object]]:
    """Return what the report of a test tells of its run, for JUnit XML too; what is not known is left out."""
    if run is None:
        return [(f"{PREFIX}steps", 0), (f"{PREFIX}light", "unknown")]
    from coherence.report.cells import strip_text
    from coherence.report.score import FROM_BEST

    lowest, counters = run.lowest, monitor.counters
    active = [finding.rule for decision in run.decisions for finding in decision.findings if finding.active]
    cost = counters.cost_usd if not monitor.spent.unpriced else None  # a part of it would look like all of it
    told = {
        "steps": len(run.lights),
        "light": max(run.lights, key=FROM_BEST.index).value,
        "lights": strip_text(run.lights),
        "index": None if lowest is None else lowest.coherence_index,
        "findings": " ".join(dict.fromkeys(active)) or None,
        "cost_usd": cost,
    }
    return [(f"{PREFIX}{name}", value) for name, value in told.items() if value is not None]


def _described(monitor: Monitor) -> str:
    """Return what a monitor saw, in a few lines; a fault of this package must not stop pytest."""
    from coherence.core.readings import Band
    from coherence.pytest_plugin.assertion import faults_of
    from coherence.report.live import scored_monitor

    try:
        run = scored_monitor(monitor)
        if run is None:
            return "no step was recorded"
        return "\n".join(faults_of(run, Band.GREEN, {}, named=False)) or "the run is green, or not known"
    except Exception as error:
        return f"what the monitor saw cannot be shown: {type(error).__name__}: {error}"


class _Results:
    """Rows of the summary and runs of the report, as tests end; under pytest-xdist in the process that shows them."""

    def __init__(self, path: str | None) -> None:
        self._path = path
        self._rows: dict[str, dict[str, Any]] = {}
        self._runs: dict[str, ScoredRun] = {}
        self._written = ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when != "teardown":
            return
        told = {name.removeprefix(PREFIX): value for name, value in report.user_properties if name.startswith(PREFIX)}
        if "light" in told:
            self._rows[report.nodeid] = told
        carried = getattr(report, _ATTRIBUTE, None)
        if carried is not None:
            # Written by a worker of this very run.
            self._runs[report.nodeid] = pickle.loads(base64.b85decode(carried))  # noqa: S301

    def pytest_sessionfinish(self) -> None:
        if self._path is None:
            return
        if not self._runs:
            self._written = f"{self._path} was not written: no test used coherence_monitor"
            return
        from coherence.report.html import write_html

        try:
            write_html(self._path, [self._runs[name] for name in sorted(self._runs)], title="coherence report of tests")
        except OSError as error:
            self._written = f"{self._path} cannot be written: {error.strerror or error}"
        else:
            self._written = f"report: {self._path}"

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._rows and not self._written:
            return
        terminalreporter.write_sep("=", "coherence")
        for line in _rows(self._rows):
            terminalreporter.write_line(line)
        if self._written:
            terminalreporter.write_line(self._written)


def _rows(told: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return a line a test, the worst light first."""
    if not told:
        return []
    from coherence.core.readings import Band
    from coherence.report.score import FROM_BEST

    order = sorted(told, key=lambda name: (-FROM_BEST.index(Band(told[name]["light"])), name))
    cells = [_cells(name, told[name]) for name in order]
    widths = [max(len(row[at]) for row in cells) for at in range(len(cells[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in cells]


def _cells(name: str, told: Mapping[str, Any]) -> list[str]:
    findings = str(told.get("findings", "")).split()
    more = f" and {len(findings) - SHOWN_FINDINGS} more" if len(findings) > SHOWN_FINDINGS else ""
    cost = f"{told['cost_usd']:.4f} USD" if "cost_usd" in told else "cost unknown"
    light = told["light"]
    return [
        light,
        str(told.get("lights", "-")),
        name,
        cost,
        ", ".join(findings[:SHOWN_FINDINGS]) + more or "no finding",
    ]
