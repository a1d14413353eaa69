import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, tzinfo
from decimal import Decimal
from enum import Enum
from typing import Any

import hostile
import msgspec
import numpy as np
import pytest
from hostile import RAISES, hang
from hypothesis import given
from hypothesis import strategies as st

from coherence.guard.safe_json import MAX_DEPTH, MAX_ITEMS, MAX_TEXT, tagged
from coherence.guard.shorten import shortened

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
    value, expected = Reads(), {"unserialisable": "Reads"}
    assert tagged({"a": [value, (value,)], value: {value}}) == {"a": [expected, [expected]], "Reads": [expected]}
    assert value.called == []
    assert tagged({"a": Hostile()}) == {"a": {"unserialisable": "Hostile"}}
    numbers = (n for n in range(3))
    assert tagged(numbers) == {"unserialisable": "generator"}
    assert list(numbers) == [0, 1, 2]


@dataclass
class Provider:
    key: str


class Colour(Enum):
    RED = 1


class Text(str):
    def __str__(self) -> str:
        raise RuntimeError


class Table(dict[str, int]):
    def items(self) -> Any:
        raise RuntimeError


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (math.nan, {"unserialisable": "float", "repr": "nan"}),
        (2**64, {"unserialisable": "int", "repr": "18446744073709551616"}),
        (b"\x00\xff", {"unserialisable": "bytes", "repr": r"b'\x00\xff'"}),
        (int, {"unserialisable": "type"}),
        (np.zeros((3000, 4000), np.float32), {"unserialisable": "ndarray", "repr": "float32 (3000, 4000)"}),
        (np.int8(3), 3),
        (datetime(2026, 1, 2, tzinfo=UTC), "2026-01-02 00:00:00+00:00"),
        (Decimal("1.50"), "1.50"),
        ({"\ud800": "a\udfffb"}, {"\ufffd": "a\ufffdb"}),
        ({1: "a", None: "b"}, {"1": "a", "None": "b"}),
        (frozenset({"b", "a", (2, 1)}), ["a", "b", [2, 1]]),
        (Provider("a secret"), {"unserialisable": "Provider"}),
        ([Text("t"), Table(a=1), OrderedDict(b=2), Colour.RED], ["t", {"a": 1}, {"b": 2}, "RED"]),
    ],
)
def test_tagged_says_what_json_cannot(value: Any, expected: Any) -> None:
    assert tagged(value) == expected


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


def test_tagged_follows_containers_to_a_bounded_depth() -> None:
    assert tagged(nested(MAX_DEPTH)) == nested(MAX_DEPTH)
    assert '"nested too deep"' in msgspec.json.encode(tagged(nested(MAX_DEPTH + 1))).decode()
    loop: list[Any] = []
    loop += [loop, loop]  # 2**20 lists, were they not counted
    assert size(tagged(loop)) < 100_000


@pytest.mark.parametrize(
    "value",
    [
        list(range(10**6)),
        ["x" * 5000] * 10_000,
        ["\x00" * 5000] * 10_000,
        {f"{'k' * 300}{n}": "v" for n in range(5000)},
        [object()] * 5000,
        [type("\x01" * 200, (), {})()] * 5000,
        [b"\x00" * 100] * 10_000,
        [[[0] * 100] * 100] * 100,
        set(range(10**5)),
    ],
    ids=["ints", "texts", "nul", "keys", "reprs", "names", "bytes", "nested", "set"],
)
def test_tagged_size_is_bounded_and_the_rest_is_counted(value: Any) -> None:
    found = msgspec.json.encode(tagged(value))
    assert len(found) < 500_000
    assert b" more" in found
    assert tagged([0] * (MAX_ITEMS + 5))[-1] == {"unserialisable": "items", "repr": "5 more"}


TOKEN = "sk-ant-api03-" + "Ab3dE5fG7h" * 9
PEM = "\n".join(
    ["-----BEGIN RSA " + "PRIVATE KEY-----", *["Ab3dE5fG7hIj9Kl1" * 4] * 50, "-----END RSA " + "PRIVATE KEY-----"]
)


@pytest.mark.parametrize("secret", [TOKEN, PEM, f"password={'hunter22' * 8}"], ids=["token", "pem", "password"])
@pytest.mark.parametrize("most", [200, 2_000, MAX_TEXT])
def test_shortened_no_half_of_a_secret_stays_wherever_the_cut_falls(secret: str, most: int) -> None:
    value = secret.removeprefix("password=")
    pieces = [value[at : at + 12] for at in range(0, len(value) - 12, 4)]
    for share in range(11):
        at = most // 2 - len(secret) * share // 10
        text = "a b " * 5_000 + "\n" + secret + "\n" + "c d " * 5_000
        for cut in (text[20_001 - max(at, 0) :], text[: 20_001 + len(secret) + max(at, 0)]):
            found = shortened(cut, most)
            assert not any(piece in found for piece in pieces)


@given(st.integers(0, 400), st.integers(2, 3_000))
def test_shortened_what_moves_up_from_a_cut_shows_no_secret_either(count: int, most: int) -> None:
    text = f"{TOKEN} " * count
    assert len(text) <= most or "Ab3dE5fG7h" not in shortened(text, most)


@given(st.text(max_size=300), st.integers(2, 100))
def test_shortened_short_texts_stay_and_long_ones_say_what_was_left_out(text: str, most: int) -> None:
    found = shortened(text, most)
    found.encode()
    assert found == text if len(text) <= most else f"{len(text):,} characters left out" in found


@pytest.mark.parametrize("act", [hang, *RAISES.values()], ids=["hangs", *RAISES])
def test_tagged_asks_no_zone_number_enum_or_type_of_a_stranger(act: Callable[[], Any]) -> None:
    def lie(*args: Any) -> Any:
        return act()

    zone = type("Zone", (tzinfo,), dict.fromkeys(["utcoffset", "dst", "tzname"], lie))()
    number = type("Number", (np.float64,), {"item": lie})(0.5)

    class Shade(Enum):
        RED = 1

    red = Shade.RED
    Shade.__getattribute__ = lie  # type: ignore[method-assign]
    odd = type("Meta", (type,), {"__name__": property(lie), "__hash__": lie, "__eq__": lie})("Odd", (), {})()
    begun = time.monotonic()
    assert tagged([datetime(2026, 1, 2, tzinfo=zone), number, red, odd, {odd: 1}]) == [
        {"unserialisable": "datetime"},
        0.5,
        "RED",
        {"unserialisable": "Odd"},
        {"Odd": 1},
    ]
    assert time.monotonic() - begun < 8
    assert tagged([datetime(2026, 1, 2, tzinfo=UTC)]) == ["2026-01-02 00:00:00+00:00"]
    hostile.let_go()
