"""Laws of the normal form of any text: total, bounded, deterministic, blind to library frames."""

from __future__ import annotations

import pickle

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_sizes import examples

from coherence.lessons.normal import ErrorShape, normalise

_PIECES = st.sampled_from(
    [
        "Traceback (most recent call last):\n",
        '  File "a.py", line 3, in f\n',
        "E   ",
        "error: ",
        "Error [X]: ",
        "\n",
        " ",
        "'",
        '"',
        "`",
        "Caused by: ",
        "panic: ",
        "<",
        "(",
        "/a/b.c:3:4: ",
        "0x",
        "12.5",
        "\x1b[31m",
        "\0",
        "\ud800",
        "é",
        "Error",
        "\r",
        "{",
        "\\n",
        "http://",
        "::",
        "-> ",
        "not found",
        "No such file or directory",
        "=",
        "x" * 90,
        "\u202e",
        "日本",
    ]
)
_TEXTS = st.one_of(
    st.text(st.characters(codec=None), max_size=300),
    st.lists(_PIECES, max_size=40).map("".join),
    st.lists(_PIECES).map("".join),
)

HOSTILE = {
    "empty": "",
    "spaces": " \n\t\n ",
    "ten megabytes in a line": "x" * 10_000_000,
    "ten megabytes of lines": "error: a b\n" * 900_000,
    "hundred thousand lines": "\n".join(str(number) for number in range(100_000)),
    "quotes": "'" * 100_000,
    "brackets": "([{<" * 50_000,
    "escapes": "\x1b[" * 50_000,
    "colons": "a:" * 50_000,
    "slashes": "/" * 100_000,
    "backslashes": "\\n" * 100_000,
    "dots": "a." * 50_000 + "Error",
    "digits": "1" * 100_000,
    "tracebacks": "Traceback (most recent call last):\n" * 20_000,
    "pytest": "E   x\n" * 50_000,
    "causes": "Caused by: a.b.CError: x\n" * 20_000,
    "frames": '  File "a.py", line 1, in f\n' * 20_000,
    "surrogates": "\ud800" * 50_000,
    "binary": bytes(range(256)).decode("latin-1") * 1_000,
    "right to left": "\u202eשגיאה: לא נמצא\n" * 2_000,
    "versions": "1." * 50_000,
    "equals": "a=" * 50_000,
    "errors": "aError" * 20_000,
}


def _check(shape: ErrorShape) -> None:
    assert len(shape.template) <= 300 and len(shape.text) <= 400
    assert len(shape.slots) <= 16 and all(len(slot.value) <= 200 for slot in shape.slots)
    assert len(shape.exception) <= 200
    assert len(shape.signature) == 8
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(shape), type=ErrorShape) == shape


@given(_TEXTS)
@examples(300)
def test_normalise_any_text_has_a_bounded_shape_that_is_always_the_same(text: str) -> None:
    shape = normalise(text)
    _check(shape)
    assert normalise(text) == shape
    assert pickle.loads(pickle.dumps(shape)) == shape
    normalise(shape.template)


@pytest.mark.parametrize("case", sorted(HOSTILE))
def test_normalise_hostile_texts_are_answered(case: str) -> None:
    _check(normalise(HOSTILE[case]))


def test_normalise_nothing_has_an_empty_shape() -> None:
    shape = normalise(" \n\0 ")
    assert (shape.exception, shape.template, shape.text, shape.slots, shape.weak) == ("", "", "", (), True)


@given(st.integers(0, 60), st.sampled_from(["yaml", "numpy", "google.cloud"]))
@examples(30)
def test_normalise_library_frames_do_not_change_the_signature(depth: int, module: str) -> None:
    own = 'Traceback (most recent call last):\n  File "/srv/app.py", line 3, in load\n    import x\n'
    library = '  File "/usr/lib/python3.11/site-packages/lib/core.py", line 9, in get\n    return f(x)\n' * depth
    shape = normalise(f"{own}{library}ModuleNotFoundError: No module named '{module}'")
    bare = normalise("ModuleNotFoundError: No module named 'bare'")
    assert shape.signature == bare.signature


@pytest.mark.parametrize("message", ["ENOSPC: no space left", "disk quota exceeded", "Überlauf: ungültig"])
@pytest.mark.parametrize(
    "prefix",
    [
        "[ERROR] ",
        "ERROR: ",
        "error: ",
        "npm ERR! ",
        "E   ",
        "Jan  2 10:00:00 host app[123]: ",
        "[10:00:00] ",
        "  \t",
        "2026-01-02 10:00:00,123 ERROR ",
        "2026-01-02T10:00:00.123Z [error] ",
        "\x1b[31mError:\x1b[0m ",
        "ERROR:root:",
        "fatal: ",
    ],
)
def test_normalise_log_prefixes_do_not_change_the_signature(prefix: str, message: str) -> None:
    assert normalise(prefix + message).signature == normalise(message).signature
