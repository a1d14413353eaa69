"""Results that the statements of a message are held against: failed calls, checks, states, numbers, unread files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, TypeAlias

import msgspec

from coherence.core.lazy import lazy_regex
from coherence.core.readings import excerpt
from coherence.core.words import word_set
from coherence.detect.claim_words import (
    BROAD,
    CLAUSE,
    DONE_WORDS,
    clause_words,
    clauses_of,
    done_acts,
    is_plain,
    negations,
)
from coherence.detect.text_analysis import is_name, tokens
from coherence.detect.told_states import (
    QUOTED,
    STATES,
    StateTold,
    claimed,
    has,
    same_thing,
    says_there_is,
    with_singulars,
)

ClaimKind: TypeAlias = Literal["done", "tests", "state", "amount", "unread"]
"""Subject of a claim: something done, tests, how something is, how much of it there is, a file that nobody saw."""

_SUCCESS = lazy_regex(
    r"\b(?:successful(?:ly)?|all set|(?:it|that|this) worked|went through|taken care of|(?:is|are|all) done|^done"
    r"|success|erfolgreich|avec succès|con éxito)\b",
    re.IGNORECASE,
)
"""Words of success where the call just before failed, whatever was done."""
_ALL = word_set("all every everything both each entire whole alle alles beide tous toutes todos todas")

_TEST_WORDS = word_set("test tests suite suites specs checks unittests testsuite pipeline ci tests' testes pruebas")
_EVERYTHING = word_set("everything alles tout todo")
_BUILD_WORDS = word_set("build builds compiles compile compiled project code crate package app")

_PASSING = word_set(
    "pass passes passed passing green cleanly succeed succeeds succeeded grün bestanden passent réussis pasan"
)
_COMPILES = word_set("cleanly compiles compiled builds succeeds succeeded green")

_LINT_WORDS = word_set(
    "ruff flake8 pylint eslint mypy pyright lint linter linting linters types typing findings warnings checker clippy"
)
_LINTED = word_set("clean cleanly passes pass passed happy green fixed resolved gone satisfied succeeds succeeded")
_SOME = word_set("of except but remaining remain remains some most left")

_CHECKED = (
    ("tests", _TEST_WORDS, _PASSING),
    ("build", _BUILD_WORDS, _COMPILES),
    ("lint", _LINT_WORDS, _LINTED),
)
"""Kind of check, words of which one is what is checked, words of which one says that it is well."""

_REVIEWED = word_set(
    "reviewed read analyzed analysed examined inspected checked handles implements defines contains uses looks "
    "validates returns parses function functions class method methods code structure"
)

_AMOUNT = lazy_regex(
    r"(?<![\w.,#-])[$€£]?(\d{1,3}(?:,\d{3}){1,4}(?:\.\d{1,4})?|\d{1,12}(?:\.\d{1,4})?)(?![\w#]|[.,:-]\d)"
)

_CLOCK = lazy_regex(
    r"\d:\d\d|\b\d{1,2} ?(?:[ap]m|uhr|h)\b|o['’]clock"
    r"|\b(?:morning|noon|afternoon|evening|between|from|before|after|slot)\b",
    re.IGNORECASE,
)

_BESIDE = word_set(
    "total totals remaining left difference missing short more less fewer extra plus minus per each after new old sum "
    "average rest change increase decrease refund fee tax discount saving savings gesamt rest differenz"
)
"""Words by which a number is another one than a field of nearly that name."""


class Attempt(msgspec.Struct):
    """A call that does something, and how it came out."""

    seq: int
    """Number of its result."""
    tool: str
    acts: list[str]
    objects: list[str]
    """Tokens of its arguments, those that name one thing first."""
    failed: bool = False
    partly: bool = False
    """True if its result says that some of it was done."""
    line: str = ""
    """The telling line of its result."""

    def names(self, said: frozenset[str]) -> bool:
        """Tell whether a sentence names one thing that the call names."""
        return any(is_name(each) and each in said for each in self.objects)


class Contradiction(msgspec.Struct, frozen=True):
    """A claim and the result that says otherwise."""

    seq: int
    """Number of the message or call that makes the claim; 0 = of an earlier session."""
    kind: ClaimKind
    claim: str
    """Its sentence."""
    other: int
    """Number of the result."""
    result: str
    """The telling line of the result."""
    value: str = ""
    """Of an amount: the number that is claimed."""


class HeldResults(NamedTuple):
    """Results that the statements of a message are held against."""

    attempts: list[Attempt]
    states: list[StateTold]
    runs: dict[str, Attempt]
    unread: dict[str, Attempt]
    fresh: Attempt | None = None
    """The newest call of all, where it failed."""
    sole: bool = False
    """True if a message answers after one call, of which each state is told once."""

    def contradicts(self, statement: str) -> tuple[ClaimKind, Attempt | StateTold] | None:
        """Return what a statement is about, and the result that says otherwise."""
        clauses = list(clauses_of(statement))
        said = with_singulars(tokens(statement)) if self.states or self._speaks(clauses) else frozenset[str]()
        for words in clauses:
            if not is_plain(words):
                continue
            checks = self._checks(words) if self.runs else None
            if checks is not None:
                return "tests", checks
            attempt = self._undone(words, said, begins=words is clauses[0]) if self.attempts else None
            if attempt is None and self.fresh is not None and not negations(words):
                broad = not BROAD.isdisjoint(done_acts(words, begins=words is clauses[0]))
                told = (broad and bool(self.fresh.acts)) or _SUCCESS.search(" ".join(words)) is not None
                attempt = self.fresh if told and not _elsewhere(set(filter(is_name, said)), self.fresh) else None
            if attempt is not None:
                return "done", attempt
            state = self._state(words, said, statement) if self.states else None
            if state is not None:
                return "state", state
        if self.unread:
            unread = self._unread(statement, said)
            if unread is not None:
                return "unread", unread
        return None

    def _speaks(self, clauses: Iterable[Sequence[str]]) -> bool:
        """Tell whether a clause has a word by which something was done."""
        return bool(self.unread) or any(not DONE_WORDS.isdisjoint(words) for words in clauses)

    def _checks(self, words: list[str]) -> Attempt | None:
        """Return the newest run of tests or of the build that fails where the clause says that all is well."""
        known = frozenset(words)
        if negations(words):
            return None
        for name, subjects, passing in _CHECKED:
            run = self.runs.get(name)
            if run is None or passing.isdisjoint(known) or (subjects | _EVERYTHING).isdisjoint(known):
                continue
            if name == "lint" and not known.isdisjoint(_SOME):
                continue
            if (
                # "The login test passes" may be right where others fail.
                name == "tests"
                and _ALL.isdisjoint(known)
                and not known & {"tests", "suite", "suites", "specs", *_EVERYTHING}
            ):
                continue
            return run
        return None

    def _undone(self, words: list[str], said: frozenset[str], *, begins: bool) -> Attempt | None:
        """Return the call that failed where the clause says that it was done."""
        acts = done_acts(words, begins=begins)
        if not acts:
            return None
        whole = not _ALL.isdisjoint(words)
        succeeded: set[str] = set()
        named = {each for each in said if is_name(each)}
        for attempt in reversed(self.attempts):
            same = acts.intersection(attempt.acts)
            if attempt.partly:
                if whole and same:
                    return attempt
            elif not attempt.failed:
                succeeded.update(attempt.acts)
                # Read from the newest on: what failed before has been made up for.
                if named and attempt.names(said):
                    return None
            elif attempt.names(said):
                if same or "any" in acts or not attempt.acts:
                    return attempt
            elif same and (whole or (not same & succeeded and not _elsewhere(named, attempt))):
                return attempt
        return None

    def _state(self, words: list[str], said: frozenset[str], statement: str) -> StateTold | None:
        """Return the newest state told of the same thing where the clause says the opposite."""
        claims: dict[str, bool] = {}
        for topic, pole in claimed(words):
            claims.setdefault(topic, pole)
        if not claims and not says_there_is(words):
            return None
        denied, clause = negations(words), tokens(" ".join(words))
        if denied > 1:
            return None
        for state in reversed(self.states):
            known = state.topic in STATES
            value = claims.get(state.topic) if known else None if state.number else has(state.topic, words, clause)
            if value is None:
                continue
            alone = self.sole and known and not state.record
            alone = alone and {each for each in said if is_name(each)} <= {*state.about}
            if not (alone or same_thing(state, said)):
                continue
            # "free at 17:00" says nothing of the whole day
            if state.topic == "free" and _CLOCK.search(statement) is not None:
                continue
            if denied:
                value = not value
            return state if value != state.value else None
        return None

    def _unread(self, statement: str, said: frozenset[str]) -> Attempt | None:
        """Return the call that did not find the file of which the statement tells what is in it."""
        words = clause_words(statement)
        if negations(words) or _REVIEWED.isdisjoint(words) or not is_plain(words):
            return None
        return next((call for name, call in self.unread.items() if name.casefold() in statement.casefold()), None)


def amounts_beside(
    seq: int, statement: str, counted: Sequence[StateTold], alone: StateTold | None
) -> Iterator[Contradiction]:
    """Yield the numbers of a statement that differ from the one that a result has for the same thing."""
    for clause in CLAUSE.split(statement):
        amounts = _AMOUNT.findall(clause or "")
        # Of several numbers nobody can tell which one is the field's.
        if len(amounts) != 1 or not is_plain(words := clause_words(clause)):
            continue
        said = with_singulars(tokens(statement))
        # "more than 5" gives the number itself, "2 more" another one.
        told = frozenset(words) - ({"more", "less"} if "than" in words else set())
        amount, about = float(amounts[0].replace(",", "")), tokens(clause)
        state = next((each for each in reversed(counted) if _is_number_of(each, told, about, said)), None)
        state = state or (alone if told.isdisjoint(_BESIDE) else None)
        if state is not None and state.number is not None and not _alike(amount, state.number):
            result = excerpt(state.line, QUOTED)
            yield Contradiction(seq, "amount", excerpt(statement, QUOTED), state.seq, result, amounts[0])


def _is_number_of(state: StateTold, told: frozenset[str], about: frozenset[str], said: frozenset[str]) -> bool:
    """Tell whether a clause speaks of the field that has a number."""
    own = state.line.casefold().replace("_", " ").split()
    return (
        all(part in about for part in state.topic.split())
        and same_thing(state, said, least=1)
        and told.isdisjoint(_BESIDE.difference(own))
    )


def _alike(amount: float, number: float) -> bool:
    """Tell whether a number may be another one, rounded."""
    return abs(amount - number) <= max(0.5, abs(number) * 0.005)


def _elsewhere(named: set[str], attempt: Attempt) -> bool:
    """Tell whether a sentence names things, and none of them is the call's."""
    own = set(filter(is_name, attempt.objects))
    return bool(named) and bool(own) and own.isdisjoint(named)
