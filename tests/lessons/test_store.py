"""The store of lessons: what is kept, what counts as the same, and what users see of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from coherence.lessons.errors import EmbedderMismatchError, LessonError
from coherence.lessons.records import Origin
from coherence.lessons.store import LessonStore
from coherence.store.rows import EventRow
from coherence.store.store import Store
from lessons.stores import VAGUE, check_file, found, learn, missing, near, open_store


def test_query_an_equal_error_finds_its_fix_exactly(path: Path) -> None:
    with open_store(path) as store:
        id = learn(store, "pkg_resources", "pip install setuptools", ts=1_000.0)
        (lesson,) = store.query("E   ModuleNotFoundError: No module named 'pkg_resources'", tool="Bash")
        assert (lesson.id, lesson.match, lesson.fix_text) == (id, "exact", "pip install setuptools")
        assert (lesson.pattern, lesson.tool, lesson.count) == ("missing module", "Bash", 1)
        assert (lesson.created, lesson.seen) == (1_000.0, 1_000.0)
        assert 0.5 <= lesson.similarity <= 1.0


def test_query_the_names_of_the_question_are_put_into_the_fix(path: Path) -> None:
    with open_store(path) as store:
        learn(store, "yaml_tools", "uv add yaml_tools")
        (lesson,) = store.query(missing("jsonlines"), tool="Bash", least=0.0)
        assert (lesson.fix_text, lesson.refilled) == ("uv add jsonlines", True)
        kept = store.get(lesson.id)
        assert kept is not None
        assert kept.fix_text == "uv add yaml_tools"


def test_rebuild_a_description_finds_by_meaning_and_nothing_without_an_embedder(path: Path) -> None:
    with open_store(path) as store:
        id = learn(store, "pkg_resources", "pip install setuptools")
        assert found(store, VAGUE, least=0.0) == [id]
    with open_store(path, embedder=False) as store:
        assert found(store, VAGUE, least=0.0) == []
        assert found(store, missing("pkg_resources")) == [id]
        assert store.stats().tier == "none"
        with pytest.raises(LessonError, match="nothing to rebuild"):
            store.rebuild()


def test_vectors_the_same_error_with_other_line_numbers_counts_once(path: Path) -> None:
    def traceback(line: int) -> str:
        return f'Traceback (most recent call last):\n  File "/srv/{line}/app.py", line {line}, in load\n' + missing("y")

    with open_store(path) as store:
        first = learn(store, "", "pip install y", error_text=traceback(3), ts=50.0)
        again = learn(store, "", " pip  install y\n", error_text=traceback(77), ts=20.0, tool="bash", pattern="other")
        assert again == first
        kept = store.get(first)
        assert kept is not None
        assert (kept.count, kept.created, kept.seen, kept.pattern) == (2, 50.0, 50.0, "missing module")
        assert store.stats().lessons == store.stats().vectors == 1


@pytest.mark.parametrize(
    ("name", "fix", "tool"),
    [("z", "pip install y", "Bash"), ("y", "pip install Y", "Bash"), ("y", "pip install y", "")],
)
def test_stats_other_names_another_fix_or_tool_is_another_lesson(path: Path, name: str, fix: str, tool: str) -> None:
    with open_store(path) as store:
        first = learn(store, "y", "pip install y")
        assert learn(store, name, fix, tool=tool) != first
        assert store.stats().lessons == 2


def test_query_conflicting_fixes_are_both_kept_with_their_records(path: Path) -> None:
    with open_store(path) as store:
        bad, good = learn(store, "y", "sudo pip install y"), learn(store, "y", "pip install --user y")
        store.outcome(bad, helped=False)
        store.outcome(good, helped=True)
        assert [(each.id, each.helped, each.failed) for each in store.query(missing("y"))] == [
            (good, 1, 0),
            (bad, 0, 1),
        ]
        (worse, better) = sorted(each.similarity for each in store.query(missing("y")))
        assert worse == pytest.approx(better * 2 / 3, abs=1e-3)  # (0 + 2) / (0 + 1 + 2)


def test_query_a_fix_that_keeps_failing_sinks_is_retired_and_comes_back(path: Path) -> None:
    with open_store(path) as store:
        id = learn(store, "y", "pip install y")
        seen = []
        for _ in range(3):
            seen += [each.similarity for each in store.query(missing("y"), least=0.0)]
            store.outcome(id, helped=False)
        seen += [each.similarity for each in store.query(missing("y"), least=0.0)]
        assert len(seen) == 4
        assert seen == sorted(set(seen), reverse=True)
        store.outcome(id, helped=False)  # the fourth failure
        assert store.query(missing("y"), least=0.0) == store.query(VAGUE, least=0.0) == []
        kept = store.get(id)
        assert kept is not None
        assert (kept.retired, kept.failed) == (True, 4)
        store.outcome(id, helped=True)  # 1 * 4 < 4 does not hold
        assert found(store, missing("y"), least=0.0) == [id]
        store.outcome(id, helped=False)
        assert found(store, missing("y"), least=0.0) == []  # 1 * 4 < 5
        assert learn(store, "y", "pip install y") == id  # recorded once more, it has worked once more
        assert found(store, missing("y"), least=0.0) == [id]


def test_events_that_were_told_twice_count_once(path: Path) -> None:
    origin = Origin("builder", "monday", (3, 4, 9))
    with open_store(path) as store:
        id = learn(store, "y", "pip install y", origin=origin)
        assert learn(store, "y", "pip install y", origin=origin) == id
        learn(store, "y", "pip install y", origin=Origin("builder", "tuesday", (1, 9)))
        kept = store.get(id)
        assert kept is not None
        assert kept.count == 2
        assert kept.origins == (Origin("builder", "tuesday", (1, 9)), origin)


def test_an_outcome_that_was_told_twice_counts_once(path: Path) -> None:
    with open_store(path) as store:
        id = learn(store, "y", "pip install y")
        for origin in ("a", "a", "b", None, None):
            store.outcome(id, helped=True, origin=origin)
        assert (kept := store.get(id)) is not None
        assert kept.helped == 4
        assert (store.stats().outcomes, store.stats().helped) == (4, 4)


KEY = "sk-ant-api03-" + "aB3dE5gH7jK9mN1pQ2rS4tU6" * 3


def test_query_secrets_are_redacted_and_a_question_with_the_secret_finds_the_lesson(path: Path) -> None:
    error = f"AuthenticationError: invalid x-api-key: api_key={KEY}"
    with open_store(path) as store:
        id = learn(store, "", f"export API_KEY={KEY}", error_text=error, pattern=f"bad key {KEY}")
        assert store.query(error)[0].id == id
        assert learn(store, "", f"export API_KEY={KEY}", error_text=error) == id
    held = b"".join(each.read_bytes() for each in path.parent.iterdir() if each.is_file())
    assert KEY.encode() not in held
    assert b"[redacted:" in held


def test_lessons_come_most_recently_used_first_and_page_by_page(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("coherence.lessons.table.PAGE", 3)
    with open_store(path) as store:
        ids = [learn(store, f"mod{number}", pattern="odd" if number % 2 else "even") for number in range(10)]
        store.outcome(ids[4], helped=True)
        order = [ids[4], *(id for id in reversed(ids) if id != ids[4])]
        assert [lesson.id for lesson in store.lessons()] == order
        assert [lesson.id for lesson in store.lessons(limit=7)] == order[:7]
        assert [lesson.id for lesson in store.lessons(pattern="odd")] == ids[9:0:-2]
        assert list(store.lessons(limit=0)) == list(store.lessons(pattern="none")) == []


def test_prune_what_was_removed_or_pruned_is_gone_everywhere(path: Path) -> None:
    with open_store(path) as store:
        ids = [learn(store, f"mod{number}", origin=Origin("a", "s", (number,))) for number in range(6)]
        assert near(store) == set(ids)
        assert store.remove([ids[0], ids[0], 999]) == 1
        assert store.remove([]) == 0
        assert near(store) == set(ids[1:])
        for _ in range(4):
            store.outcome(ids[5], helped=False)
        assert store.prune() == 0
        assert store.prune(retired=True) == 1
        store.outcome(ids[1], helped=True)  # a use
        assert store.prune(keep=2) == 2
        assert {lesson.id for lesson in store.lessons()} == near(store) == {ids[1], ids[4]}
        assert store.prune(keep=0) == 2
        assert learn(store, "mod0", origin=Origin("a", "s", (0,))) == 0  # these events teach it no more
        assert learn(store, "mod0", origin=Origin("a", "s", (6,))) > ids[5]
        assert store.stats().outcomes == 0
    assert check_file(path) == 1


def test_a_closed_store_says_so_whoever_owns_the_file(path: Path) -> None:
    with Store(path) as shared:
        for file in (path, shared):
            store = open_store(file)
            id = learn(store, "y")
            store.close()
            store.close()
            for action in (
                lambda store=store: learn(store, "z"),
                lambda store=store: store.query("x"),
                lambda store=store, id=id: store.outcome(id, helped=True),
                lambda store=store, id=id: store.get(id),
                lambda store=store: store.lessons(),
                lambda store=store, id=id: store.remove([id]),
                lambda store=store: store.prune(),
                lambda store=store: store.rebuild(),
                lambda store=store: store.stats(),
            ):
                with pytest.raises(LessonError, match="this LessonStore is closed"):
                    action()
        assert shared.sessions() == []  # a file that is shared stays open


def test_count_events_a_file_with_evidence_in_it_keeps_it(path: Path) -> None:
    with Store(path) as file, file.transaction() as transaction:
        session = transaction.add_session(session="s", agent="a", parent=None, source="api", started=1, config="{}")
        transaction.add_events(session, [EventRow(1, 1.0, "goal", '"x"')])
    with open_store(path, cap=2) as store:
        for number in range(5):
            learn(store, f"mod{number}")
    with Store(path) as file:
        assert file.verify() == []
        assert file.count_events() == 1
        assert file.prune(max_events=0) == 1
    assert check_file(path) == 2


def test_query_the_shipped_model_finds_what_somebody_describes(path: Path) -> None:
    errors = {
        "psycopg2.OperationalError: could not connect to server: Connection refused": "docker compose up -d db",
        "ModuleNotFoundError: No module named 'pkg_resources'": "pip install setuptools",
        "fatal: refusing to merge unrelated histories": "git pull --allow-unrelated-histories",
    }
    with LessonStore(path) as store:
        for error, fix in errors.items():
            learn(store, "", fix, error_text=error)
        for said, fix in zip(
            ("the database does not accept connections", "python cannot import a package", "git will not merge"),
            errors.values(),
            strict=True,
        ):
            assert store.query(said, least=0.0)[0].fix_text == fix
        assert store.query("the coffee machine in the kitchen is out of milk") == []
    with pytest.raises(EmbedderMismatchError, match="MiniLM"):
        open_store(path)
