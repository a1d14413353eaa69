"""``coherence lessons``, as a user runs it."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cli.refusals import complaint
from coherence.cli.main import main
from coherence.lessons import LessonStore, Origin
from coherence.providers import HashingEmbedder

YAML = "ModuleNotFoundError: No module named 'yaml'"
EMBEDDED = ("add", "search", "import", "rebuild", "stats")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return where commands look for the store, with one lesson in it."""
    found = tmp_path / "runs.db"
    monkeypatch.setenv("COHERENCE_STORE", str(found))
    with LessonStore(found, embedder=HashingEmbedder()) as store:
        origin = Origin("builder", "s1", (3, 6, 9))
        id = store.record(
            pattern="NoModule", error_text=YAML, fix_text="pip install pyyaml", tool="Bash", origin=origin, ts=86_400
        )
        store.outcome(id, helped=True)
    return found


def run(command: str, *arguments: str | Path, input: str | bytes | None = None) -> Result:
    model = ["--embedder", "hashing"] if command in EMBEDDED and "--embedder" not in arguments else []
    return CliRunner().invoke(main, ["lessons", command, *map(str, arguments), *model], input=input)


def test_lessons_a_lesson_is_added_and_found(path: Path) -> None:
    added = run(
        "add", "--pattern", "Git", "--error", "fatal: not a git repository", "--fix", "git init", "--tool", "Bash"
    )
    assert (added.exit_code, added.stdout) == (0, "2\n")
    found = run("search", "fatal: not a git repository", "--tool", "Bash")
    line, error, fix = found.stdout.splitlines()
    assert line.startswith("2  similarity ") and "(exact)" in line and line.endswith("Bash  Git")
    assert (error, fix) == ("    error: fatal: not a git repository", "    fix: git init")
    long = (
        "Traceback (most recent call last):\n" + '  File "app.py", line 3, in load\n' * 20 + "ValueError: no such lever"
    )
    run("add", "--pattern", "p", "--error", long, "--fix", "f")
    assert "    error: ValueError: no such lever\n" in run("search", long).stdout
    (row,) = json.loads(run("search", "-", "--json", "-k", "1", input=f"{YAML}\n").stdout)
    assert (row["id"], row["fix_text"], row["match"], row["helped"]) == (1, "pip install pyyaml", "exact", 1)


def test_lessons_an_error_comes_from_a_file(path: Path, tmp_path: Path) -> None:
    file = tmp_path / "error.log"
    file.write_bytes(b"caf\xe9\n" * 2_000_000 + b"ValueError: bad thing\n")  # 10 MB that are no UTF-8
    assert run("add", "--pattern", "p", "--error-file", file, "--fix", "f").stdout == "2\n"
    assert run("search", "ValueError: bad thing", "--json").stdout != "[]\n"
    file.write_bytes(b"\x7fELF\0\0\0")
    assert "not text" in complaint(run("add", "--pattern", "p", "--error-file", file, "--fix", "f"))
    assert "not text" in complaint(run("search", "-", input=b"\0\1\2"))


def test_lessons_lessons_are_added_from_json(path: Path) -> None:
    one = {"pattern": "p", "error_text": "boom: lever 7", "fix_text": "pull it"}
    assert run("add", input=json.dumps(one, indent=1)).stdout == "2\n"
    lines = "\n".join(json.dumps(each) for each in (one, {**one, "error": "x", "error_text": None}, {"pattern": "p"}))
    result = run("add", "--json", input=lines)
    assert (result.exit_code, json.loads(result.stdout)) == (1, [2, 3])  # what was known counts once more
    assert result.stderr == "error: <stdin>:3: error_text is missing\n"
    assert json.loads(run("show", "2", "--json").stdout)["count"] == 2
    assert "no lessons" in complaint(run("add", input=""))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--fix", "f"], "--error"),
        (["--error", "e", "--fix", "f"], "--pattern"),
        (["--error", "e", "--pattern", "p"], "--fix"),
        (["--error", "  ", "--pattern", "p", "--fix", "f"], "error_text must not be empty"),
        (["--error", "e", "--pattern", "p", "--fix", ""], "fix_text must not be empty"),
        (["--error", "e", "--error-file", "-", "--pattern", "p", "--fix", "f"], "one of them"),
        (["--error", "e", "--pattern", "p", "--fix", "f", "--embedder", "nothing"], "nothing"),
        (["--error", "e", "--pattern", "p", "--fix", "f", "--store", "/dev/null/x.db"], "/dev/null/x.db"),
    ],
)
def test_lessons_a_bad_lesson_is_refused(path: Path, arguments: list[str], said: str) -> None:
    assert said in complaint(run("add", *arguments))


