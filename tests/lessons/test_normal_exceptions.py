"""The exception or code that an error is known by, and the text that is embedded."""

from __future__ import annotations

import pytest

from coherence.lessons.normal import normalise

EXCEPTIONS = [
    ("requests.exceptions.ConnectionError: timed out", "ConnectionError"),
    ("java.lang.NullPointerException", "NullPointerException"),
    ("System.IO.FileNotFoundException: Could not find file 'a'.", "FileNotFoundException"),
    ("error[E0382]: borrow of moved value: `x`", "E0382"),
    ("a.ts(3,5): error TS2304: Cannot find name 'x'.", "TS2304"),
    ("a.cs(3,5): error CS0103: The name 'x' does not exist", "CS0103"),
    ("Error: ENOENT: no such file or directory, open 'x'", "ENOENT"),
    ("Error [ERR_REQUIRE_ESM]: require() of ES Module", "ERR_REQUIRE_ESM"),
    ("Error: P1001: Can't reach database server", "P1001"),
    ("npm ERR! ERESOLVE unable to resolve dependency tree", "ERESOLVE"),
    ("panic: assignment to entry in nil map", "panic"),
    ("ImportError: No module named yaml", "ModuleNotFoundError"),
    ("ImportError: cannot import name 'a' from 'b'", "ImportError"),
    ("Error: Cannot find module 'x'", ""),
    ("cat: x: No such file or directory", ""),
]


@pytest.mark.parametrize(("text", "exception"), EXCEPTIONS)
def test_normalise_an_error_is_known_by_its_class_or_code(text: str, exception: str) -> None:
    assert normalise(text).exception == exception


EMBEDDED = [
    ("OSError: cannot load /srv/app/libfoo.so, version 1.2.3", "OSError: cannot load libfoo.so, version 1.2.3"),
    ("HTTP 404 for https://api.example.com/v1/x?y=3 after 31ms", "HTTP 404 for api.example.com after"),
    ("Error: connect ECONNREFUSED 127.0.0.1:5432", "connect ECONNREFUSED postgres"),
    ("KeyError: 'user_id'", "KeyError: user_id"),
]


@pytest.mark.parametrize(("text", "embedded"), EMBEDDED)
def test_normalise_names_and_versions_stay_readable_and_noise_goes(text: str, embedded: str) -> None:
    assert normalise(text).text == embedded


def test_normalise_what_is_no_text_is_refused() -> None:
    with pytest.raises(TypeError, match="text must be a str"):
        normalise(b"Error")  # type: ignore[arg-type]
