"""Values of strangers: what is read of them, by whom, for how long, and what is not run at all."""

from __future__ import annotations

import threading
import time
from collections import UserDict
from collections.abc import Callable, Iterator
from typing import Any

import hostile
import pytest
from hostile import (
    HANGS,
    RAISES,
    Endless,
    cases,
    failing,
    hang,
    lying_number,
    lying_table,
    lying_text,
    speaking,
    touchy,
)

from coherence.core import strangers
from coherence.core.calls import PluginCall
from coherence.core.events import Fault, make_fault
from coherence.core.plain import has_plain_text, is_plain, type_name
from coherence.core.strangers import Asking, ask, ask_each, asking, error_text
from coherence.core.validation import (
    MAX_ITEMS,
    call_text,
    check_count,
    check_flag,
    check_items,
    check_number,
    check_text,
    plain_text,
    shown,
    to_json,
)

SOON_S = 8.0
SHORT = Asking(0.1)
ACTS = {**HANGS, **RAISES}
acts = pytest.mark.parametrize("act", cases(ACTS))


@pytest.fixture(autouse=True)
def end_what_hangs() -> Iterator[None]:
    hostile.let_go()  # of a test before, in another file
    yield
    hostile.let_go()


def test_is_plain_takes_exact_types_only() -> None:
    plain: list[Any] = ["a", 1, 1.5, True, None, [1, "a"], (1, (2,)), {"a": [{"b": None}]}, {}, []]
    assert all(map(is_plain, plain))
    loop: list[Any] = []
    loop.append(loop)
    strange: list[Any] = [b"a", {1: "a"}, {"a": {2}}, lying_text("a", hang), [object()], {"a": touchy(hang)}, loop]
    assert not any(map(is_plain, strange))


def test_type_name_is_the_name_whatever_the_type_says() -> None:
    class Meta(type):
        @property
        def __name__(self) -> str:  # type: ignore[override]
            raise SystemExit

        def __getattribute__(self, name: str) -> Any:
            raise SystemExit

    class Odd(metaclass=Meta):
        pass

    assert type_name(Odd()) == "Odd"


def test_has_plain_text_is_true_where_no_code_of_a_stranger_makes_the_text() -> None:
    class Own(ValueError):
        pass

    assert has_plain_text(ValueError("a", 1)) and has_plain_text(KeyError("a")) and has_plain_text(Own())
    assert not has_plain_text(failing(hang)) and not has_plain_text(ValueError(speaking(hang)))


@acts
def test_error_text_is_none_where_it_cannot_be_read(act: Callable[[], Any]) -> None:
    with asking(SHORT):
        assert error_text(failing(act)) is None
        assert make_fault("a", failing(act)) == Fault("a", "Failing", "its message cannot be shown")
    assert error_text(OSError(2, "no file")) == "[Errno 2] no file"


@acts
def test_shown_of_what_cannot_be_read_is_its_type(act: Callable[[], Any]) -> None:
    with asking(SHORT):
        assert (shown(speaking(act)), shown(touchy(act)), shown(failing(act))) == ("Speaking", "Touchy", "Failing")
        assert shown(lying_text("a", act)) == "Lying"
    assert shown(range(3)) == "range(0, 3)"


@acts
def test_check_text_and_numbers_take_what_lies_for_what_it_is(act: Callable[[], Any]) -> None:
    assert check_text("f", lying_text("a", act), empty=False) == "a"
    assert type(check_text("f", lying_text("a", act))) is str and plain_text(lying_text("b", act)) == "b"
    number, count = check_number("f", lying_number(float, 0.5, act)), check_count("f", lying_number(int, 3, act))
    assert (number, count, type(number), type(count)) == (0.5, 3, float, int)
    assert check_items("f", lying_table(list, act, [1, 2])) == check_items("f", lying_table(tuple, act, [1, 2]))
    assert call_text("Bash", lying_text("ls", act)) == "Bash(ls)"
    with pytest.raises(ValueError, match=r"^f must not be empty, not ' '$"):
        check_text("f", lying_text(" ", act), empty=False)
    with asking(SHORT), pytest.raises(ValueError, match=r"^f must be in \[0, 1\], not Lying$"):
        check_number("f", lying_number(int, 2, act), least=0, most=1)


@acts
def test_check_text_refuses_what_only_says_that_it_is_a_text(act: Callable[[], Any]) -> None:
    class Claims:
        __class__ = str  # type: ignore[assignment]

    for check in (check_text, check_number, check_count, check_flag, check_items):
        for value in (Claims(), touchy(act)):
            with asking(SHORT), pytest.raises(TypeError, match=r"^f must be "):
                check("f", value)


