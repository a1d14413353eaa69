"""Errors that look alike and must not share a signature, and the slots that tell siblings apart."""

from __future__ import annotations

import pytest

from coherence.lessons.normal import normalise

DIFFERENT = [
    ("ModuleNotFoundError: No module named 'yaml'", "ImportError: cannot import name 'yaml' from 'x'"),
    ("KeyError: 'a'", "IndexError: list index out of range"),
    ("TypeError: 'int' object is not callable", "TypeError: 'int' object is not iterable"),
    ("AttributeError: 'A' object has no attribute 'b'", "AttributeError: module 'A' has no attribute 'b'"),
    (
        "FileNotFoundError: [Errno 2] No such file or directory: 'a'",
        "PermissionError: [Errno 13] Permission denied: 'a'",
    ),
    (
        "TypeError: f() got an unexpected keyword argument 'a'",
        "TypeError: f() missing 1 required positional argument: 'a'",
    ),
    (
        "ConnectionRefusedError: [Errno 111] Connection refused",
        "ConnectionResetError: [Errno 104] Connection reset by peer",
    ),
    ("E       fixture 'a' not found", "E       NameError: name 'a' is not defined"),
    ("Error: Cannot find module 'a'", "Error: Cannot find module './a'"),
    ("ReferenceError: a is not defined", "ReferenceError: Cannot access 'a' before initialization"),
    ("Error: connect ECONNREFUSED 127.0.0.1:80", "Error: connect ETIMEDOUT 127.0.0.1:80"),
    ("a.ts(1,1): error TS2304: Cannot find name 'x'.", "a.ts(1,1): error TS2307: Cannot find module 'x'."),
    ("./a.go:1:1: declared and not used: x", "./a.go:1:1: undefined: x"),
    (
        "panic: runtime error: index out of range [5] with length 3",
        "panic: runtime error: invalid memory address or nil pointer dereference",
    ),
    ("error[E0382]: borrow of moved value: `x`", "error[E0382]: use of moved value: `x`"),
    ("bash: a: command not found", "bash: ./a: Permission denied"),
    ("cat: a: No such file or directory", "cat: a: Is a directory"),
    ("fatal: not a git repository (or any of the parent directories): .git", "fatal: couldn't find remote ref main"),
    ('Error from server (NotFound): pods "a" not found', 'Error from server (NotFound): services "a" not found'),
    ('ERROR:  relation "a" does not exist', 'ERROR:  column "a" does not exist'),
    ('ERROR:  relation "a" does not exist', 'ERROR:  relation "a" already exists'),
    ("HTTP 404", "HTTP 500"),
    ("curl: (28) Operation timed out", "curl: (35) Operation timed out"),
    ("command terminated with exit code 137", "command terminated with exit code 1"),
    (
        "An error occurred (NoSuchBucket) when calling the GetObject operation: The bucket does not exist",
        "An error occurred (AccessDenied) when calling the GetObject operation: The bucket does not exist",
    ),
]


@pytest.mark.parametrize(("one", "two"), DIFFERENT)
def test_normalise_other_errors_have_another_signature(one: str, two: str) -> None:
    assert normalise(one).signature != normalise(two).signature


SLOTS = [
    ("ModuleNotFoundError: No module named 'yaml'", ["yaml"]),
    ("ModuleNotFoundError: No module named pkg_resources", ["pkg_resources"]),
    ("zsh: command not found: jq", ["jq"]),
    ("Error: Cannot find module 'express'", ["express"]),
    ("npm ERR! '@acme/ui@^1.2.0' is not in this registry.", ["@acme/ui", "^1.2.0"]),
    ('ERROR:  column "user_id" does not exist', ["user_id"]),
    ("KeyError: 'DATABASE_URL'", ["DATABASE_URL"]),
    ("fatal: couldn't find remote ref main", ["main"]),
    ("curl: (6) Could not resolve host: registry", ["registry"]),
    ("E: Unable to locate package libpq-dev", ["libpq-dev"]),
    ("error: externally-managed-environment, Python 3.12", ["3.12"]),
    ("./main.go:3:5: undefined: parse", ["parse"]),
    ("Error: listen EADDRINUSE: address already in use :::3000", [":::3000"]),
    ("/usr/bin/ld: cannot find -lssl: No such file or directory", ["-lssl"]),
    ("A.java:1: error: cannot find symbol\n  symbol:   class Foo", ["Foo"]),
    ("error: unrecognized arguments: --verbose", ["--verbose"]),
]


@pytest.mark.parametrize(("text", "values"), SLOTS)
def test_normalise_slots_hold_what_tells_siblings_apart(text: str, values: list[str]) -> None:
    assert [slot.value for slot in normalise(text).slots] == values


@pytest.mark.parametrize(
    ("text", "weak"),
    [
        ("AssertionError", True),
        ("E       assert 3 == 4", True),
        ("error: command failed with exit code 1", True),
        ("make: *** [all] Error 2", True),
        ("Build failed", True),
        ("KeyError: 'DATABASE_URL'", False),
        ("ModuleNotFoundError: No module named 'yaml'", False),
        ("AssertionError: settings were not loaded", False),
        ("ZeroDivisionError: division by zero", False),
        ("Permission denied", False),
    ],
)
def test_normalise_a_template_that_says_nearly_nothing_is_weak(text: str, weak: bool) -> None:
    assert normalise(text).weak is weak
