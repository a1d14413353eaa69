import math
from collections import OrderedDict
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, tzinfo
from decimal import Decimal
from enum import Enum, IntEnum
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.guard.safe_json import MAX_DEPTH, MAX_ITEMS, MAX_TEXT, SHORT, tagged

JSON_LIKE = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(exclude_categories=["Cs"]), max_size=50),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=50), inner, max_size=5)
    ),
    max_leaves=20,
)
ANYTHING = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.binary()
    | st.complex_numbers()
    | st.dates(),
    lambda inner: (
        st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(st.integers() | st.text() | st.binary(), inner)
    ),
    max_leaves=30,
)


def size(value: Any) -> int:
    return len(msgspec.json.encode(value))


@given(JSON_LIKE)
def test_tagged_json_stays_as_it_is(value: Any) -> None:
    assert tagged(value) == value


@given(ANYTHING)
def test_tagged_anything_becomes_json(value: Any) -> None:
    encoded = msgspec.json.encode(tagged(value))
    assert msgspec.json.decode(encoded) == tagged(value)
    encoded.decode("utf-8")


class Reads:
    """Does harm in whatever of it is called."""

    def __init__(self) -> None:
        self.called: list[str] = []

    def __repr__(self) -> str:
        self.called.append("repr")
        raise KeyboardInterrupt

    def __str__(self) -> str:
        self.called.append("str")
        raise SystemExit(3)

    def __len__(self) -> int:
        self.called.append("len")
        raise RuntimeError

    __bool__ = __iter__ = __index__ = __len__


