"""Human words about errors against the texts of errors."""

from __future__ import annotations

import pytest

from coherence.lessons.normal import normalise

PROSE = [
    "pkg_resources is missing",
    "my tests hang for ever when I run them in parallel",
    "git won't let me push because somebody else pushed before me",
    "I changed the model but the migration is not there",
    "the server answers with too many requests",
    "the script is not executable",
    "the certificate of the server is out of date",
    "the import goes round in a circle",
    "the database refuses my password",
    "ssh says the host key has changed",
    "the date is in another format than the parser expects",
]

ERRORS = [
    "ModuleNotFoundError: No module named 'yaml'",
    "command not found: jq",
    "Segmentation fault (core dumped)",
    "Could not resolve host: github.com",
    "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
    "Updates were rejected because the tip of your current branch is behind its remote counterpart.",
    "E: Unable to locate package foo",
    'relation "users" does not exist',
    "address already in use",
    "Unexpected token < in JSON at position 0",
    "fork: retry: Resource temporarily unavailable",
    "2026-01-01 10:00:00 ERROR the cache is not there and I do not know why",
]


@pytest.mark.parametrize("text", PROSE)
def test_normalise_human_words_are_prose(text: str) -> None:
    shape = normalise(text)
    assert shape.prose
    assert shape.exception == "" and shape.text == text


@pytest.mark.parametrize("text", ERRORS)
def test_normalise_error_texts_are_no_prose(text: str) -> None:
    assert not normalise(text).prose
