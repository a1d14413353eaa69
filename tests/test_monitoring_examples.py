"""Dashboard and alert rules for Prometheus: they name only what the endpoint exposes."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from coherence.export.prometheus import FAMILIES, FORGOTTEN

FOLDER = Path(__file__).resolve().parents[1] / "examples" / "monitoring"
DASHBOARD = json.loads((FOLDER / "dashboard.json").read_text("utf-8"))
RULES = yaml.safe_load((FOLDER / "alerts.yml").read_text("utf-8"))["groups"][0]["rules"]

ENDINGS = {"gauge": ("",), "counter": ("",), "histogram": ("_bucket", "_sum", "_count")}
LABELS = {
    f"{family.name}{ending}": {"agent", family.label, *(["le"] if ending == "_bucket" else [])} - {""}
    for family in FAMILIES
    for ending in ENDINGS[family.kind]
} | {FORGOTTEN: set[str](), "up": {"job"}}
"""Sample that is exposed, or made by Prometheus itself -> its labels beside those of the scrape."""

WORDS = {
    *("and", "on", "by", "sum", "count", "topk", "rate", "increase", "time", "histogram_quantile"),
}
"""Words of PromQL that the files use."""


def queries() -> Iterator[tuple[str, str]]:
    """Yield where each query stands, and the query."""
    for rule in RULES:
        yield rule["alert"], rule["expr"]
    for panel in DASHBOARD["panels"]:
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    yield "variable", DASHBOARD["templating"]["list"][1]["definition"]


def names_and_labels(query: str) -> tuple[set[str], set[str]]:
    """Return the names of samples and of labels in a query."""
    labels: set[str] = set()

    def take(found: re.Match[str]) -> str:
        labels.update(re.findall(r"\w+(?=\s*(?:=|!=|=~|,|$))", found[1]))
        return " "

    query = re.sub(r'"[^"]*"', '""', query)
    query = re.sub(r"\[[^]]*\]", " ", query)  # spans of time
    query = re.sub(r"\{([^}]*)\}", take, query)
    query = re.sub(r"\b(?:by|on)\s*\(([^)]*)\)", take, query)
    if found := re.fullmatch(r"label_values\((\w+), (\w+)\)", query):
        query = found[1]
        labels.add(found[2])
    return set(re.findall(r"[a-zA-Z_]\w*", query)) - WORDS, labels


def test_names_and_labels_of_a_query_are_found() -> None:
    query = 'sum by (agent, le) (rate(coherence_x_bucket{agent=~"$agent", rule!="a"}[5m])) > 0.5 and up'
    assert names_and_labels(query) == ({"coherence_x_bucket", "up"}, {"agent", "le", "rule"})


@pytest.mark.parametrize(("place", "query"), list(queries()))
def test_monitoring_examples_name_only_samples_that_are_exposed(place: str, query: str) -> None:
    names, labels = names_and_labels(query)
    assert names and names <= LABELS.keys(), place
    assert labels <= set().union(*(LABELS[name] for name in names)), place
    assert query.count("(") == query.count(")") and query.count("{") == query.count("}"), place


def test_monitoring_examples_the_dashboard_shows_every_metric() -> None:
    shown = set().union(*(names_and_labels(query)[0] for _, query in queries()))
    missing = [family.name for family in FAMILIES if not shown & {family.name, f"{family.name}_bucket"}]
    assert missing == []


def test_monitoring_examples_the_dashboard_is_one_that_grafana_reads() -> None:
    assert DASHBOARD["schemaVersion"] == 39 and DASHBOARD["uid"] == "coherence"
    panels: list[dict[str, Any]] = DASHBOARD["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert place["x"] + place["w"] <= 24 and not cells & taken, panel["title"]  # a row of Grafana has 24 columns
        taken |= cells
        assert panel["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        used = set(re.findall(r"\{\{(\w+)\}\}", "".join(target["legendFormat"] for target in panel["targets"])))
        known = set().union(*(names_and_labels(target["expr"])[1] for target in panel["targets"]))
        own = set().union(
            *(LABELS[name] for target in panel["targets"] for name in names_and_labels(target["expr"])[0])
        )
        grouped = any(" by (" in f" {target['expr']}" for target in panel["targets"])
        assert used <= (known if grouped else own), panel["title"]


def test_monitoring_examples_the_alerts_are_complete() -> None:
    scrape = yaml.safe_load((FOLDER / "prometheus.yml").read_text("utf-8"))
    assert scrape["rule_files"] == ["alerts.yml"]
    assert scrape["scrape_configs"][0]["static_configs"] == [{"targets": ["127.0.0.1:9464"]}]
    assert len({rule["alert"] for rule in RULES}) == len(RULES)
    for rule in RULES:
        assert rule["labels"]["severity"] in ("info", "warning", "critical") and rule["annotations"]["summary"]
        named = set(re.findall(r"\$labels\.(\w+)", str(rule["annotations"])))
        assert named <= set().union(*(LABELS[name] for name in names_and_labels(rule["expr"])[0])), rule["alert"]


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_monitoring_examples_pass_promtool() -> None:
    done = subprocess.run(["promtool", "check", "config", "prometheus.yml"], cwd=FOLDER, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
