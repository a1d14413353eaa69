"""``coherence guard rollback``, ``approve`` and ``decline``: what a person asks for takes place in another process."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from guard.helpers import Proposes, call

from cli.refusals import complaint
from coherence.cli.main import main
from coherence.guard import Guard

ADAPTER = """
import json, pathlib
FILE = pathlib.Path(__file__).with_name("settings.json")
class Settings:
    def get_config(self, *, agent_id):
        return json.loads(FILE.read_text())
    def apply_config(self, *, agent_id, config_patch):
        FILE.write_text(json.dumps({**json.loads(FILE.read_text()), **config_patch}))
        return True
    def rollback_config(self, *, agent_id, backup_config):
        FILE.write_text(json.dumps(backup_config))
settings = Settings()
class Stuck(Settings):
    def rollback_config(self, *, agent_id, backup_config):
        raise OSError("read-only file system")
class Later(Settings):
    async def rollback_config(self, *, agent_id, backup_config):
        pass
"""
LIVE = """
import sys
from adapter import settings
from coherence.guard import Guard
from coherence.guard.bounds import Bound
from coherence.guard.bounds import Bounds
class Proposes:
    def analyze(self, **asked):
        return {"level": 2}
calls, auto = int(sys.argv[1]), sys.argv[2] == "auto"
bounds = Bounds({"level": Bound(least=0, most=9)}, auto_apply=auto)
with Guard(store="guard.db", strategy=Proposes(), config_adapter=settings, bounds=bounds, canary_slice=10000) as guard:
    for number in range(calls):
        try:
            guard.run(lambda: 1 / (number % 2), agent="support")
        except ZeroDivisionError:
            pass
    guard.flush()
    print(guard.status("support").phase, flush=True)
    sys.stdin.readline()
"""


def run(*arguments: str | Path | int) -> Result:
    return CliRunner().invoke(main, ["guard", *map(str, arguments)])


def read(*arguments: str | int) -> Any:
    """Return what a command prints as JSON."""
    return json.loads(run(*arguments, "--json").stdout)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with an adapter that keeps its settings in a file, and a program that uses it."""
    monkeypatch.setenv("COHERENCE_STORE", str(tmp_path / "guard.db"))
    (tmp_path / "adapter.py").write_text(ADAPTER, "utf-8")
    (tmp_path / "live.py").write_text(LIVE, "utf-8")
    (tmp_path / "settings.json").write_text('{"level": 1, "model": "a"}', "utf-8")
    return tmp_path


def level(folder: Path) -> int:
    return int(json.loads((folder / "settings.json").read_text("utf-8"))["level"])


