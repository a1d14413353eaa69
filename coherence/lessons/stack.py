"""The nearest own frames of a stack trace, in the languages that agents run."""

from __future__ import annotations

import re

from coherence.core.lazy import lazy_regex

MAX_FRAMES = 3
MAX_SCANNED = 200
"""Lines with a frame that are looked at."""


def own_frames(lines: list[str], place: str) -> tuple[str, ...]:
    r"""Return the own frames that are nearest to where the error was raised, nearest first, at most three.

    Own is what is neither a library's, nor the runtime's, nor a test runner's. Python prints the nearest frame last,
    all others print it first.

    Parameters
    ----------
    lines : list of str
        The output, as `clean_lines` returns it.
    place : str
        The file a compiler named before its message, which is a frame too; may be empty.

    Examples
    --------
    >>> own_frames(["TypeError: x", "    at load (/srv/app.js:3:5)", "    at run (/srv/node_modules/y/i.js:1:1)"], "")
    ('app.js:load',)
    """
    nearest: list[str] = []
    seen = ""
    for line in reversed(lines):
        if "Traceback (most recent call last)" in line and nearest:
            break
        found = _PYTHON.search(line) if 'File "' in line else _PYTEST.match(line) if ".py:" in line else None
        if found and found[0] != seen:  # a recursion repeats its frame
            seen = found[0]
            _add(nearest, found[1], found[2] or "")
        if len(nearest) == MAX_FRAMES:
            break
    root = max((at for at, line in enumerate(lines) if "Caused by: " in line), default=0)
    for start in (root, 0) if not nearest else ():
        for at in range(start, min(start + MAX_SCANNED, len(lines))):
            if len(nearest) < MAX_FRAMES and any(sign in lines[at] for sign in _SIGNS):
                _add_frame(nearest, lines[at], lines[at - 1] if at else "")
    if not nearest and place and not _FOREIGN.search(place):
        nearest = [_base(place)]
    return tuple(nearest)


def _add_frame(frames: list[str], line: str, before: str) -> None:
    located = _INDENTED_PLACE.match(line)
    if located:
        called = _CALLED.match(before)
        if called:
            _add(frames, located[1], re.split(r"[.:]+", called[1])[-1])
        return
    for pattern in (_NODE, _JAVA, _CSHARP, _RUBY, _PHP):
        found = pattern.match(line)
        if found:
            function = found["function"] or ""
            if pattern is not _JAVA or not _FOREIGN_JAVA.match(function):
                _add(frames, found["path"], function.rpartition(".")[2])
            return


def _add(frames: list[str], path: str, function: str) -> None:
    if path.startswith("<") or _FOREIGN.search(path):
        return
    base = _base(path)[:80]
    function = function.strip("<>`'\" ")[:60]
    frame = f"{base}:{function}" if function else base
    if frame not in frames:
        frames.append(frame)


def _base(path: str) -> str:
    return re.split(r"[\\/]", path)[-1]


_SIGNS = ("at ", ".rb:", ".go:", ".rs:", "#")
_PYTHON = lazy_regex(r"File \"([^\"\n]{1,400})\", line \d{1,8}(?:, in (\S{1,100}))?")
_PYTEST = lazy_regex(r"([^\s:]{1,300}\.py):\d{1,7}: (?:in (\S{1,100})$|[A-Z]\w+$)")
_JAVA = lazy_regex(
    r"\s*at (?:\w[\w.-]{0,40}(?:@[\w.-]{1,20})?//?)?(?P<function>[\w.$<>]{1,200})"
    r"\((?P<path>[\w$-]{1,100}\.(?:java|kt|scala|groovy)):\d{1,7}\)"
)
_CSHARP = lazy_regex(r"\s*at (?P<function>[\w.<>`+\[\], ]{1,200})\(.{0,300}\) in (?P<path>.{1,300}):line \d{1,7}")
_NODE = lazy_regex(
    r"\s*at (?:async )?(?:new )?(?:(?P<function>[\w.$<>\[\] #]{1,120}) \()?(?:file://)?"
    r"(?P<path>(?:[A-Za-z]:)?[^\s:()]{1,300}|node:[^\s:()]{1,200}):\d{1,7}:\d{1,7}\)?"
)
_RUBY = lazy_regex(r"\s*(?:from )?(?P<path>[^\s:]{1,300}\.rb):\d{1,7}:in [`'](?P<function>[^'`\n]{1,100})'")
_PHP = lazy_regex(r"#\d{1,4} (?P<path>[^\s(]{1,300})\(\d{1,7}\): (?P<function>[\w\\:>-]{1,150})\(")
_INDENTED_PLACE = lazy_regex(r"\s+(?:at )?([^\s:]{1,300}\.(?:go|rs)):\d{1,7}")
_CALLED = lazy_regex(r"\s*(?:\d{1,4}: )?([\w./:*()<>{}-]{1,200}?)(?:\(|$)")
_FOREIGN = lazy_regex(
    r"site-packages|dist-packages|node_modules|[\\/]lib[\\/]python\d|python\d[\d.]*[\\/]lib|^node:|^internal/"
    r"|[\\/]rustc/|^/usr/"
    r"|/\.cargo/registry|/go/pkg/mod|/usr/local/go/|/libexec/|[\\/]vendor[\\/]|[\\/]gems[\\/]|^<|_pytest[\\/]"
    r"|[\\/]unittest[\\/]"
    r"|/goroot/|/runtime/|^/build/|/_work/|library/(?:core|std|alloc)/|^\.\./deps_v8|webpack/|dist/compiled"
)
_FOREIGN_JAVA = lazy_regex(
    r"(?:javax?|jakarta|sun|jdk|com\.sun|kotlin|kotlinx|scala|groovy|org\.(?:springframework|junit|apache"
    r"|gradle|hibernate"
    r"|eclipse|testng|mockito|assertj|codehaus|postgresql|jetbrains|slf4j)|com\.(?:fasterxml|google|mysql"
    r"|zaxxer|intellij)"
    r"|io\.(?:netty|grpc|micrometer)|reactor|akka|feign|okhttp3)\."
)
