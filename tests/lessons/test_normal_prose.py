"""Human words about errors against the texts of errors."""

from __future__ import annotations

import pytest

from coherence.lessons.normal import normalise

PROSE = [
    "pkg_resources is missing",
    "the container cannot reach the database",
    "my tests hang for ever when I run them in parallel",
    "python says it cannot find the yaml library",
    "the requests package isn't installed in this environment",
    "a function keeps calling itself without end until python gives up",
    "git won't let me push because somebody else pushed before me",
    "the port is already taken by another program",
    "the build runs out of memory on my laptop",
    "why does docker say it has no space left although the disk is half empty",
    "I changed the model but the migration is not there",
    "the compiler complains that a variable was used after it was moved",
    "the page stays white and the console is full of red",
    "npm wants another version of react than the one we have",
    "the service starts and dies again after a few seconds",
    "our API key is not accepted any more",
    "the server answers with too many requests",
    "the json that comes back is empty",
    "the script is not executable",
    "there is a typo in the yaml file",
    "two packages need different versions of numpy",
    "pip can't find a version of torch for this python",
    "the certificate of the server is out of date",
    "kubernetes can't pull the image",
    "the pod gets killed because it uses too much memory",
    "terraform says somebody else is holding the lock",
    "the import goes round in a circle",
    "the table isn't there yet",
    "the database refuses my password",
    "typescript doesn't know the type of this variable",
    "the test finishes before the promise does",
    "java can't find the main class",
    "there are conflicts after the merge",
    "the file has windows line endings and the shell does not like them",
    "ssh says the host key has changed",
    "the linker can't find the ssl library",
    "we call something that is null",
    "the program reads past the end of the list",
    "the date is in another format than the parser expects",
    "the browser blocks the request to our backend",
    "it works on my machine but not in CI",
]

ERRORS = [
    "ModuleNotFoundError: No module named 'yaml'",
    "No module named yaml",
    "command not found: jq",
    "Permission denied",
    "Segmentation fault (core dumped)",
    "Killed",
    "Could not resolve host: github.com",
    "Connection refused",
    "connection reset by peer",
    "Error: No such container: web",
    "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
    "You have an error in your SQL syntax; check the manual that corresponds to your MySQL server version",
    "'foo' is not recognized as an internal or external command, operable program or batch file.",
    "The term 'foo' is not recognized as the name of a cmdlet, function, script file, or operable program.",
    "Please make sure you have the correct access rights and the repository exists.",
    "fatal: not a git repository (or any of the parent directories): .git",
    "Updates were rejected because the tip of your current branch is behind its remote counterpart.",
    "The connection to the server localhost:8080 was refused - did you specify the right host or port?",
    "x.c:3:5: error: unknown type name 'u8'",
    "undefined reference to `foo'",
    "E: Unable to locate package foo",
    "src/a.ts(3,5): error TS2304: Cannot find name 'foo'.",
    "panic: assignment to entry in nil map",
    "curl: (6) Could not resolve host: foo",
    'relation "users" does not exist',
    "no such table: users",
    "exec format error",
    "standard_init_linux.go:228: exec user process caused: no such file or directory",
    "address already in use",
    "Invalid credentials",
    "Unexpected token < in JSON at position 0",
    "JavaScript heap out of memory",
    "The system cannot find the file specified.",
    "You must specify a region.",
    "Host key verification failed.",
    "Text file busy",
    "could not connect to server: Connection refused",
    "Object reference not set to an instance of an object.",
    "TypeError: Failed to fetch",
    "expected primary-expression before ')' token",
    "fork: retry: Resource temporarily unavailable",
    'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\n    the(x)\nthe is not there',
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
