from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from coherence.cli.main import main
from guard.helpers import Memory
from guard.trails import Row, at, trail, written


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("verify")
    rows = trail(folder, Memory(), lambda level: 0.9 if level == 1 else 0.7, canary_share=0.5, canary_slice=30)
    (folder / "good.jsonl").write_bytes(written(rows).getvalue())
    place = at(rows, "ending", pause=False)
    bad: list[Row] = [*rows[:place], rows[place] | {"evidence": 1e6}, *rows[place + 1 :]]
    (folder / "bad.jsonl").write_bytes(written(bad).getvalue())
    (folder / "torn.jsonl").write_bytes(written(rows).getvalue()[:-7])
    (folder / "cut.jsonl").write_bytes(written(rows[3:]).getvalue())
    (folder / "empty.jsonl").touch()
    (folder / "hostile.jsonl").write_text('{"kind":"a\\u001b[31m\\nb","seq":1,"at":0}\n' * 3)
    return folder


def call(folder: Path, *arguments: str, stdin: bytes | None = None) -> Result:
    given = [str(folder / one) if "." in one else one for one in arguments]
    return CliRunner().invoke(main, ["guard", "verify", *given], input=stdin, catch_exceptions=False)


def test_verify_command_a_good_trail_is_told_in_a_table_of_80_columns(folder: Path) -> None:
    result = call(folder, "good.jsonl")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0].endswith("good.jsonl: VERIFIED")
    assert lines[2].split() == ["patch", "at", "rule", "metric", "evidence", "failed", "restored", "derived"]
    assert lines[3].split()[:4] == ["1", lines[3].split()[1], "sequential", "success"]
    assert lines[3].endswith("yes")
    assert max(map(len, lines[1:])) <= 80


@pytest.mark.parametrize(
    ("name", "status", "told"),
    [
        ("bad.jsonl", 1, "wrong, entry"),
        ("cut.jsonl", 1, "UNKNOWN"),
        ("torn.jsonl", 2, "unreadable: line"),
        ("empty.jsonl", 2, "there is no entry"),
        ("hostile.jsonl", 1, "its number does not follow"),
    ],
)
def test_verify_command_the_status_says_what_was_found(folder: Path, name: str, status: int, told: str) -> None:
    result = call(folder, name)
    assert (result.exit_code, told in result.stdout) == (status, True), result.stdout
    assert "\x1b" not in result.stdout
    both = call(folder, "good.jsonl", name)
    assert (both.exit_code, "VERIFIED" in both.stdout) == (status, True)  # the others all the same


def test_verify_command_a_store_and_standard_input_are_read(folder: Path) -> None:
    result = call(folder, "guard.db", "--agent", "a", "--json")
    (found,) = json.loads(result.stdout)
    assert (result.exit_code, found["trail"], found["verdict"]) == (0, f"{folder / 'guard.db'}, agent a", "verified")
    result = call(folder, "-", "--json", stdin=(folder / "good.jsonl").read_bytes())
    (again,) = json.loads(result.stdout)
    assert again == found | {"trail": "standard input"}
    assert found["rollbacks"][0]["derived"] == "yes"
    (torn,) = json.loads(call(folder, "torn.jsonl", "--json").stdout)
    assert (torn["verdict"], "line" in torn["error"]) == ("unreadable", True)


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["guard.db", "--agent", "nobody"], "no agent under guard is called 'nobody'; known: a"),
        (["good.jsonl", "--agent", "a"], "no TRAIL is a store"),
        (["missing.jsonl"], "no such file"),
        ([], "Missing argument"),
    ],
)
def test_verify_command_bad_usage_is_told(folder: Path, arguments: list[str], told: str) -> None:
    result = call(folder, *arguments)
    assert result.exit_code == 2
    assert told in result.output


def test_verify_command_what_was_exported_is_what_is_verified(folder: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"catch_exceptions": False}
    file = tmp_path / "out.jsonl"
    export = ["guard", "export", "a", str(file), "--store", str(folder / "guard.db")]
    assert CliRunner().invoke(main, export, **options).exit_code == 0
    assert file.read_bytes().splitlines() != []
    assert CliRunner().invoke(main, ["guard", "verify", str(file)], **options).exit_code == 0