def test_lessons_lone_surrogates_are_replaced(path: Path) -> None:
    assert run("add", "--pattern", "a\udcff", "--error", "\udcff is bad", "--fix", "\udcfe").exit_code == 0
    assert json.loads(run("show", "2", "--json").stdout)["error_text"] == "\ufffd is bad"
    assert run("search", "\udcff\ud800").exit_code == 0


def test_lessons_lessons_are_listed(path: Path) -> None:
    run("add", "--pattern", "Git", "--error", "fatal: not a git repository", "--fix", "git init\ngit add .")
    head, newest, oldest = run("list").stdout.splitlines()
    assert "similarity" not in head
    assert newest.endswith("git init git add .") and oldest.startswith("1   1970-01-02  1      1 of 1  Bash")
    assert len(run("list", "--limit", "1").stdout.splitlines()) == 2
    assert [row["id"] for row in json.loads(run("list", "--json", "--pattern", "NoModule").stdout)] == [1]
    assert run("list", "--pattern", "none").stdout == "no lessons\n"


def test_lessons_a_lesson_is_shown(path: Path) -> None:
    text = run("show", "1").stdout
    assert "learned in  builder/s1, events 3, 6, 9" in text
    assert "once, from 1970-01-02 00:00:00" in text and "1 of 1" in text
    assert text.endswith(f"error:\n    {YAML}\n\nfix:\n    pip install pyyaml\n")
    plain = json.loads(run("show", "1", "--json").stdout)
    assert plain["origins"] == [{"agent": "builder", "session": "s1", "seqs": [3, 6, 9]}]
    assert "there is no lesson 7" in complaint(run("show", "7"))
    for id in ("0", "x", str(10**30)):
        complaint(run("show", id))


def test_lessons_lessons_move_to_another_store(path: Path, tmp_path: Path) -> None:
    file, other = tmp_path / "out.jsonl", tmp_path / "new" / "other.db"
    assert run("export").stdout == export(file)
    assert run("import", file, "--store", other).stdout == "1 new, 0 known already (0 of them changed), 0 refused\n"
    again = json.loads(run("import", file, "--store", other, "--json").stdout)
    counts = {"added": 0, "changed": 0, "same": 1, "refused": 0, "refusals": []}
    assert again == {"schema": "coherence.lessons.import/1", **counts}
    assert run("export", "--store", other).stdout == file.read_text("utf-8")
    assert [name.name for name in tmp_path.iterdir() if "part" in name.name] == []


def export(file: Path) -> str:
    result = run("export", file)
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", f"lessons: {file}\n")
    return file.read_text("utf-8")


def test_lessons_another_programs_lessons_are_read(path: Path) -> None:
    array = [
        {"pattern": "p", "error": "boom", "fix": "f", "tool": "Bash", "ts": 5},
        {"pattern": "p", "error": "", "fix": "f"},
    ]
    result = run("import", "-", input=json.dumps(array))
    assert result.exit_code == 1 and result.stdout.startswith("1 new, ") and result.stdout.endswith("1 refused\n")
    assert result.stderr == "error: <stdin>:2: error_text must not be empty, not ''\n"
    many = run("import", "-", input="?\n" * 60)
    assert len(many.stderr.splitlines()) == 51 and "10 more lines were refused" in many.stderr  # 50 are told
    complaint(run("import", "nothing.jsonl"))


def test_lessons_an_export_that_fails_leaves_what_was_there(path: Path, tmp_path: Path) -> None:
    assert "cannot be written" in complaint(run("export", tmp_path / "none" / "out.jsonl"))
    if os.path.exists("/dev/full"):
        assert "this is a device" in complaint(run("export", "/dev/full"))
        command = [sys.executable, "-m", "coherence", "lessons", "export"]
        with open("/dev/full", "wb") as full:
            result = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
        assert result.returncode == 2 and "Traceback" not in result.stderr and "No space left" in result.stderr


