"""A third party's package, installed for real: nothing of this repository knows it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent / "plugin_package"


def files_of(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if "__pycache__" not in path.parts}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the package and return the folder it was installed into."""
    work = tmp_path_factory.mktemp("plugin")
    before = files_of(PACKAGE)
    copy = shutil.copytree(PACKAGE, work / "copy")
    target = work / "site"
    flags = ["--quiet", "--no-deps", "--no-build-isolation", "--no-index", "--no-cache-dir"]
    command = [sys.executable, "-m", "pip", "install", *flags, "--target", str(target), str(copy)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert files_of(PACKAGE) == before
    return target


def run(site: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python as someone would who has the plug-in installed, away from this repository."""
    paths = [str(site), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTHONIOENCODING": "utf-8"}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=site, env=environment, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.slow
def test_plugin_package_the_registry_shows_the_metric_with_its_origin(site: Path) -> None:
    script = """
import json
from coherence.core.registry import available
print(json.dumps({plugin.name: plugin.origin for plugin in available()}))
"""
    origins = json.loads(run(site, "-c", script).stdout)
    assert origins["acme_brevity"] == "acme-coherence"
    assert origins["acme_broken"] == "acme-coherence"
    assert origins["goal_drift"] == "coherence-sensor"


def test_plugin_package_the_one_that_fails_to_import_is_reported_with_name_package_place_and_cause(site: Path) -> None:
    script = """
from coherence.core.errors import PluginError
from coherence.core.registry import lookup
try:
    lookup("metrics", "acme_broken")
except PluginError as error:
    print(error)
"""
    assert run(site, "-c", script).stdout.strip() == (
        "plug-in 'acme_broken' of acme-coherence fails to load from 'acme_coherence.broken:Broken': "
        "RuntimeError: acme needs a licence"
    )


def test_plugin_package_a_sensor_measures_with_it_by_name(site: Path) -> None:
    script = """
import json
from coherence import CoherenceSensor
from coherence.providers import HashingEmbedder, StaticState
state = StaticState(goals=["fix the login bug"], context=["fixing it", "the tests of the login pass", "done", "bye"])
sensor = CoherenceSensor(state, metrics=["goal_drift", "acme_brevity"], embedder=HashingEmbedder(), timeout_s=60)
print(json.dumps(sensor.measure_sync().to_dict()))
"""
    reading = json.loads(run(site, "-c", script).stdout)
    assert reading["metrics"]["acme_brevity"] == 0.75  # 3 of 4 messages have at most three words
    assert 0 < reading["metrics"]["goal_drift"] < 1
    assert reading["coverage"] == 1.0
    assert reading["errors"] == []


def test_plugin_package_it_keeps_the_contract_that_the_built_ins_keep(site: Path) -> None:
    script = """
from acme_coherence import Brevity
from coherence.testing import checks_for
checks = list(checks_for(Brevity()))
for check in checks:
    check()
print(len(checks))
"""
    assert int(run(site, "-c", script).stdout) >= 6


def test_plugin_package_the_command_lists_it_and_the_broken_one(site: Path) -> None:
    rows = {row["name"]: row for row in json.loads(run(site, "-m", "coherence", "metrics", "--json").stdout)}
    assert rows["acme_brevity"]["origin"] == "acme-coherence"
    assert rows["acme_brevity"]["direction"] == "high is good"
    assert rows["acme_brevity"]["summary"].startswith("Share of recent messages of at most three words.")
    assert "RuntimeError: acme needs a licence" in rows["acme_broken"]["summary"]

    table = run(site, "-m", "coherence", "metrics").stdout
    assert "acme_brevity" in table
    assert "acme needs a licence" in table
    assert "goal_drift" in table
