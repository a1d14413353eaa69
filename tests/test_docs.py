"""The documents hold: every Python block and every command runs, and the reference is complete."""

from __future__ import annotations

import ast
import os
import re
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from click.testing import CliRunner

from coherence import Monitor
from coherence.cli.main import main
from coherence.core.registry import Group, shipped

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCKS = {page: re.findall(r"^```(python|sh)\n(.*?)^```", page.read_text("utf-8"), re.M | re.S) for page in PAGES}

PATH = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
"""Finds the command of the environment that runs the tests."""

RUN_ALL = """
import sys
for number, text in enumerate(sys.stdin.read().split(chr(0))):
    exec(compile(text, f"block {number}", "exec"), {"__name__": "__main__"})
"""


def of_pages(language: str) -> list[ParameterSet]:
    return [
        pytest.param(
            [text for each, text in blocks if each == language],
            id=str(page.relative_to(ROOT)),
            marks=() if page.name == "README.md" else pytest.mark.slow,
        )
        for page, blocks in BLOCKS.items()
        if language in dict(blocks)
    ]


@pytest.mark.parametrize("blocks", of_pages("python"))
def test_docs_the_python_blocks_of_a_document_run(blocks: list[str], tmp_path: Path) -> None:
    """One process runs them all, each in a namespace of its own."""
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    result = subprocess.run(
        [sys.executable, "-c", RUN_ALL],
        input="\0".join(blocks),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": PATH, "PYTHONWARNINGS": "error"},
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize("blocks", of_pages("sh"))
def test_docs_the_commands_of_a_document_run(
    blocks: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    # in which clients have their settings
    for folder in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(folder, str(tmp_path / folder))
    monkeypatch.setenv("COHERENCE_STATE", str(tmp_path / "state"))
    if "coherence purge" in "".join(blocks):  # of what is there already
        for agent, session in (("patient-17", "visit-1"), ("support", "visit-4")):
            Monitor(agent=agent, session=session, store="runs.db").close()
    for line in "".join(blocks).splitlines():
        command = line.split("  #")[0].strip()
        if not command.startswith("coherence "):
            check_elsewhere(command)
        elif set(command) & set("|<>$&;*~"):
            subprocess.run(["sh", "-c", command], env={**os.environ, "PATH": PATH}, check=True)
        else:
            result = CliRunner().invoke(main, shlex.split(command)[1:])
            assert result.exit_code == 0, f"{command}: {result.output}"


def check_elsewhere(command: str) -> None:
    """See that .ci/run runs what would run this suite within itself, or install."""
    if command.startswith("make "):
        target = command.split()[1]
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text("utf-8"), re.M)
        assert command in (ROOT / ".ci" / "run").read_text("utf-8")
    else:
        extra = re.fullmatch(r'pip install "coherence-sensor\[(.+)\]"', command)
        assert extra is not None, f"nothing runs {command!r}"
        project = (ROOT / "pyproject.toml").read_text("utf-8")
        assert f"\n{extra[1]} = [" in project
        installed = project + (ROOT / "Makefile").read_text("utf-8")  # by a target, or as a part of dev
        assert f"[{extra[1]}]" in installed


@pytest.mark.parametrize("group", ["metrics", "rules"])
def test_docs_every_shipped_metric_and_rule_has_a_row_in_the_reference(group: Group) -> None:
    text = (ROOT / "docs" / "reference" / f"{group}.md").read_text("utf-8")
    missing = [name for name in shipped(group) if f"| `{name}` |" not in text]
    assert not missing


def test_docs_every_exception_is_in_the_reference() -> None:
    text = (ROOT / "docs" / "reference" / "exceptions.md").read_text("utf-8")
    sources = [path.read_text("utf-8") for path in (ROOT / "coherence").rglob("*.py")]
    raised = {
        name for source in sources for name in re.findall(r"^class (\w+)\((?:Coherence|Lesson)Error", source, re.M)
    }
    internal = {"IndexMismatch", "IndexFileError"}  # caught within the package
    assert not {name for name in raised - internal if f"`{name}`" not in text}


def test_docs_every_setting_has_an_effect_in_words() -> None:
    """The settings reference is made from these docstrings: a field's own, or a parameter of its class."""
    tree = ast.parse((ROOT / "coherence" / "core" / "config.py").read_text("utf-8"))
    for settings in (node for node in tree.body if isinstance(node, ast.ClassDef)):
        text = ast.get_docstring(settings) or ""
        for field, after in pairwise([*settings.body, ast.Pass()]):
            if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                own = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
                assert own or f"\n{field.target.id} :" in text, f"{settings.name}.{field.target.id}"


def test_docs_pictures_are_small_and_shown() -> None:
    """Whoever clones waits for them: 150 kB each, 600 kB together, and none that no page shows."""
    shown = {
        (page.parent / target).resolve()
        for page in PAGES
        for target in re.findall(r"!\[[^]]*\]\((?!http)([^)#]+)", page.read_text("utf-8"))
    }
    pictures = {path for path in (ROOT / "docs").rglob("*") if path.suffix in (".png", ".svg")}
    assert pictures == shown
    sizes = {path.name: path.stat().st_size for path in pictures}
    assert max(sizes.values()) <= 150_000 and sum(sizes.values()) <= 600_000, sizes
    for path in pictures:  # a picture loads nothing from the network
        assert path.suffix != ".svg" or not re.search(r"(?:src|href|url)\W{1,3}https?:", path.read_text("utf-8"))


def test_docs_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
