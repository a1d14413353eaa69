"""Every Python block and every command of the documents runs."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from click import Group

from coherence.cli.main import main
from coherence.core.registry import available

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCKS = [
    pytest.param(language, text, id=f"{page.name}-{number}", marks=() if page.name == "README.md" else pytest.mark.slow)
    for page in PAGES
    for number, (language, text) in enumerate(
        re.findall(r"^```(python|sh)\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
    )
]


def run(command: list[str], folder: Path) -> None:
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", "")))
    result = subprocess.run(
        command, cwd=folder, capture_output=True, text=True, env={**os.environ, "PATH": path, "PYTHONWARNINGS": "error"}
    )
    assert result.returncode == 0, result.stdout + result.stderr


@pytest.mark.parametrize(("language", "text"), BLOCKS)
def test_docs_a_block_of_a_document_runs(language: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    if language == "python":
        run([sys.executable, "-c", text], tmp_path)
        return
    for line in text.splitlines():
        command = line.split("  #")[0].strip()
        if command.startswith("coherence "):
            run(["sh", "-c", command], tmp_path)
        else:
            check_elsewhere(command)


def check_elsewhere(command: str) -> None:
    """See that .ci/run runs what would run this suite within itself, or install."""
    if command.startswith("make "):
        target = command.split()[1]
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text("utf-8"), re.M)
        assert command in (ROOT / ".ci" / "run").read_text("utf-8")
    else:
        extra = re.fullmatch(r'pip install "coherence-sensor\[(.+)\]"', command)
        assert extra is not None, f"nothing runs {command!r}"
        assert f"\n{extra[1]} = [" in (ROOT / "pyproject.toml").read_text("utf-8")
        assert f"[{extra[1]}]" in (ROOT / "Makefile").read_text("utf-8")


def test_docs_every_command_and_option_is_documented() -> None:
    text = "".join(page.read_text("utf-8") for page in PAGES)
    assert isinstance(main, Group)
    for name, command in main.commands.items():
        assert f"coherence {name}" in text
        for parameter in command.params:
            for option in parameter.opts:
                if option.startswith("--"):
                    assert option in text, f"{option} of {name} is not in the documents"


def test_docs_every_metric_is_documented() -> None:
    text = (ROOT / "docs" / "reference" / "metrics.md").read_text("utf-8")
    for plugin in available("metrics"):
        if plugin.origin == "coherence-sensor":
            assert f"| `{plugin.name}` |" in text


def test_docs_links_lead_somewhere() -> None:
    for page in PAGES:
        for target in re.findall(r"\]\((?!http)([^)#]+)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"
