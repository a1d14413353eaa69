"""``coherence mcp`` as it is called wrongly; what it does is tested beside ``coherence.integrations.mcp``."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from coherence.cli.main import main


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["mcp", *arguments])


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--proxy"], "name the server: --proxy COMMAND [ARGS]..."),
        (["server"], "COMMAND needs --proxy"),
        (["--proxy", "--http", "8000", "server"], "a proxy speaks on its standard input and output: leave out --http"),
        (["--goal", "Find tea."], "--goal and --config are for --proxy"),
        (["--http", "0"], "0 is not in the range 1<=x<=65535"),
        (["--proxy", "--config", "missing.toml", "server"], "'missing.toml' does not exist"),
    ],
)
def test_mcp_says_what_is_wrong_with_its_options(arguments: list[str], told: str) -> None:
    done = run(*arguments)
    assert done.exit_code == 2 and told in " ".join(done.stderr.split())


def test_mcp_names_the_key_of_a_bad_setting(tmp_path: Path) -> None:
    config = tmp_path / "coherence.toml"
    config.write_text("[budget]\ncalls = -1\n")
    done = run("--proxy", "--config", str(config), "server")
    assert done.exit_code == 2 and "calls" in done.stderr


@pytest.mark.skipif(importlib.util.find_spec("mcp") is not None, reason="the extra is installed")
def test_mcp_without_the_extra_names_the_line_that_installs_it(tmp_path: Path) -> None:
    done = run("--store", str(tmp_path / "a.db"))
    assert done.exit_code == 1 and 'pip install "coherence-sensor[mcp]"' in done.stderr
