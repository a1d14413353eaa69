"""The installation holds what it should, and importing costs little."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

import coherence
import coherence.guard

ROOT = Path(__file__).resolve().parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
HEAVY = ("numpy", "onnxruntime", "tokenizers", "faiss", "torch", "sentence_transformers", "rich", "click", "msgspec")
UNUSED = ("click", "faiss", "filelock", "huggingface_hub", "httpx2", "jinja2", "rapidfuzz", "rich", "torch", "yaml")


def python(code: str) -> str:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment, cwd=ROOT / "docs"
    )
    return result.stdout.strip()


def test_packaging_every_package_is_listed_for_the_wheel() -> None:
    listed = set(PROJECT["tool"]["setuptools"]["packages"])
    places = {"coherence": "coherence", **PROJECT["tool"]["setuptools"]["package-dir"]}
    found = set()
    for name, place in places.items():
        for init in (ROOT / place).rglob("__init__.py"):
            parts = init.parent.relative_to(ROOT / place).parts
            if name == "coherence" and parts and (ROOT / place / parts[0]).is_symlink():
                continue
            found.add(".".join((name, *parts)))
    assert listed == found


def test_packaging_every_data_file_of_the_package_is_in_the_wheel() -> None:
    listed = PROJECT["tool"]["setuptools"]["package-data"]
    tracked = subprocess.run(["git", "ls-files", "coherence"], cwd=ROOT, capture_output=True, text=True, check=True)
    data = [ROOT / name for name in tracked.stdout.split() if not name.endswith(".py") and (ROOT / name).is_file()]
    assert ROOT / "coherence/cli/schemas/score.json" in data
    shipped = {
        path
        for package, patterns in listed.items()
        for pattern in patterns
        for path in (ROOT / package.replace(".", "/")).glob(pattern)
    }
    assert [path for path in data if path not in shipped] == []


def test_packaging_the_links_lead_to_the_mapped_folders() -> None:
    for name, place in PROJECT["tool"]["setuptools"]["package-dir"].items():
        if name != "coherence":
            link = ROOT / name.replace(".", "/")
            assert link.is_symlink()
            assert link.resolve() == ROOT / place
            assert not os.readlink(link).startswith("/")


def test_packaging_nothing_is_installed_at_top_level_under_the_names_of_the_two_folders() -> None:
    importlib.import_module("coherence.metrics")
    importlib.import_module("coherence.providers")
    assert "metrics" not in sys.modules
    assert "providers" not in sys.modules
    found = python("import importlib.util as u; print([u.find_spec(name) for name in ('metrics', 'providers')])")
    assert found == "[None, None]"


STAGES: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("import coherence", HEAVY),
    ("from coherence.guard import Bound", ("numpy", "coherence.guard.guard", "coherence.monitor.monitor")),
    (
        "from coherence import CoherenceSensor; from coherence.providers import StaticState\n"
        "CoherenceSensor(StaticState()).measure_sync()",
        ("onnxruntime", "tokenizers", "torch", "faiss"),
    ),
    (
        "from coherence import Monitor; m = Monitor(goal='List the files')\n"
        "m.message('user', 'List the files'); m.check('Bash', {'command': 'ls'}); m.decide(); m.flush()",
        UNUSED,
    ),
)
"""Uses of the package, each heavier than the one before, and what none of them needs to load."""


def test_packaging_nothing_is_loaded_before_it_is_used() -> None:
    shown = "print([name for name in {} if name in sys.modules])"
    steps = (f"{use}\n{shown.format(unneeded)}" for use, unneeded in STAGES)
    assert python("import sys\n" + "\n".join(steps)).splitlines() == ["[]"] * len(STAGES)


@pytest.mark.parametrize("package", [coherence, coherence.guard], ids=["coherence", "coherence.guard"])
def test_packaging_every_public_name_is_there_and_sorted(package: Any) -> None:
    assert package.__all__ == sorted(package.__all__)
    assert set(package.__all__) == set(package._HOME)
    for name in package.__all__:
        assert getattr(package, name) is getattr(importlib.import_module(package._HOME[name]), name)
    assert set(package.__all__) <= set(dir(package))
    with pytest.raises(AttributeError, match="no attribute 'Sensor'"):
        package.Sensor  # noqa: B018  # the access is the test


def test_packaging_the_version_is_the_projects() -> None:
    assert coherence.__version__ == PROJECT["project"]["version"]


@pytest.mark.parametrize("package", [coherence, coherence.guard], ids=["coherence", "coherence.guard"])
def test_type_checkers_see_the_same_public_names(package: Any) -> None:
    tree = ast.parse(Path(package.__file__).read_text(encoding="utf-8"))
    guard = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {name.name: node.module for node in guard.body if isinstance(node, ast.ImportFrom) for name in node.names}
    assert seen == package._HOME


@pytest.mark.parametrize("module", ["coherence.metrics", "coherence.providers", "coherence.sensor"])
def test_packaging_the_rooms_list_what_they_export(module: str) -> None:
    room = importlib.import_module(module)
    assert room.__all__ == sorted(room.__all__)
    for name in room.__all__:
        assert getattr(room, name).__doc__


@pytest.mark.slow
def test_packaging_inside_the_package_names_are_imported_from_where_they_are_defined() -> None:
    offenders = []
    for folder in ("coherence", "metrics", "providers"):
        for path in (ROOT / folder).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ImportFrom) and node.module == "coherence":
                    offenders.append(str(path))
    assert offenders == []


def test_packaging_every_dependency_is_justified() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for line in text[text.index("dependencies = [") : text.index("[project.scripts]")].splitlines():
        if line.startswith('  "'):
            assert "# " in line, line


def test_packaging_the_project_stands_alone() -> None:
    result = subprocess.run(
        ["git", "grep", "-lE", r"\.\./shared|/(root|work)/"], cwd=ROOT, capture_output=True, text=True
    )
    assert [name for name in result.stdout.split() if name != "tests/test_packaging.py"] == []


def test_packaging_every_module_stands_in_a_room() -> None:
    loose = {path.name for path in (ROOT / "coherence").glob("*.py")}
    assert loose == {"__init__.py", "__main__.py"}


def test_packaging_contributing_names_every_room() -> None:
    rooms = {path.parent.name for path in (ROOT / "coherence").glob("*/__init__.py")}
    named = set(re.findall(r"`(\w+)/`", (ROOT / "CONTRIBUTING.md").read_text("utf-8")))
    assert rooms - named == set()
