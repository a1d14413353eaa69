"""``coherence config``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from coherence.cli.main import main


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["config", *arguments])


@pytest.fixture(autouse=True)
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("COHERENCE_CONFIG", str(tmp_path / "user.toml"))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_check_says_what_was_checked(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    none = run("check")
    assert none.exit_code == 0 and none.stdout.startswith("no settings: no coherence.toml here")
    (project / "coherence.toml").write_text("[budget]\ncalls = 3\n")
    monkeypatch.setenv("COHERENCE__WINDOW", "9")
    assert run("check").stdout == f"{project / 'coherence.toml'}, COHERENCE__WINDOW: ok\n"


def test_check_names_the_line_of_everything_that_is_wrong(project: Path) -> None:
    (project / "coherence.toml").write_text("windw = 3\n[budget]\ncals = 3\n")
    found = run("check")
    assert (found.exit_code, found.stderr) == (1, "2 problems\n")
    first, second = found.stdout.splitlines()
    assert first == f"{project / 'coherence.toml'}:1: windw: there is no such setting; did you mean window?"
    assert second.startswith(f"{project / 'coherence.toml'}:3: budget.cals: ")
    other = project / "other.toml"
    other.write_text("window = \n")
    assert run("check", str(other)).stdout.startswith(f"{other}:1: not TOML")
    assert [each["place"] for each in json.loads(run("check", "--json").stdout)["problems"]] == [
        f"{project / 'coherence.toml'}:{line}" for line in (1, 3)
    ]


def test_show_prints_values_with_their_sources(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run("show").stdout == "the default settings count: coherence config show --all\n"
    (project / "coherence.toml").write_text("window = 9\n[budget]\ncalls = 3\n")
    monkeypatch.setenv("COHERENCE__BUDGET__CALLS", "4")
    rows = [line.split() for line in run("show").stdout.splitlines()]
    assert rows == [
        ["setting", "value", "source"],
        ["window", "9", f"{project / 'coherence.toml'}:1"],
        ["budget.calls", "4", "COHERENCE__BUDGET__CALLS"],
    ]
    assert len(run("show", "--all").stdout.splitlines()) > 50
    monkeypatch.setenv("COHERENCE__WINDOW", "many")
    failed = run("show")
    assert failed.exit_code == 1 and "COHERENCE__WINDOW: window: " in failed.stderr


def test_score_takes_the_settings_of_the_project_and_refuses_bad_ones(project: Path) -> None:
    said = [{"role": "user", "content": "Count."}, {"role": "assistant", "content": "It is 3."}]
    (project / "run.json").write_text(json.dumps({"messages": said}))
    (project / "coherence.toml").write_text("windw = 3\n")
    arguments = ["score", "run.json", "--embedder", "hashing"]
    refused = CliRunner().invoke(main, arguments)
    assert refused.exit_code == 2 and "coherence.toml:1: windw: " in refused.stderr
    (project / "coherence.toml").write_text("window = 3\n")
    assert CliRunner().invoke(main, arguments).exit_code == 0