def test_check_items_of_a_sequence_without_an_end_reads_a_bounded_part() -> None:
    class Quick(Endless):  # a class of its own: one that has hung elsewhere is not asked again for a while
        pass

    with asking(Asking(60.0)):
        assert len(check_items("f", Quick())) == MAX_ITEMS


def test_check_items_of_a_slow_sequence_without_an_end_is_refused_in_time() -> None:
    class Slow(Endless):
        def __iter__(self) -> Iterator[float]:
            for item in super().__iter__():
                time.sleep(0.001)  # MAX_ITEMS of them would take a quarter of an hour
                yield item

    begun = time.monotonic()
    with asking(SHORT), pytest.raises(ValueError, match=r"^f cannot be read: timeout in Slow$"):
        check_items("f", Slow())
    assert time.monotonic() - begun < SOON_S


@acts
def test_to_json_names_the_type_of_what_cannot_be_read(act: Callable[[], Any]) -> None:
    faults: list[tuple[str, str]] = []
    given = lying_table(
        dict, act, {"a": speaking(act), lying_text("b", act, is_key=True): lying_table(list, act, [1]), "c": 2j}
    )
    with asking(Asking(1.0, lambda field, failure: faults.append((field, failure.source)))):
        assert to_json("f", given) == b'{"a":"<Speaking>","b":[1],"c":"2j"}'
    assert faults == [("f", "Speaking")]


def test_to_json_of_a_key_that_hangs_is_the_type_of_the_table() -> None:
    class Key:
        def __str__(self) -> str:
            hang()
            return "late"

    with asking(SHORT):
        assert to_json("f", [{Key(): 1}, {"a": 1}]) == b'["<dict>",{"a":1}]'
        assert to_json("f", {2j: 1, 3: "a", None: None}) == b'{"2j":1,"3":"a","None":null}'  # other dicts are read


def test_to_json_of_a_mapping_is_its_text() -> None:
    assert to_json("f", UserDict(a=1)) == b"\"{'a': 1}\""


def test_ask_each_goes_on_after_a_value_that_hangs() -> None:
    with asking(Asking(0.4)):
        calls = ask_each([(speaking(hang), hang), (object(), lambda: 2), (object(), lambda: 3)])
    assert [call.value for call in calls] == [None, 2, 3]
    assert [call.failure.kind for call in calls if call.failure] == ["timeout"]


def test_ask_each_reads_one_value_of_a_type_that_hangs() -> None:
    class Slow:
        pass

    asked: list[int] = []

    def read() -> None:
        asked.append(1)
        hang()

    with asking(Asking(0.3)):
        begun = time.monotonic()
        calls = ask_each([(Slow(), read) for _ in range(100)])
        calls += ask_each([(Slow(), read) for _ in range(100)])
        assert time.monotonic() - begun < SOON_S
    assert asked == [1] and all(call.failure is not None for call in calls)


def test_ask_recovers_when_what_hung_has_ended() -> None:
    class Slow:
        pass

    def tried() -> PluginCall:
        return ask(Slow(), lambda: "read")

    with asking(SHORT):
        assert ask(Slow(), hang).value is None
    assert tried().value is None
    hostile.let_go()
    until = time.monotonic() + SOON_S
    while tried().value is None:
        assert time.monotonic() < until
        time.sleep(0.01)


def test_ask_asks_nobody_while_too_many_hang(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strangers, "MAX_RUNNING", 2)
    with asking(SHORT):
        for _ in range(2):
            assert ask(speaking(hang), hang).failure.kind == "timeout"  # type: ignore[union-attr]
        assert ask(object(), lambda: 1).failure.kind == "disabled"  # type: ignore[union-attr]


def test_ask_without_a_thread_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_thread(job: object) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("coherence.core.plugin_calls.submit", no_thread)
    assert to_json("f", {"a": 2j}) == b'{"a":"<complex>"}'


def test_ask_runs_no_code_of_a_stranger_on_the_thread_of_the_host() -> None:
    threads: list[int] = []

    class Tells:
        def __str__(self) -> str:
            threads.append(threading.get_ident())
            return shown(self)

        def __repr__(self) -> str:
            threads.append(threading.get_ident())
            return "told"

    assert to_json("f", [Tells()]) == b'["told"]'
    # what it hands over in turn is read where it is
    assert len(threads) == 2 and len(set(threads)) == 1 and threads[0] != threading.get_ident()
