"""Human words about errors against the texts of errors."""

from __future__ import annotations

import pytest

from coherence.lessons.normal import normalise

PROSE = [
    "pkg_resources is missing",
    "my tests hang for ever when I run them in parallel",
    "the requests package isn't installed in this environment",
    "git won't let me push because somebody else pushed before me",
    "the build runs out of memory on my laptop",
    "I changed the model but the migration is not there",
    "the page stays white and the console is full of red",
    "the service starts and dies again after a few seconds",
    "the server answers with too many requests",
    "the script is not executable",
    "two packages need different versions of numpy",
    "the certificate of the server is out of date",
    "the pod gets killed because it uses too much memory",
    "the import goes round in a circle",
    "the database refuses my password",
    "the test finishes before the promise does",
    "there are conflicts after the merge",
    "ssh says the host key has changed",
    "we call something that is null",
    "the date is in another format than the parser expects",
    "it works on my machine but not in CI",
]

ERRORS = [
    "ModuleNotFoundError: No module named 'yaml'",
    "command not found: jq",
    "Segmentation fault (core dumped)",
    "Could not resolve host: github.com",
    "connection reset by peer",
    "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
    "'foo' is not recognized as an internal or external command, operable program or batch file.",
    "Please make sure you have the correct access rights and the repository exists.",
    "Updates were rejected because the tip of your current branch is behind its remote counterpart.",
    "x.c:3:5: error: unknown type name 'u8'",
    "E: Unable to locate package foo",
    "panic: assignment to entry in nil map",
    'relation "users" does not exist',
    "exec format error",
    "address already in use",
    "Unexpected token < in JSON at position 0",
    "The system cannot find the file specified.",
    "Host key verification failed.",
    "could not connect to server: Connection refused",
    "TypeError: Failed to fetch",
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
