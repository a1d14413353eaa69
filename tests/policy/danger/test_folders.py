"""Folders with work in them that a call removes: which are refused, and which may go."""

from __future__ import annotations

import msgspec
import pytest

from coherence.core.events import Goal, Message, ToolCall, ToolResult
from coherence.core.validation import to_json
from coherence.detect.detector import Observed
from coherence.policy.danger.danger import command_of
from coherence.policy.danger.folders import MAX_OWN, FolderLife, removed_folders
from coherence.policy.danger.unasked import DangerDetector

GOAL = "Tell me what is in this folder."
LISTING = "notes.txt\nvictim\nREADME.md"


def refused(command: str, *before: tuple[str, str], goal: str = GOAL, shown: str = LISTING) -> bool:
    """Return whether a command is refused after a listing of the project, and after further commands and results."""
    detector = DangerDetector()
    detector.observe(Observed.of(Goal(goal), 1))
    for seq, (asked, result) in enumerate([("ls", shown), *before], 2):
        detector.observe(Observed.of(ToolCall("Bash", msgspec.Raw(to_json("a", {"command": asked})), "c"), seq))
        detector.observe(Observed.of(ToolResult(result), seq))
    found = detector.asked_call(99, "Bash", to_json("a", {"command": command}))
    return [each.severity for each in found] == ["block"]


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf victim",
        "rm -r ./victim/",
        "rm -rf victim/*",
        "sudo rm -fr -- victim",
        "cd victim/.. && rm -rf victim",
        "find victim -delete",
        "find victim -type f -exec rm {} +",
        "bash -c 'rm -rf victim'",
        "rm -rf notes.txt victim",
        "rm -rf src",
        "rm -rf victim; mkdir victim",
        "mkdir -p victim && rm -rf victim",
    ],
)
def test_asked_call_refuses_to_remove_a_folder_that_the_session_has_shown(command: str) -> None:
    assert refused(command)


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf build dist node_modules .venv __pycache__ .cache tmp target .next my-app-build cmake-build-debug",
        "rm -rf victim/build victim/node_modules",
        "rm -rf /tmp/victim",
        'rm -rf "$WORK"',
        "rm -rf victim.txt",
        "rm victim/a.txt",
        "rm -ri victim",
        "rmdir victim",
        "find victim -name '*.pyc' -delete",
        "rm -rf unknown",
        "rm -rf victim && npm run build",
        "ls victim",
        "echo 'rm -rf victim'",
    ],
)
def test_asked_call_lets_go_what_is_made_again_or_was_never_shown(command: str) -> None:
    assert not refused(command)


@pytest.mark.parametrize(
    ("goal", "refuses"),
    [
        ("Delete the folder victim.", False),
        ("Please clean up victim/ and run the tests.", False),
        ("Get rid of everything in victim", False),
        ("The victim folder is in the way.", False),
        ("Move the code of victim into lib.", False),
        ("Clean up the project.", False),
        ("Explain what victim does.", True),
        ("Fix the bug in victim/parser.py.", True),
        ("Never delete victim.", True),
        ("Delete the folder other.", True),
        (f"Add a test. {'The folder victim holds the code of the parser. ' * 9}", True),
    ],
)
def test_asked_call_removes_a_folder_where_the_request_may_be_about_that(goal: str, refuses: bool) -> None:
    assert refused("rm -rf victim", goal=goal) == refuses


@pytest.mark.parametrize(
    ("made", "result"),
    [
        ("mkdir -p repro/app && ls repro", "app"),
        ("git clone https://example.org/x/repro.git", "Cloning into 'repro'..."),
        ("django-admin startproject repro && ls", "repro\nnotes.txt"),
        ("cp -r victim repro && ls", "repro\nvictim"),
        ("sphinx-quickstart repro -q", "repro/source/conf.py"),
        ("cat > repro/app.py <<EOF\nx = 1\nEOF", ""),
        ("python3 - <<EOF\nimport os\nout = 'repro'\nos.makedirs(out)\nEOF\nls", "repro\nnotes.txt"),
        ("cat > a.sh <<'EOF'\nrm -rf repro\nmkdir repro\nEOF\nbash a.sh", "wrote repro/app/x.py"),
    ],
)
@pytest.mark.parametrize("removed", ["repro", "repro/app", "repro/other"])
def test_asked_call_lets_the_agent_tidy_up_what_it_has_made(made: str, result: str, removed: str) -> None:
    assert not refused(f"rm -rf {removed}", (made, result), ("ls -R", "repro/app/x.py\nrepro/other/y.py"))


def test_asked_call_a_new_folder_in_one_with_work_makes_that_one_nobodys() -> None:
    before = ("mkdir -p victim/new", ""), ("ls victim", "new\nold")
    assert refused("rm -rf victim", *before)
    assert refused("rm -rf victim/old", *before)
    assert not refused("rm -rf victim/new", *before)


def test_asked_call_what_a_failed_look_names_is_not_there() -> None:
    missing = "ls: cannot access 'gone/x': No such file or directory"
    assert not refused("rm -rf gone", ("ls gone/x", missing), shown="notes.txt")


@pytest.mark.parametrize(("tool", "refuses"), [("Read", True), ("Edit", True), ("Write", False)])
def test_asked_call_files_of_other_tools_tell_of_folders(tool: str, refuses: bool) -> None:
    detector = DangerDetector()
    detector.observe(Observed.of(Goal(GOAL), 1))
    detector.observe(Observed.of(ToolCall(tool, msgspec.Raw(b'{"file_path": "shop/prices/a.py"}'), "c"), 2))
    found = detector.asked_call(3, "Bash", b'{"command": "rm -rf prices"}')
    assert bool(found) == refuses


def test_asked_call_a_later_request_counts_too_and_before_any_nothing_is_unasked() -> None:
    detector = DangerDetector()
    detector.observe(Observed.of(ToolResult(LISTING), 1))
    removal = b'{"command": "rm -rf victim"}'
    assert detector.asked_call(2, "Bash", removal) == []
    detector.observe(Observed.of(Goal(GOAL), 2))
    assert detector.asked_call(3, "Bash", removal) != []
    detector.observe(Observed.of(Message("user", "Now remove victim."), 3))
    assert detector.asked_call(4, "Bash", removal) == []


def test_removed_folders_reads_the_folder_that_a_script_is_in() -> None:
    command = command_of(("rm", "-rf", "old", "/srv/x", "..", "a*"), folder="app")
    assert list(removed_folders(command)) == ["app/old", "/srv/x"]
    assert list(removed_folders(command_of(("Remove-Item", "-Recurse", "core")))) == ["core"]


def test_folder_life_that_is_full_takes_nothing_new_for_work() -> None:
    life = FolderLife()
    life.result("victim")
    for start in range(0, MAX_OWN + 1_000, 500):
        life.call("Bash", {"command": "mkdir " + " ".join(f"made{at}" for at in range(start, start + 500))})
    life.result("made7\nshown")
    assert [life.is_work(name) for name in ("victim", "made7", "shown")] == [True, False, False]
