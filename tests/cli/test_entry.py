"""What the command says of itself is what click would say, and takes neither click nor any command."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from click.testing import CliRunner

import coherence
from coherence.cli.main import main

WATCHED = ["numpy", "click", "coherence.cli.main"]


def run(*arguments: str, columns: int = 80) -> subprocess.CompletedProcess[str]:
    """Run the command as ``python -m`` does, and have it tell which modules it has loaded."""
    code = (
        "import sys, atexit\n"
        f"sys.argv = ['coherence', *{arguments!r}]\n"
        f"atexit.register(lambda: print([name for name in {WATCHED!r} if name in sys.modules], file=sys.stderr))\n"
        "from coherence.cli.entry import run\n"
        "run('coherence')"
    )
    environment = {**os.environ, "COLUMNS": str(columns)}
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment)


@pytest.mark.parametrize("asked", ["--help", "-h"])
def test_run_the_help_is_what_click_makes_of_the_commands(asked: str) -> None:
    """Where this fails, ``coherence/cli/help.txt`` is to hold what is expected here."""
    said = run(asked)
    expected = CliRunner().invoke(main, ["--help"], prog_name="coherence", terminal_width=78).stdout  # of 80
    assert said.stdout == expected and said.returncode == 0
    assert said.stderr.strip() == "[]"


def test_run_the_help_names_what_the_user_has_called() -> None:
    command = [sys.executable, "-m", "coherence", "--help"]
    said = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "COLUMNS": "200"})
    assert said.stdout.startswith("Usage: python -m coherence [OPTIONS] COMMAND [ARGS]...\n")


def test_run_on_a_narrow_terminal_click_makes_the_help() -> None:
    said = run("--help", columns=60)
    assert "click" in said.stderr and max(map(len, said.stdout.splitlines())) <= 58  # click leaves two free


def test_run_the_version() -> None:
    said, expected = run("--version"), CliRunner().invoke(main, ["--version"]).stdout
    assert said.stdout == expected == f"coherence, version {coherence.__version__}\n"
    assert said.stderr.strip() == "[]"


def test_run_everything_else_is_clicks() -> None:
    said = run("scor")
    assert said.returncode == 2 and "No such command 'scor'" in said.stderr
    assert run("metrics", "--help").stdout.startswith("Usage: ")
