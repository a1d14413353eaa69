"""Metrics for Prometheus, read with the parser of its own client."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("prometheus_client")

import prometheus_client
from prometheus_client.parser import text_string_to_metric_families

from coherence import Budget, Monitor
from coherence.export.agent_totals import MAX_AGENTS
from coherence.export.prometheus import CONTENT_TYPE, FAMILIES, FORGOTTEN, LIGHTS, PrometheusSink
from coherence.guard import Guard
from coherence.integrations.prometheus_server import MetricsServer, StoreMetrics
from coherence.store.store import Store

pytestmark = pytest.mark.frameworks

ROOT = Path(__file__).parents[2]


def live(name: str, **options: Any) -> Monitor:
    """Return a monitor of an agent that looped, asked for something harmful, and failed."""
    m = Monitor(agent=name, goal="Make the tests pass", embedder=False, budget=Budget(calls=20), **options)
    for at in range(6):
        m.message("assistant", "I run the tests.")
        m.usage(tokens_in=100 * at, tokens_out=20, cost_usd=0.25, tokens_cached=10)
        call = m.tool_call("Bash", {"command": "pytest -q"})
        m.tool_result("ImportError: no module x", error=at % 2 == 0, call=call, duration_s=0.2)
        m.decide()
    assert not m.check("Bash", {"command": "rm -rf /"})
    m.outcome(success=False)
    m.flush()
    return m


def parsed(text: bytes) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    """Return (sample, labels) -> value; each once."""
    samples = [sample for family in text_string_to_metric_families(text.decode()) for sample in family.samples]
    found = {(sample.name, frozenset(sample.labels.items())): sample.value for sample in samples}
    assert len(found) == len(samples)
    return found


def value(found: dict[tuple[str, frozenset[tuple[str, str]]], float], name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]


def test_prometheus_sink_exposes_what_the_monitor_knows() -> None:
    sink = PrometheusSink(prometheus_client.CollectorRegistry())
    with live("fixer", sinks=[sink]) as m:
        known, reading = m.known_state, m.latest
        found = parsed(sink.exposition())
        assert reading is not None and known.result is not None
        assert value(found, "coherence_index_ratio", agent="fixer") == reading.coherence_index
        assert value(found, "coherence_coverage_ratio", agent="fixer") == reading.coverage
        assert value(found, "coherence_light", agent="fixer") == LIGHTS[reading.band]
        bands = {band: value(found, "coherence_band", agent="fixer", band=band) for band in LIGHTS}
        assert bands == {band: float(band == reading.band) for band in LIGHTS}
        assert value(found, "coherence_pressure_ratio", agent="fixer") == known.result.appraisal.effective
        for name, each in reading.metrics.items():
            labels = frozenset({("agent", "fixer"), ("metric", name)})
            assert found.get(("coherence_metric_ratio", labels)) == each
        assert value(found, "coherence_steps_total", agent="fixer") == known.steps == 12  # six answers, six results
        assert value(found, "coherence_calls_total", agent="fixer") == known.calls == 6
        assert value(found, "coherence_call_failures_total", agent="fixer") == known.errors == 3
        assert value(found, "coherence_cost_usd_total", agent="fixer") == known.spent.cost_usd == 1.5
        read, written = (
            value(found, "coherence_tokens_total", agent="fixer", type=kind) for kind in ("input", "output")
        )
        assert (read, written) == (1500, 120) and read + written == known.spent.tokens  # 100 * (0 + … + 5), 6 * 20
        assert value(found, "coherence_cached_tokens_total", agent="fixer") == 60
        assert value(found, "coherence_budget_used_ratio", agent="fixer", limit="calls") == 0.3  # 6 of 20
        assert value(found, "coherence_refused_calls_total", agent="fixer") == 1
        assert value(found, "coherence_decisions_total", agent="fixer", decision="block") == 1
        assert value(found, "coherence_findings_total", agent="fixer", rule="harmful_call") == 1
        assert value(found, "coherence_outcomes_total", agent="fixer", result="failure") == 1
        assert value(found, "coherence_call_duration_seconds_bucket", agent="fixer", le="0.1") == 0
        assert value(found, "coherence_call_duration_seconds_bucket", agent="fixer", le="0.5") == 6
        assert value(found, "coherence_call_duration_seconds_count", agent="fixer") == 6
        assert value(found, "coherence_model_call_tokens_sum", agent="fixer", type="input") == 1500
        assert value(found, "coherence_last_event_timestamp_seconds", agent="fixer") == m.events(1)[0].ts


def test_prometheus_sink_the_format_is_the_one_that_is_promised() -> None:
    sink = PrometheusSink(prometheus_client.CollectorRegistry())
    with live("fixer", sinks=[sink]):
        text = sink.exposition()
    families = {family.name: family for family in text_string_to_metric_families(text.decode())}
    assert set(families) == {family.name.removesuffix("_total") for family in FAMILIES} | {"coherence_forgotten_agents"}
    for family in FAMILIES:
        told = families[family.name.removesuffix("_total")]
        assert (told.type, told.documentation) == (family.kind, family.help)
        assert re.fullmatch(r"coherence(_[a-z]+)+", family.name)
        assert family.name.endswith("_total") == (family.kind == "counter")
        for sample in told.samples:
            assert sample.labels.keys() - {"le"} == {"agent", family.label} - {""}
    if shutil.which("promtool"):
        checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True)
        assert checked.returncode == 0, checked.stdout + checked.stderr


def test_prometheus_sink_is_served_by_the_real_client_and_leaves_its_registry() -> None:
    registry = prometheus_client.CollectorRegistry()
    sink = PrometheusSink(registry)
    with pytest.raises(ValueError, match="give that one to all monitors"):
        PrometheusSink(registry)
    server, thread = prometheus_client.start_http_server(0, "127.0.0.1", registry)
    try:
        with live("fixer", sinks=[sink]), live("helper", sinks=[sink]):
            found = parsed(fetch(f"http://127.0.0.1:{server.server_port}/metrics"))
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
    assert [value(found, "coherence_steps_total", agent=name) for name in ("fixer", "helper")] == [12, 12]
    sink.close()
    assert prometheus_client.generate_latest(registry) == b""
    PrometheusSink(registry)


def test_prometheus_sink_names_of_agents_are_escaped_and_bounded() -> None:
    sink = PrometheusSink(prometheus_client.CollectorRegistry(), max_agents=3)
    names = ['quo"te', "back\\slash", "line\nbreak", "long" * 100, "\ud800", "c", "d"]
    for name in names:
        with Monitor(agent=name, embedder=False, sinks=[sink]) as m:
            m.message("assistant", "hello")
    found = parsed(sink.exposition())
    agents = [dict(labels)["agent"] for sample, labels in found if sample == "coherence_steps_total"]
    assert agents == ["\ufffd", "c", "d"] and value(found, FORGOTTEN) == 4
    wide = PrometheusSink(prometheus_client.CollectorRegistry())
    for name in names[:4]:
        with Monitor(agent=name, embedder=False, sinks=[wide]) as m:
            m.message("assistant", "hello")
    agents = [
        dict(labels)["agent"] for sample, labels in parsed(wide.exposition()) if sample == "coherence_steps_total"
    ]
    assert agents == ['quo"te', "back\\slash", "line break", "long" * 50]
    assert repr(wide) == f"PrometheusSink(max_agents={MAX_AGENTS})"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_prometheus_sink_in_a_forked_child_does_not_wait_for_the_parents_lock() -> None:
    sink = PrometheusSink(prometheus_client.CollectorRegistry())
    with sink._lock:
        child = os.fork()
        if child == 0:
            os._exit(0 if sink.exposition() else 1)
        timer = threading.Timer(20, os.kill, (child, signal.SIGKILL))
        timer.start()
        status = os.waitpid(child, 0)[1]
        timer.cancel()
        assert status == 0


def fetch(url: str) -> bytes:
    with urllib.request.urlopen(url, timeout=10) as answer:
        assert answer.headers["Content-Type"].startswith("text/plain; version=")
        found: bytes = answer.read()
    return found


@contextmanager
def serving(path: Path) -> Iterator[str]:
    with MetricsServer(StoreMetrics(path), 0) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def test_store_metrics_are_those_of_the_sink_and_grow_with_the_store(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    sink = PrometheusSink(prometheus_client.CollectorRegistry())
    with live("fixer", store=store, sinks=[sink]), serving(store) as url:
        assert parsed(fetch(f"{url}/metrics")) == parsed(sink.exposition())
        with live("helper", store=store, sinks=[sink]) as m:
            assert parsed(fetch(f"{url}/metrics?name=x")) == parsed(sink.exposition())
            m.message("assistant", "once more")
            m.flush()
            assert parsed(fetch(f"{url}/metrics")) == parsed(sink.exposition())
        with pytest.raises(urllib.error.HTTPError, match="404"):
            fetch(url)


def test_store_metrics_leave_out_tests_guards_and_what_was_purged(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    for name, source in (("real", "api"), ("probe", "test"), ("gone", "api")):
        live(name, store=store, source=source).close()
    with Guard(store=store) as guard:
        guard.run(lambda: 1, agent="guarded")
    before = parsed(StoreMetrics(store).exposition())
    with Store(store) as kept:
        kept.purge("gone")
    after = parsed(StoreMetrics(store).exposition())
    agents = [{dict(labels).get("agent") for _, labels in found} - {None} for found in (before, after)]
    assert agents == [{"real", "gone"}, {"real"}]


def test_store_metrics_of_a_store_that_was_replaced_begin_anew(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    live("fixer", store=store).close()
    live("other", store=tmp_path / "new.db").close()
    with serving(store) as url:
        assert "fixer" in fetch(f"{url}/metrics").decode()
        os.replace(tmp_path / "new.db", store)
        text = fetch(f"{url}/metrics").decode()
        assert "other" in text and "fixer" not in text
        store.write_bytes(b"no store at all, and long enough to be looked at")
        with pytest.raises(urllib.error.HTTPError, match="500") as refused:
            fetch(f"{url}/metrics")
        assert b"runs.db" in refused.value.read()


def test_prometheus_command_serves_and_ends(tmp_path: Path) -> None:
    store = tmp_path / "runs.db"
    live("fixer", store=store).close()
    command = [sys.executable, "-m", "coherence", "prometheus", str(store), "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert process.stderr.readline().startswith("reading ")
        said = process.stderr.readline()
        found = re.fullmatch(r"metrics on (http://127\.0\.0\.1:\d+/metrics)\n", said)
        assert found is not None, said
        with urllib.request.urlopen(found[1], timeout=10) as answer:
            assert answer.headers["Content-Type"] == CONTENT_TYPE
            text = answer.read()
        process.send_signal(signal.SIGTERM)
        try:
            err = process.communicate(timeout=30)[1]
        finally:
            process.kill()  # so that a failure does not wait for ever
    assert process.returncode == 0 and err == "ends\n"
    once = subprocess.run([*command[:-2], "--once"], capture_output=True, check=True)
    assert parsed(once.stdout) == parsed(text)


def test_prometheus_page_names_every_metric_and_its_code_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (ROOT / "docs" / "how-to" / "prometheus.md").read_text("utf-8")
    assert set(re.findall(r"`(coherence_\w+)`", page)) == {family.name for family in FAMILIES} | {FORGOTTEN}
    [code] = [block for block in re.findall(r"^```text\n(.*?)^```", page, re.M | re.S) if "import" in block]
    served: list[Any] = []
    begin = prometheus_client.start_http_server
    monkeypatch.setattr(prometheus_client, "start_http_server", lambda _, host: served.append(begin(0, host)))
    names: dict[str, Any] = {}
    exec(code, names)
    [(server, thread)] = served
    try:
        found = parsed(fetch(f"http://127.0.0.1:{server.server_port}/metrics"))
    finally:
        names["sink"].close()
        server.shutdown()
        server.server_close()
        thread.join()
    assert value(found, "coherence_steps_total", agent="fixer") == 1
