"""The own frames that are nearest to where an error was raised."""

from __future__ import annotations

import pytest

from coherence.lessons.normal import normalise

FRAMES = [
    (
        'Traceback (most recent call last):\n  File "/srv/app/main.py", line 3, in <module>\n    run()\n'
        '  File "/srv/app/jobs.py", line 9, in run\n    yaml.load(x)\n'
        '  File "/usr/lib/python3/dist-packages/yaml/__init__.py", line 81, in load\n    return 1\nValueError:'
        " no such loader",
        ("jobs.py:run", "main.py:module"),
    ),
    (
        "TypeError: x is not a function\n    at load (/srv/app/load.js:3:5)\n    at /srv/app/index.js:9:1\n"
        "    at next (/srv/app/node_modules/express/lib/router.js:1:1)\n    at node:internal/main:1:1",
        ("load.js:load", "index.js"),
    ),
    (
        'Exception in thread "main" java.lang.IllegalStateException: not open\n\tat java.base/java.util.X.y(X.java:3)\n'
        "\tat com.acme.Store.read(Store.java:12)\n\tat org.springframework.web.A.b(A.java:9)\n\tat"
        " com.acme.App.main(App.java:5)",
        ("Store.java:read", "App.java:main"),
    ),
    (
        "Unhandled exception. System.InvalidOperationException: Sequence contains no elements\n"
        "   at System.Linq.Enumerable.First[T](IEnumerable`1 source)\n   at Acme.App.Load(String id) in"
        " /srv/App.cs:line 12",
        ("App.cs:Load",),
    ),
    (
        "panic: assignment to entry in nil map\n\ngoroutine 1"
        " [running]:\nmain.fill(...)\n\t/srv/app/main.go:8\nmain.main()\n"
        "\t/srv/app/main.go:3 +0x1d\nruntime.main()\n\t/usr/local/go/src/runtime/proc.go:250",
        ("main.go:fill", "main.go:main"),
    ),
    (
        "thread 'main' panicked at src/main.rs:2:5:\nnot yet\nstack backtrace:\n   0: rust_begin_unwind\n"
        "             at /rustc/abc/library/std/src/panicking.rs:5\n   1: app::load\n             at ./src/load.rs:3:5",
        ("load.rs:load",),
    ),
    ("a.rb:3:in `f': undefined method `x' for nil (NoMethodError)\n\tfrom a.rb:9:in `main'", ("a.rb:f", "a.rb:main")),
    (
        "PHP Fatal error:  Uncaught Exception: no row in /srv/a.php:3\nStack trace:\n#0 /srv/b.php(9):"
        " load('x')\n#1 {main}",
        ("b.php:load",),
    ),
    ("src/a.ts(3,5): error TS2304: Cannot find name 'foo'.", ("a.ts",)),
    ("ls: cannot access 'x': No such file or directory", ()),
]


@pytest.mark.parametrize(("text", "frames"), FRAMES)
def test_normalise_own_frames_come_nearest_first(text: str, frames: tuple[str, ...]) -> None:
    assert normalise(text).frames == frames


def test_normalise_no_more_than_three_frames_are_kept() -> None:
    stack = "".join(f"    at f{at} (/srv/{at}.js:1:1)\n" for at in range(9))
    assert normalise("TypeError: x is not a function\n" + stack).frames == ("0.js:f0", "1.js:f1", "2.js:f2")