def test_lessons_lessons_are_removed(path: Path) -> None:
    for name in "abc":
        run("add", "--pattern", name, "--error", f"{name * 3}: no lever", "--fix", name)
    assert "--keep N" in complaint(run("prune"))
    assert run("prune", "--retired").stdout == "removed 0 lessons\n"
    assert run("prune", "--keep", "3").stdout == "removed 1 lesson\n"
    assert len(json.loads(run("list", "--json").stdout)) == 3
    assert run("prune", "--keep", "0").stdout == "removed 3 lessons\n"


def test_lessons_one_lesson_is_removed_and_none_if_one_is_unknown(path: Path) -> None:
    for name in "abc":
        run("add", "--pattern", name, "--error", f"{name * 3}: no lever", "--fix", name)
    assert "there is no lesson 9; nothing was removed" in complaint(run("remove", "2", "9"))
    assert run("remove", "2", "4", "2").stdout == "removed 2 lessons\n"
    assert [row["id"] for row in json.loads(run("list", "--json").stdout)] == [3, 1]
    for arguments in ((), ("0",), ("x",)):
        complaint(run("remove", *arguments))


def test_lessons_an_outcome_is_recorded_by_hand(path: Path) -> None:
    assert run("outcome", "1", "--helped").stdout == "lesson 1 helped 2 of 2 times\n"
    assert run("outcome", "1", "--failed").stdout == "lesson 1 helped 2 of 3 times\n"
    run("add", "--pattern", "p", "--error", "boom: lever", "--fix", "f")
    said = [run("outcome", "2", "--failed").stdout for _ in range(4)]
    assert said[-1] == "lesson 2 helped 0 of 4 times; it is retired: no longer offered\n" and "retired" not in said[-2]
    assert "--helped or --failed" in complaint(run("outcome", "1"))
    assert "there is no lesson 7" in complaint(run("outcome", "7", "--helped"))


@pytest.mark.slow
def test_lessons_another_model_needs_a_rebuild(path: Path) -> None:
    said = complaint(run("search", YAML, "--embedder", "minilm"))
    assert "coherence lessons rebuild" in said and HashingEmbedder().fingerprint in said
    complaint(run("add", "--pattern", "p", "--error", "e", "--fix", "f", "--embedder", "minilm"))
    stats = json.loads(run("stats", "--embedder", "minilm", "--json").stdout)
    assert (stats["lessons"], stats["vectors"], stats["tier"]) == (1, 1, "none")
    result = run("rebuild", "--embedder", "minilm")
    assert result.exit_code == 0 and result.stdout.startswith("1 of 1 lessons are embedded by all-MiniLM")
    assert run("search", YAML, "--embedder", "minilm").stdout.endswith("pip install pyyaml\n")
    complaint(run("search", YAML))


@pytest.mark.parametrize(
    "command",
    [("search", "x"), ("list",), ("show", "1"), ("export",), ("prune", "--keep", "1"), ("rebuild",), ("stats",)],
)
def test_lessons_a_store_that_is_none_is_refused(tmp_path: Path, command: tuple[str, ...]) -> None:
    missing, other, foreign = (tmp_path / name for name in ("missing.db", "text.db", "foreign.db"))
    other.write_text("hello")
    connection = sqlite3.connect(foreign)
    connection.execute("CREATE TABLE t (x)")
    connection.commit()
    connection.close()
    assert "no such file" in complaint(run(*command, "--store", missing)) and not missing.exists()
    assert "not a store of this package" in complaint(run(*command, "--store", other))
    other.write_text('[{"pattern": "p"}]')
    assert "`coherence lessons import FILE`" in complaint(run(*command, "--store", other))
    assert "another program" in complaint(run(*command, "--store", foreign))


@pytest.mark.parametrize("command", [("search", "x", "-k", "0"), ("search", " "), ("list", "--limit", "0")])
def test_lessons_a_bad_number_or_an_empty_question_is_refused(path: Path, command: tuple[str, ...]) -> None:
    complaint(run(*command))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_outcome_a_read_only_store_is_read(path: Path) -> None:
    path.chmod(0o444)
    assert run("list").exit_code == 0 and run("search", YAML).exit_code == 0
    assert "read-only" in complaint(run("add", "--pattern", "p", "--error", "e", "--fix", "f"))
