"""Files that are made and read: for their owner alone, through no link, and never one that would be waited for."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from coherence import Monitor, Store
from coherence.core.config import MonitorConfig
from coherence.core.errors import TranscriptError
from coherence.core.files import check_output, make_folder, open_input, open_output
from coherence.guard import Guard
from coherence.lessons import LessonStore
from coherence.lessons.index import LessonIndex
from coherence.providers import HashingEmbedder
from coherence.providers.readers.source import read_source
from coherence.report.files import write_atomically
from coherence.store.errors import StoreError
from coherence.store.jsonl import export_jsonl

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes, links and pipes of POSIX")


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o777


@pytest.fixture(autouse=True)
def _umask_hides_nothing() -> Iterator[None]:
    """Take away no right by the umask: what is kept from others is so on purpose."""
    before = os.umask(0)
    yield
    os.umask(before)


def test_make_folder_makes_all_that_are_missing_for_their_owner_and_changes_none(tmp_path: Path) -> None:
    there = tmp_path / "there"
    there.mkdir(mode=0o755)
    make_folder(there / "a" / "b")
    assert [mode(folder) for folder in (there, there / "a", there / "a" / "b")] == [0o755, 0o700, 0o700]


def test_open_output_makes_a_file_for_its_owner_and_leaves_the_rights_of_another(tmp_path: Path) -> None:
    new, old = tmp_path / "new", tmp_path / "old"
    old.write_text("old")
    old.chmod(0o644)
    for path in (new, old):
        with open_output(path) as file:
            file.write(b"text")
    assert (mode(new), mode(old), old.read_text()) == (0o600, 0o644, "text")


def pipe(path: Path) -> None:
    os.mkfifo(path)


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def link(path: Path) -> None:
    path.symlink_to(path.with_name("aim"))


@pytest.mark.parametrize(
    ("make", "why"), [(pipe, "a pipe"), (listening, "a socket"), (link, "a symbolic link"), (Path.mkdir, "directory")]
)
def test_open_output_refuses_what_is_no_regular_file(tmp_path: Path, make: Callable[[Path], None], why: str) -> None:
    make(tmp_path / "out")
    with pytest.raises(OSError, match=why):
        open_output(tmp_path / "out")
    with pytest.raises(OSError, match=why):
        write_atomically(tmp_path / "out", "text")
    assert not (tmp_path / "aim").exists()


def test_open_input_refuses_what_would_be_waited_for_and_follows_links(tmp_path: Path) -> None:
    pipe(tmp_path / "pipe")
    (tmp_path / "file").write_text("text")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    with pytest.raises(OSError, match="this is a pipe; name a regular file"):
        open_input(tmp_path / "pipe")
    with pytest.raises(OSError, match="a device"):
        open_input("/dev/zero")
    with open_input(tmp_path / "link") as file:
        assert file.read() == b"text"


def test_check_output_names_the_file_that_a_link_leads_to(tmp_path: Path) -> None:
    link(tmp_path / "out")
    with pytest.raises(OSError, match="aim itself"):
        check_output(tmp_path / "out")


def test_readers_and_settings_refuse_a_pipe(tmp_path: Path) -> None:
    pipe(tmp_path / "pipe")
    with pytest.raises(TranscriptError, match="this is a pipe"):
        read_source(tmp_path / "pipe")
    with pytest.raises(ValueError, match="this is a pipe"):
        MonitorConfig.load(tmp_path / "pipe")


def test_every_file_and_folder_that_is_made_is_for_its_owner_alone(tmp_path: Path) -> None:
    root = tmp_path / "made"
    embedder = HashingEmbedder(16)
    with Monitor(store=root / "runs" / "runs.db", embedder=embedder) as m:
        m.message("user", "hello")
        m.decide()
        m.flush()
        assert {path.name for path in (root / "runs").iterdir()} == {"runs.db", "runs.db-wal", "runs.db-shm"}
        wide = [path for path in root.rglob("*") if mode(path) & 0o077]
        assert m.store is not None
        export_jsonl(m.store, root / "trail")
    with LessonStore(root / "lessons.db", embedder=embedder) as lessons:
        lessons.record(pattern="p", error_text="boom", fix_text="calm", tool="Bash")
        searching = lessons._searching
        assert searching is not None
        index = searching.followed()
        assert isinstance(index, LessonIndex)
        searching._save(index)
    with Guard(store=root / "guard.db") as guard:
        guard.run(lambda: 1, agent="a")
        guard.flush()
        guard.export("a", root / "guard.jsonl")
    write_atomically(root / "report.html", "<p>")
    wide += [path for path in root.rglob("*") if mode(path) & 0o077]
    assert wide == []
    made = {path.name for path in root.rglob("*")}
    assert {"runs.db", "audit.jsonl", "lessons.db.lessons", "index", "lock", "guard.jsonl", "report.html"} <= made


def test_store_and_trail_are_not_written_through_a_link(tmp_path: Path) -> None:
    aim = tmp_path / "aim.db"
    (tmp_path / "link.db").symlink_to(aim)
    with pytest.raises(StoreError, match=r"link\.db: this is a symbolic link.*name .*aim\.db itself"):
        Store(tmp_path / "link.db")
    assert not aim.exists()
    with Store(tmp_path / "store.db") as store:
        (tmp_path / "audit.jsonl").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(StoreError, match="symbolic link"):
            export_jsonl(store, tmp_path)
    assert not (tmp_path / "elsewhere").exists()


def test_store_that_is_there_keeps_its_rights_and_gives_them_to_its_log(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    Store(path).close()
    path.chmod(0o640)
    with Store(path) as store, store.transaction() as transaction:
        transaction.set_trust(1.0, "{}")
        assert [mode(Path(f"{path}{side}")) for side in ("", "-wal", "-shm")] == [0o640] * 3
