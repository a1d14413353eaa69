"""A third party's package: nothing of this repository knows it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from coherence import CoherenceSensor
from coherence.cli.main import main
from coherence.core.errors import PluginError
from coherence.core.registry import available, create_reader, lookup
from coherence.providers import HashingEmbedder, StaticState
from coherence.providers.readers import read_transcripts
from coherence.testing import checks_for

PACKAGE = Path(__file__).parent / "plugin_package"


@pytest.fixture(scope="module", autouse=True)
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Lay the package where Python finds it, with what an installer makes of its entry points."""
    folder = tmp_path_factory.mktemp("site")
    shutil.copytree(PACKAGE / "acme_coherence", folder / "acme_coherence")
    project = tomllib.loads((PACKAGE / "pyproject.toml").read_text())["project"]
    info = folder / "acme_coherence-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: 1.0\n")
    lines = []
    for group, points in project["entry-points"].items():
        lines += [f"[{group}]", *(f"{name} = {place}" for name, place in points.items())]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(folder)
        yield folder
    sys.modules.pop("acme_coherence", None)


def test_available_shows_the_metric_with_its_origin() -> None:
    origins = {plugin.name: plugin.origin for plugin in available("metrics")}
    assert origins["acme_brevity"] == origins["acme_broken"] == "acme-coherence"
    assert origins["goal_drift"] == "coherence-sensor"


def test_lookup_the_one_that_fails_to_import_is_reported_with_name_package_place_and_cause() -> None:
    with pytest.raises(PluginError) as caught:
        lookup("metrics", "acme_broken")
    assert str(caught.value) == (
        "plug-in 'acme_broken' of acme-coherence fails to load from 'acme_coherence.broken:Broken': "
        "RuntimeError: acme needs a licence"
    )


def test_coherence_sensor_measures_with_it_by_name() -> None:
    state = StaticState(
        goals=["fix the login bug"], context=["fixing it", "the tests of the login pass", "done", "bye"]
    )
    sensor = CoherenceSensor(state, metrics=["goal_drift", "acme_brevity"], embedder=HashingEmbedder(), timeout_s=60)
    reading = sensor.measure_sync()
    assert reading.metrics["acme_brevity"] == 0.75  # 3 of 4 messages have at most three words
    assert (reading.coverage, reading.errors) == (1.0, ())


def test_checks_for_it_keeps_the_contract_that_the_built_ins_keep() -> None:
    checks = checks_for(lookup("metrics", "acme_brevity")())
    assert len(checks) >= 6
    for check in (*checks, *checks_for(create_reader("acme-log"))):
        check()


def test_read_transcripts_and_score_read_the_logs_that_it_adds(tmp_path: Path) -> None:
    log = tmp_path / "login.log"
    entries = [("user", "fix the login bug"), ("agent", "The login works now.")]
    log.write_text("".join(json.dumps({"acme": 1, "who": who, "what": what}) + "\n" for who, what in entries))
    [run] = read_transcripts(log)
    assert (run.format, [step.role for step in run.steps]) == ("acme-log", ["user", "assistant"])
    for arguments in ([], ["--format", "acme-log"]):
        command = ["score", str(log), "--embedder", "hashing", "--json", *arguments]
        [scored] = json.loads(CliRunner().invoke(main, command).stdout)["runs"]
        assert scored["format"] == "acme-log"
    refused = CliRunner().invoke(main, ["score", str(log), "--format", "acme-lag"])
    assert refused.exit_code == 2 and "'acme-lag' is not one of" in refused.stderr


def test_list_metrics_names_it_and_the_broken_one() -> None:
    rows = {row["name"]: row for row in json.loads(CliRunner().invoke(main, ["metrics", "--json"]).stdout)}
    assert rows["acme_brevity"]["direction"] == "high is good"
    assert rows["acme_brevity"]["summary"].startswith("Share of recent messages of at most three words.")
    assert "RuntimeError: acme needs a licence" in rows["acme_broken"]["summary"]
    table = CliRunner().invoke(main, ["metrics"]).stdout
    assert "acme_brevity" in table and "acme needs a licence" in table


@pytest.mark.slow
def test_plugin_package_is_found_as_pip_installs_it(tmp_path: Path) -> None:
    copy, target = shutil.copytree(PACKAGE, tmp_path / "copy"), tmp_path / "site"
    flags = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--no-cache-dir"]
    command = [sys.executable, "-m", "pip", "install", *flags, "--target", str(target), str(copy)]
    subprocess.run(command, capture_output=True, check=True)
    paths = os.pathsep.join(filter(None, (str(target), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, "-m", "coherence", "metrics"]
    shown = subprocess.run(
        command, cwd=target, env={**os.environ, "PYTHONPATH": paths}, capture_output=True, text=True, check=True
    )
    assert "acme_brevity\thigh is good\ttexts\tacme-coherence\t" in shown.stdout