@contextmanager
def another(folder: Path, calls: int, *, auto: bool = True) -> Iterator[str]:
    """Run calls in another process, which stays until this ends; yields the phase then."""
    command = [sys.executable, "live.py", str(calls), "auto" if auto else "asks"]
    with subprocess.Popen(command, cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.stdin.close()
            assert process.wait(60) == 0


def command(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process of its own."""
    return subprocess.run(
        [sys.executable, "-m", "coherence", "guard", *arguments],
        cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, env={**os.environ, "COLUMNS": "80"},
        check=False,
    )  # fmt: skip


@pytest.mark.slow
def test_guard_requests_a_rollback_takes_place_in_the_process_with_the_adapter(folder: Path) -> None:
    with another(folder, 30) as phase:
        assert (phase, level(folder)) == ("serving", 2)
        done = command(folder, "rollback", "support", "--why", "answers got shorter", "--wait", "60")
        assert (done.returncode, level(folder)) == (0, 1), done.stderr
    assert done.stdout.splitlines() == [
        "patch 1 of support (level 1 -> 2) goes, and this comes back:",
        "    level: 2 -> 1",
        "done: the configuration before the patch is in force",
    ]
    found = read("patches", "support", 1)
    assert (found["outcome"], found["why"]) == ("rolled back", "answers got shorter")


@pytest.mark.slow
def test_guard_requests_a_rollback_that_nobody_can_do_is_done_later(folder: Path) -> None:
    with another(folder, 30) as phase:
        assert phase == "serving"
    asked = command(folder, "rollback", "support", "--wait", "0.2")
    assert (asked.returncode, level(folder)) == (1, 2) and "nobody has taken it up yet" in asked.stderr
    assert "asked for rolling back patch 1, " in " ".join(run("status", "support").stdout.split())
    with another(folder, 1):
        done = command(folder, "rollback", "support", "--wait", "60")
    assert level(folder) == 1 and read("patches", "support", 1)["outcome"] == "rolled back"
    assert done.returncode in (0, 2)  # 2: it had been rolled back before this asked


@pytest.mark.slow
def test_guard_requests_a_rollback_by_an_adapter(folder: Path) -> None:
    with another(folder, 30) as phase:
        assert phase == "serving"
    (folder / "settings.json").write_text('{"level": 7, "model": "b"}', "utf-8")  # a person has changed it meanwhile
    failed = command(folder, "rollback", "support", "--adapter", "adapter:Stuck", "--wait", "0")
    assert failed.returncode == 1 and "not restored: the adapter failed: OSError" in failed.stderr
    assert level(folder) == 7 and read("patches", "support", 1)["outcome"] == "restore failed"
    done = command(folder, "rollback", "support", "--adapter", "adapter:settings", "--wait", "60")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[1:] == [
        "    level: 7 -> 1",
        "done: the configuration before the patch is in force",
    ]
    assert json.loads((folder / "settings.json").read_text("utf-8")) == {"level": 1, "model": "b"}
    assert command(folder, "rollback", "support", "--adapter", "adapter:settings").returncode == 2


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("adapter", "is not MODULE:NAME"),
        ("nowhere:settings", "ModuleNotFoundError"),
        ("adapter:nothing", "AttributeError"),
        ("adapter:json", "TypeError: 'module' object is not callable"),
        ("builtins:dict", "a dict has no method get_config"),
        ("sys:exit", "SystemExit"),
        ("adapter:Later", "rollback_config must not be async"),
    ],
)
def test_guard_requests_a_bad_adapter_is_named(folder: Path, name: str, why: str) -> None:
    with another(folder, 30):
        pass
    found = command(folder, "rollback", "support", "--adapter", name)
    assert found.returncode == 2 and why in found.stderr and "Traceback" not in found.stderr
    assert level(folder) == 2


@pytest.mark.slow
def test_guard_requests_a_patch_is_approved(folder: Path) -> None:
    with another(folder, 30, auto=False) as phase:
        assert (phase, level(folder)) == ("idle", 1)
        done = command(folder, "approve", "support", "--wait", "60")
        assert (done.returncode, level(folder)) == (0, 2), done.stderr
    assert done.stdout.splitlines()[-1] == "done: it is on trial"
    assert "no patch of 'support' waits" in complaint(run("approve", "support"))


def test_guard_requests_a_patch_is_declined(folder: Path) -> None:
    with Guard(store=folder / "guard.db", strategy=Proposes({"level": 2})) as guard:
        call(guard, 2, fails=True, agent="support")  # without bounds a patch waits for a person
    done = run("decline", "support", "--why", "not now")
    assert (done.exit_code, done.stdout) == (0, "patch 1 of support (level 2) is declined\n")
    found = read("patches", "support", 1)
    assert (found["outcome"], found["why"]) == ("declined", "not now")
    assert "no patch of 'support' waits" in complaint(run("decline", "support"))


def test_guard_requests_a_person_at_a_terminal_is_asked(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with another(folder, 30):
        pass
    monkeypatch.chdir(folder)
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda stream: stream.name == "<stdin>")
    rollback = ["guard", "rollback", "support", "--adapter", "adapter:settings"]
    for answer, status, left in (("n", 1, 2), ("y", 0, 1)):
        found = CliRunner().invoke(main, rollback, input=answer)
        assert "Restore the configuration before it? [y/N]" in found.output
        assert (found.exit_code, level(folder)) == (status, left), found.output


@pytest.mark.slow
def test_guard_requests_a_person_s_own_patch_goes_on_trial(folder: Path) -> None:
    with another(folder, 1) as phase:
        assert (phase, level(folder)) == ("idle", 1)
        done = command(folder, "propose", "support", '{"level": 3}', "--why", "mine", "--wait", "60")
        assert (done.returncode, level(folder)) == (0, 3), done.stderr
        again = command(folder, "propose", "support", '{"level": 4}')
        assert again.returncode == 1 and "a patch is on trial, or approved, already" in again.stderr
    assert done.stdout.splitlines() == ["patch 1 of support (level 3) is to go on trial", "done: it is on trial"]
    assert "a person wants a patch on trial: level 3 (mine)" in run("history", "support").stdout


@pytest.mark.slow
def test_guard_requests_the_bounds_of_the_process_with_the_adapter_refuse_a_person_s_patch(folder: Path) -> None:
    (folder / "patch.json").write_text('{"level": 12}', "utf-8")
    with another(folder, 1):
        done = command(folder, "propose", "support", "@patch.json", "--wait", "60")
    assert done.returncode == 1 and "not applied: level = 12 is refused by range" in done.stderr
    assert level(folder) == 1


def test_guard_requests_a_bad_patch_is_named(folder: Path) -> None:
    with Guard(store=folder / "guard.db") as guard:
        call(guard, 1, agent="support")
    for patch, why in (
        ("level=2", "no JSON"),
        ("[1]", "must be a JSON object"),
        ("{}", "is empty"),
        ('{"level": NaN}', "plain JSON"),
        ("@nowhere.json", "No such file"),
        ("[" * 100_000, "no JSON"),
    ):
        assert why in complaint(run("propose", "support", patch)), patch[:20]
        assert read("patches", "support") == []