class Hostile:
    """Raises whatever is asked of it."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    def __hash__(self) -> int:
        return 1


def test_tagged_no_code_of_an_object_runs() -> None:
    value = Reads()
    expected = {"unserialisable": "Reads", "repr": "Reads"}
    assert tagged(value) == expected
    assert tagged({"a": [value, (value,)], value: {value}}) == {"a": [expected, [expected]], "Reads": [expected]}
    assert tagged({(value, 1): 2}) == {"(Reads, 1)": 2}
    assert value.called == []


def test_tagged_no_property_of_a_dataclass_runs() -> None:
    ran = []

    @dataclass
    class Shadowed:
        x: int = 1

    Shadowed.x = property(lambda self: ran.append(1), lambda self, value: None)  # type: ignore[assignment]
    assert tagged(Shadowed()) == {"x": {"unserialisable": "property", "repr": "property"}}
    assert ran == []


def test_tagged_an_object_that_hides_everything() -> None:
    assert tagged(Hostile())["unserialisable"] == "Hostile"
    assert size(tagged({Hostile(): {Hostile()}})) < 1000


def test_tagged_times_of_a_foreign_zone_are_named_by_their_type() -> None:
    class Zone(tzinfo):
        utcoffset = dst = tzname = lambda self, when: None

        def __repr__(self) -> str:
            raise KeyboardInterrupt

    assert tagged(datetime(2026, 1, 2, tzinfo=Zone())) == {"unserialisable": "datetime", "repr": "datetime"}
    assert tagged(time(1, 2, tzinfo=Zone()))["repr"] == "time"
    assert tagged(datetime(2026, 1, 2, tzinfo=UTC))["repr"].startswith("datetime.datetime(2026, 1, 2, 0, 0, tzinfo=")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (math.nan, ("float", "nan")),
        (-math.inf, ("float", "-inf")),
        (2**64, ("int", "18446744073709551616")),
        (10**100_000, ("int", "332,193 bits")),  # floor(100,000 * log2(10)) + 1 = 332,192.8... -> 332,193
        (b"\x00\xff", ("bytes", r"b'\x00\xff'")),
        (bytearray(40), ("bytearray", repr(bytes(32)) + " and 8 more bytes")),
        (1j, ("complex", "1j")),
        (date(2026, 1, 2), ("date", "datetime.date(2026, 1, 2)")),
        (int, ("type", "<class 'int'>")),
        (Decimal("1.50"), ("Decimal", "Decimal('1.50')")),
        (np.zeros((3000, 4000), np.float32), ("ndarray", "float32 (3000, 4000)")),
        (np.array([object()]), ("ndarray", "object (1,)")),
        (np.int8(3), ("int8", repr(np.int8(3)))),
    ],
    ids=[
        "nan",
        "inf",
        "65bits",
        "googol",
        "bytes",
        "bytearray",
        "complex",
        "date",
        "class",
        "decimal",
        "array",
        "objects",
        "int8",
    ],
)
def test_tagged_what_json_cannot_say(value: Any, expected: Any) -> None:
    assert tagged(value) == dict(zip(("unserialisable", "repr"), expected, strict=True))


def test_tagged_lone_surrogates_in_texts_and_keys() -> None:
    assert tagged({"\ud800": "a\udfffb"}) == {"\ufffd": "a\ufffdb"}


def test_tagged_cycles_and_twins() -> None:
    loop: dict[str, Any] = {"a": 1}
    loop["self"] = [loop]
    assert tagged(loop) == {"a": 1, "self": [{"unserialisable": "dict", "repr": "contains itself"}]}
    twin = [1]
    assert tagged([twin, twin]) == [[1], [1]]


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_tagged_depth() -> None:
    assert tagged(nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    assert '"nested too deep"' in msgspec.json.encode(tagged(nested(MAX_DEPTH + 1))).decode()
    assert size(tagged(nested(100_000))) < 1000


def test_tagged_keys() -> None:
    assert tagged({1: "a", "1": "b", None: "c", (1, 2): "d"}) == {"1": "a", "1 (2)": "b", "None": "c", "(1, 2)": "d"}
    long = tagged({"k" * 1000 + "a": 1, "k" * 1000 + "b": 2})
    assert sorted(len(key) for key in long) == [SHORT + 1, SHORT + 5]
    assert list(long.values()) == [1, 2]


def test_tagged_long_texts_lose_their_middle_and_leave_room_for_what_follows() -> None:
    found = tagged({"prompt": "a" * 10**7, "temperature": 0.5, "short": "b" * MAX_TEXT})
    assert 8000 <= len(found["prompt"]) < 8200
    assert found["temperature"] == 0.5
    assert found["short"] == "b" * MAX_TEXT


@pytest.mark.parametrize(
    "value",
    [
        list(range(10**6)),
        {n: n for n in range(10**5)},
        ["x" * 5000] * 10_000,
        ["\x00" * 5000] * 10_000,
        {f"{'k' * 300}{n}": "v" for n in range(5000)},
        [object()] * 5000,
        {f"{chr(1) * 190}{n}": "v" for n in range(5000)},
        [type("\x01" * 200, (), {})()] * 5000,
        [b"\x00" * 100] * 10_000,
        [[[0] * 100] * 100] * 100,
        set(range(10**5)),
        [math.nan] * 10_000,
    ],
    ids=["ints", "dict", "texts", "nul", "keys", "reprs", "escaped", "names", "bytes", "nested", "set", "nan"],
)
def test_tagged_size_is_bounded(value: Any) -> None:
    found = tagged(value)
    assert size(found) < 500_000
    assert "more" in msgspec.json.encode(found).decode() or "items" in msgspec.json.encode(found).decode()


def test_tagged_the_rest_is_counted() -> None:
    found = tagged([0] * (MAX_ITEMS + 5))
    assert len(found) == MAX_ITEMS + 1
    assert found[-1] == {"unserialisable": "items", "repr": "5 more"}
    assert tagged([0] * MAX_ITEMS) == [0] * MAX_ITEMS


@dataclass
class Point:
    x: int
    y: list[Any] = field(default_factory=list)


@dataclass(slots=True)
class Slotted:
    x: int


class Row(msgspec.Struct):
    a: int
    b: bytes


class Colour(Enum):
    RED = 1


class Level(IntEnum):
    HIGH = 3


class Text(str):
    def __str__(self) -> str:
        raise RuntimeError


class Table(dict[str, int]):
    def items(self) -> Any:
        raise RuntimeError

    def __iter__(self) -> Any:
        raise RuntimeError


def test_tagged_fields_and_subclasses_are_read_without_their_methods() -> None:
    assert tagged(Point(1, [2])) == {"x": 1, "y": [2]}
    assert tagged(Row(1, b"")) == {"a": 1, "b": {"unserialisable": "bytes", "repr": "b''"}}
    assert tagged([Level.HIGH, Text("t"), Table(a=1), OrderedDict(b=2)]) == [3, "t", {"a": 1}, {"b": 2}]
    assert tagged(Colour.RED) == {"unserialisable": "Colour", "repr": "Colour.RED"}
    unset = Slotted.__new__(Slotted)
    assert tagged(unset) == {"x": {"unserialisable": "object", "repr": "cannot be read"}}
    loop = Point(1)
    loop.y.append(loop)
    assert tagged(loop) == {"x": 1, "y": [{"unserialisable": "Point", "repr": "contains itself"}]}


def test_tagged_sets_are_in_order() -> None:
    assert tagged({3, 1, 2}) == [1, 2, 3]
    assert tagged(frozenset({"b", "a", (2, 1)})) == ["a", "b", [2, 1]]
    assert tagged(set(range(2000))) == {"unserialisable": "set", "repr": "2,000 items"}


def test_tagged_a_generator_is_not_used_up() -> None:
    numbers = (n for n in range(3))
    assert tagged(numbers)["unserialisable"] == "generator"
    assert list(numbers) == [0, 1, 2]


def test_tagged_the_value_is_not_changed() -> None:
    value = {"a": [1, {"b": "c" * 10**5}]}
    found = tagged(value)
    found["a"].append(2)
    assert value == {"a": [1, {"b": "c" * 10**5}]}
