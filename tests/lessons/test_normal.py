"""The normal form of errors: exceptions, slots, prose, and which errors share a signature."""

from __future__ import annotations

import pytest

from coherence.lessons.normal import normalise

_TRACE = 'Traceback (most recent call last):\n  File "/srv/app/main.py", line 12, in run\n    load()\n'
_DEEP = _TRACE + '  File "/usr/lib/python3.11/site-packages/lib/core.py", line 90, in load\n    return f(x)\n' * 12

SAME = {
    "python module": [
        "ModuleNotFoundError: No module named 'yaml'",
        _TRACE + "ModuleNotFoundError: No module named 'requests'",
        _DEEP + 'ModuleNotFoundError: No module named "google.cloud"\n',
        "E   ModuleNotFoundError: No module named 'numpy'",
        "ImportError: No module named yaml",
        "2026-03-01 10:00:00,123 - app - ERROR - ModuleNotFoundError: No module named 'yaml'",
        "tests/test_a.py:3: in <module>\n    import yaml\nE   ModuleNotFoundError: No module named 'yaml'\n"
        "=========== short test summary info ===========\nERROR tests/test_a.py\n1 error in 0.12s",
    ],
    "python name": [
        "NameError: name 'foo' is not defined",
        _TRACE + "NameError: name 'json' is not defined. Did you mean: 'jsn'?",
        _TRACE + "NameError: name 'os' is not defined. Did you forget to import 'os'?",
    ],
    "python file": [
        "FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'",
        _TRACE + "FileNotFoundError: [Errno 2] No such file or directory: '/tmp/x/out'",
    ],
    "python version of numbers": [
        "ValueError: operands could not be broadcast together with shapes (3,) (4,)",
        "ValueError: operands could not be broadcast together with shapes (10,2) (3,5) ",
    ],
    "python syntax": [
        '  File "a.py", line 3\n    print "x"\n          ^\nSyntaxError: invalid syntax',
        _TRACE + '  File "/srv/b.py", line 90\n    foo bar\n        ^^^\nSyntaxError: invalid syntax\n',
    ],
    "python chained": [
        _TRACE
        + "KeyError: 'a'\n\nDuring handling of the above exception, another exception occurred:\n\n"
        + _TRACE
        + "ValueError: bad value 'a' in settings",
        _TRACE + "ValueError: bad value 'b' in settings",
    ],
    "python group": [
        '  + Exception Group Traceback (most recent call last):\n  |   File "/a/b.py", line 1, in <module>\n'
        "  |     main()\n  | ExceptionGroup: unhandled errors in a TaskGroup (1 sub-exception)\n"
        "  +-+---------------- 1 ----------------\n    | Traceback (most recent call last):\n"
        "    |   File \"/a/b.py\", line 9, in f\n    |     int(x)\n    | ValueError: could not convert 'x' of row 3\n"
        "    +------------------------------------\n",
        _TRACE + "ValueError: could not convert 'yy' of row 14",
    ],
    "requests": [
        "requests.exceptions.ConnectionError: HTTPConnectionPool(host='localhost', port=8000): Max retries"
        " exceeded with url:"
        " /api (Caused by NewConnectionError('<urllib3.connection.HTTPConnection object at 0x7f1c2c0d>: Failed"
        " to establish"
        " a new connection: [Errno 111] Connection refused'))",
        "requests.exceptions.ConnectionError: HTTPConnectionPool(host='db.local', port=80): Max retries"
        " exceeded with url:"
        " /v1/items/3 (Caused by NewConnectionError('<urllib3.connection.HTTPConnection object at 0x7ffa2c0d>:"
        " Failed to"
        " establish a new connection: [Errno 111] Connection refused'))",
    ],
    "pytest assert": [
        "    def test_a():\n>       assert f(3) == 4\nE       assert 5 == 4\nE        +  where 5 ="
        " f(3)\n\nt.py:3: AssertionError",
        "E       AssertionError: assert 7 == 9",
        "FAILED tests/test_x.py::test_a - assert 3 == 4",
    ],
    "node module": [
        "Error: Cannot find module 'express'",
        "node:internal/modules/cjs/loader:1148\n  throw err;\n  ^\n\nError: Cannot find module"
        " 'lodash'\nRequire stack:\n"
        "- /srv/app.js\n    at Module._resolveFilename (node:internal/modules/cjs/loader:1145:15) {\n"
        "  code: 'MODULE_NOT_FOUND',\n  requireStack: [ '/srv/app.js' ]\n}\n\nNode.js v20.11.0",
        "Uncaught Error: Cannot find module 'react'",
    ],
    "node type": [
        "TypeError: Cannot read properties of undefined (reading 'map')",
        "/srv/app.js:3\n  x.map()\n    ^\n\nTypeError: Cannot read properties of undefined (reading 'length')\n"
        "    at load (/srv/app.js:3:5)\n    at Module._compile (node:internal/modules/cjs/loader:1:1)",
    ],
    "npm eresolve": [
        "npm ERR! code ERESOLVE\nnpm ERR! ERESOLVE unable to resolve dependency tree\nnpm ERR! \nnpm ERR! While"
        " resolving:"
        " app@1.0.0\nnpm ERR! Found: react@18.2.0\n\nnpm ERR! A complete log of this run can be found in:"
        " /home/dev/.npm/x.log",
        "npm error code ERESOLVE\nnpm error ERESOLVE unable to resolve dependency tree\nnpm error",
    ],
    "typescript": [
        "src/a.ts(3,5): error TS2304: Cannot find name 'foo'.",
        "src/pages/b.tsx:33:15 - error TS2304: Cannot find name 'useState'.\n\n33   useState()\n    "
        " ~~~~~~~~\n\nFound 1 error.",
        "error TS2304: Cannot find name 'x'. Did you mean 'y'?",
    ],
    "java null": [
        'Exception in thread "main" java.lang.NullPointerException: Cannot invoke "String.length()" because'
        ' "<local1>" is'
        " null\n\tat com.acme.App.main(App.java:5)",
        'Exception in thread "pool-1-thread-2" java.lang.NullPointerException: Cannot invoke "com.x.Foo.bar()" because'
        ' "this.foo" is null\n\tat com.x.Y.z(Y.java:50)\n\tat java.base/java.lang.Thread.run(Thread.java:840)',
    ],
    "java cause": [
        "org.springframework.beans.factory.BeanCreationException: Error creating bean with name 'a'\n\tat"
        " x.y.Z(Z.java:1)\n"
        "Caused by: java.lang.ClassNotFoundException: com.mysql.jdbc.Driver\n\tat"
        " java.base/x.Y.z(Y.java:3)\n\t... 12 more",
        "java.lang.ClassNotFoundException: org.postgresql.Driver",
    ],
    "go undefined": ["./main.go:3:5: undefined: fmt", "# example.com/app\n./a/b.go:33:15: undefined: doThing"],
    "go panic": [
        "panic: runtime error: index out of range [5] with length 3\n\ngoroutine 1"
        " [running]:\nmain.main()\n\t/srv/main.go:8"
        " +0x1d\nexit status 2",
        "panic: runtime error: index out of range [0] with length 0",
    ],
    "rust panic": [
        "thread 'main' panicked at src/main.rs:2:5:\nindex out of bounds: the len is 3 but the index is 5\n"
        "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace",
        "thread 'main' panicked at 'index out of bounds: the len is 0 but the index is 10', src/lib.rs:20:50",
        "thread 'tokio-runtime-worker' (4312) panicked at src/x.rs:2:5:\nindex out of bounds: the len is 3 but"
        " the index is 7",
    ],
    "gcc": [
        "x.c:3:5: error: 'foo' undeclared (first use in this function)",
        "In file included from a.h:1:\nsrc/y.c:33:15: error: ‘bar_baz’ undeclared (first use in this"
        " function)\n   33 | bar",
    ],
    "shell": [
        "bash: line 1: jq: command not found",
        "-bash: kubectl: command not found",
        "zsh: command not found: foo",
        "sh: 1: foo: not found",
        "/bin/sh: 1: terraform: not found",
        "/bin/sh: foo: not found",
        "./run.sh: line 12: docker-compose: command not found",
        "bash: foo: command not found",
        "make: foo: Command not found",
    ],
    "cat": [
        "cat: notes: No such file or directory",
        "cat: /srv/a/b.txt: No such file or directory",
        "cat: 'a b.txt': No such file or directory",
    ],
    "git pathspec": [
        "error: pathspec 'foo' did not match any file(s) known to git",
        "error: pathspec 'feature-x' did not match any file(s) known to git.",
    ],
    "git rejected": [
        "To github.com:a/b.git\n ! [rejected]        main -> main (fetch first)\nerror: failed to push some"
        " refs to 'x'",
        "To https://gitlab.com/a/b.git\n ! [rejected]        feat/x -> feat/x (fetch first)\nerror: failed to"
        " push some refs to 'y'"
        "\nhint: Updates were rejected because the remote contains work that you do",
    ],
    "docker daemon": [
        "Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
        "ERROR: Cannot connect to the Docker daemon at tcp://10.0.0.1:2375. Is the docker daemon running?",
    ],
    "kubectl": [
        'Error from server (NotFound): pods "web-7d9f8b6c5-x2x4z" not found',
        'Error from server (NotFound): pods "db" not found',
    ],
    "terraform": [
        '╷\n│ Error: Reference to undeclared resource\n│ \n│   on main.tf line 3, in resource "a" "b":\n│    3:'
        "   x = y.z\n",
        "Error: Reference to undeclared resource\n\n  on net.tf line 30:",
    ],
    "psql": [
        'ERROR:  relation "users" does not exist\nLINE 1: SELECT * FROM users;\n                      ^',
        'psql:x.sql:3: ERROR:  relation "order_items" does not exist',
    ],
    "json body": [
        '{"error": {"message": "The model `gpt-9` does not exist", "type": "invalid_request_error", "code":'
        ' "model_not_found"}}',
        '{"error":{"message":"The model `llama` does not'
        ' exist","type":"invalid_request_error","code":"model_not_found"}}',
    ],
    "segv": ["Segmentation fault (core dumped)", "bash: line 1: 12345 Segmentation fault      (core dumped) ./app"],
}


@pytest.mark.parametrize("case", sorted(SAME))
def test_normalise_occurrences_of_one_error_share_a_signature(case: str) -> None:
    shapes = [normalise(text) for text in SAME[case]]
    assert len({(shape.exception, shape.template) for shape in shapes}) == 1
    assert len({shape.signature for shape in shapes}) == 1


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
