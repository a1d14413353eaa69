"""Regular expressions of the signs take time that grows with the text, not with its square, on hostile shapes too."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any

import pytest
from growth import check_growth

from coherence import detect
from coherence.core import lazy
from coherence.detect import extractors, sources, text_analysis

MODULES = (
    *(f"coherence.detect.{module.name}" for module in iter_modules(detect.__path__)),
    "coherence.policy.danger.unasked",
    "coherence.policy.rules.claims",
    "coherence.policy.rules.quality",
    "coherence.providers.chat_judge",
    "coherence.state.progress",
)
"""Modules of which every pattern is searched for through the whole text, where one search might stop early."""

_AT_A_PLACE = """asked._ADD asked._ASKS extractors._ORDINAL extractors._VERSIONED failure_cues._BEGINNING
failure_cues._DATA failure_cues._GAUGE failure_cues._IDLE failure_cues._NOTHING failure_cues._NO_HITS grounding._VERSION
grounding._WORDLIKE quality._LINES restrictions._CASE text_analysis._FIELD text_analysis._LABEL"""
AT_A_PLACE = frozenset(_AT_A_PLACE.split())
"""Patterns that are tried at one place alone, so that only that takes linear time."""


def held(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the patterns that a name of a module stands for, those in its tables too."""
    if isinstance(value, re.Pattern | lazy._LazyRegex | lazy._TwinRegex):
        yield name, value
    elif isinstance(value, Mapping | tuple | list):
        for key, each in value.items() if isinstance(value, Mapping) else enumerate(value):
            yield from held(f"{name} {key}", each)


def patterns() -> dict[str, Any]:
    """Return each pattern by the first of the names that it has."""
    found: dict[int, tuple[str, Any]] = {}
    for path in MODULES:
        for name, value in vars(import_module(path)).items():
            for label, pattern in held(f"{path.rpartition('.')[2]}.{name}", value) if name[:2] != "__" else ():
                found[id(pattern)] = min(found.get(id(pattern), (label, pattern)), (label, pattern), key=_label)
    return dict(sorted(found.values(), key=_label))  # each worker of a run must collect the same order


def _label(named: tuple[str, Any]) -> str:
    return named[0]


PATTERNS = patterns()
FUNCTIONS: dict[str, Callable[[str], object]] = {
    **extractors.BUILT_IN,
    "attached numbers": lambda text: list(sources._attached(text)),
    "key that commands": text_analysis._commands,
}
"""Functions that search in several steps."""

PIECES = (
    'a', ' ', '\n', '\t', '0', '.', '-', '/', '_', "'", '"', '`', '```', '{', '}', '{{', '{%', '[', '<', '<|', '|',
    '$', '%', ':', 'rm ', 'rm a ', 'rm -rf ', 'no ', 'not found', 'error', 'Error:', 'exit code ', '"error": ',
    '"error": [', '> ', '>>', 'a> ', 'a.', 'a/', 'a=', '1 ', '1.', '\xe9', '\u65e5', '- ', '* ', '# ', '\xa0',
    'http/1.1 4', 'make[1', '__A', '%(a', 'lorem ', 'a\n', ']\n', 'pip ', 'git ', 'sed -i ', 'cat > ', 'tee ',
    'cp a ', 'mv a ', 'in progress', 'pending', 'status: ', 'temperature ', 'null',
    '<title>', '<h1>error ', 'connect E', ': access denied (', 'an error ', 'a:', 'a(1', 'a:1: ', 'a.go:1:1: ',
    'exited with ', 'exit: ', 'a exit', 'returned nonzero exit ', 'npm error', 'a: error', 'http_code', '"__type": "a.',
    'process ', 'process', 'a: cannot ', 'error A', 'error 1',
    'your search ', 'search ', 'no such ', 'a: no such', 'a b: no', '0 results', 'unknown ',
    'mkdir ', 'mkdir -p ', 'mkdir a ', 'earlier ', 'context ', 'conversation ', 'git checkout', '_id', 'aB',
    'ab ', 'exceeded a ', 'over ', 'quota a ', 'quota ',
    'write', 'write(', "write('", 'to_', 'to_a(', 'open(', "open('", "open('a',",
    'a; ', 'a. ', 'a."', 'a: ', '= ',
    'abc: ', 'abc: A', 'tasks ', 'do ', 'do a ', 'accept the ', 'do her ', 'a@', '#1', 'A', 'from',
    '}, ', '), ', '), Ab', 'E   ', 'E   a.', '==== ', '1 failed, ', '1 failed ', 'Tests: ', 'FAILED (',
    '"a', '\u201ca', '1,000', '1 of ', 'a: ', 'npm ', 'npm run ', 'npm -a ', 'cargo ', 'DROP ', 'UPDATE a ', '5 tests ',
    'not found ', 'was not ', 'do not ', 'keep ', 'only edit ', 'budget of ', 'stay under ', 'no a may be ',
    'hands off ', 'a is frozen', 'no problem', 'without any ', 'all done', '1 x ', '12-', 'such as ', 'reply ',
    'said ', 'cat > a.md <<E\n', "echo 'a", 'made ', '```a\n', 'must stay', 'without aing ', 'I do not want ',
    'at most 1', 'a@b.c', 'a@', 'def ', 'sende ', ' no ', ', ', ' but ', '(', '<returncode>',
    '>a\n', '**', 'THOUGHT: ', '1) ', '2024-01-0',
    'I also added a ', 'chapter 1 ', 'CREATE TABLE a', 'tell ', 'make a ', 'and a ', 'other ', '\u628a', '\u6dfb\u52a0',
)  # fmt: skip


@pytest.mark.torture
@pytest.mark.parametrize("name", PATTERNS)
def test_growth_a_pattern_takes_no_more_than_its_share_for_a_longer_text(name: str) -> None:
    pattern = PATTERNS[name]
    check_growth(pattern.match if name in AT_A_PLACE else pattern.findall, PIECES)


@pytest.mark.slow
@pytest.mark.parametrize("name", FUNCTIONS)
def test_growth_a_function_takes_no_more_than_its_share_for_a_longer_text(name: str) -> None:
    check_growth(FUNCTIONS[name], PIECES)


@pytest.mark.slow
@pytest.mark.parametrize("source", [r"[^\W\d_]+\Z", r"\w*counter\b", r"(?:\w+ )?failed\b"])
def test_check_growth_finds_a_search_whose_time_grows_with_the_square(source: str) -> None:
    with pytest.raises(AssertionError):
        check_growth(re.compile(source).findall, PIECES)
