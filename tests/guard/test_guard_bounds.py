"""Bounds: what a patch may change, whatever the patch; all of it is accepted, or nothing."""

import math
from decimal import Decimal
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.guard.bounds import MAX_DEPTH, MAX_KEYS, MAX_REASONS, ROUNDING, Bound, Bounds, merged

BOUNDS = Bounds(
    {
        "temperature": Bound(least=0, most=1, step=0.1),
        "retry.limit": Bound(least=0, most=10, whole=True, step=2),
        "retry.wait_s": Bound(least=0.5, most=60, step_ratio=0.25),
        "timeout_s": Bound(least=1, most=600, step=100, step_ratio=0.5),
        "free": Bound(least=-5, most=5),
        "model": Bound(choices=("small", "large")),
        "fallback": Bound(choices=(True, False)),
        "n": Bound(choices=(1, 2.5, None)),
    }
)
CURRENT: dict[str, Any] = {
    "temperature": 0.8,
    "retry": {"limit": 3, "wait_s": 10, "jitter": True},
    "timeout_s": 100.0,
    "model": "small",
    "fallback": False,
    "n": 2.5,
    "tools": ["a"],
    "other": {"x": 1},
}


def refused(patch: Any, current: Any = CURRENT, bounds: Any = BOUNDS) -> list[tuple[str, str]]:
    judged = bounds.judge(patch, current)
    assert judged.patch is None
    assert judged.apply is False
    assert judged.refusals
    return [(one.key, one.rule) for one in judged.refusals]


def accepted(patch: Any, current: Any = CURRENT, bounds: Any = BOUNDS) -> Any:
    judged = bounds.judge(patch, current)
    assert judged.refusals == ()
    return judged.patch


@pytest.mark.parametrize(
    "patch",
    [
        {"temperature": 0.7},  # 0.8 - 0.7 = 0.10000000000000009, forgiven
        {"timeout_s": 150},  # both a step of 100 and half of 100 hold
        {"free": 5},  # not in the configuration, no step
        {"temperature": 0.9}, {"retry": {"limit": 5}}, {"retry": {"limit": 1, "wait_s": 12.5}}, {"free": -5.0},
        {"model": "large"}, {"fallback": True}, {"n": None}, {"n": 1},
    ],
)  # fmt: skip
def test_judge_accepts_a_patch_within_bounds_as_given(patch: Any) -> None:
    assert accepted(patch) == patch


@pytest.mark.parametrize(
    ("patch", "key", "rule"),
    [
        ({"temperature": 0.69}, "temperature", "step"), ({"temperature": 1.01}, "temperature", "range"),
        ({"temperature": "0.8"}, "temperature", "kind"), ({"temperature": True}, "temperature", "kind"),
        ({"temperature": math.nan}, "temperature", "finite"), ({"temperature": math.inf}, "temperature", "finite"),
        ({"temperature": None}, "temperature", "kind"), ({"temperature": Decimal("0.8")}, "temperature", "kind"),
        ({"temperature": [0.8]}, "temperature", "kind"), ({"temperature": {"a": 0.8}}, "temperature", "kind"),
        ({"temperature": 10**400}, "temperature", "range"), ({"retry": {"limit": 6}}, "retry.limit", "step"),
        ({"retry": {"limit": 4.0}}, "retry.limit", "kind"), ({"retry": {"limit": -1}}, "retry.limit", "range"),
        ({"retry": {"wait_s": 12.6}}, "retry.wait_s", "step"), ({"retry": {"jitter": False}}, "retry.jitter", "key"),
        ({"retry": 3}, "retry", "shape"), ({"retry": {}}, "retry", "shape"),
        ({"retry.limit": 4}, "retry.limit", "shape"), ({"timeout_s": 151}, "timeout_s", "step"),
        ({"model": "huge"}, "model", "choice"), ({"model": "small\x00"}, "model", "choice"),
        ({"fallback": 1}, "fallback", "choice"), ({"n": True}, "n", "choice"), ({"n": 1.0}, "n", "choice"),
        ({"tools": ["a", "b"]}, "tools", "key"), ({"other": {"x": 2}}, "other", "key"),
        ({"__class__": 1}, "__class__", "key"), ({1: 2}, "", "shape"), ({"temperature": 0.8}, "", "same"),
        ({}, "", "same"), (None, "", "shape"), ([("temperature", 0.9)], "", "shape"),
        ({"auto_apply": "false", "temperature": 0.9}, "auto_apply", "auto_apply"),
        ({"auto_apply": False}, "", "same"),
    ],
)  # fmt: skip
def test_judge_refuses_a_patch_with_key_and_rule(patch: Any, key: str, rule: str) -> None:
    assert refused(patch) == [(key, rule)]


def test_judge_a_step_needs_a_number_to_step_from() -> None:
    assert refused({"temperature": 0.5}, {}) == [("temperature", "step")]
    assert refused({"temperature": 0.5}, {"temperature": "hot"}) == [("temperature", "step")]
    assert refused({"temperature": 0.5}, {"temperature": math.nan}) == [("temperature", "step")]
    assert refused({"temperature": 0.5}, {"temperature": 10**400}) == [("temperature", "step")]
    assert refused({"retry": {"wait_s": 0.5}}, {"retry": {"wait_s": 0}}) == [("retry.wait_s", "step")]


def test_bounds_tables_of_the_configuration_are_not_overwritten() -> None:
    assert refused({"retry": {"limit": 3}}, {"retry": 7}) == [("retry", "shape")]
    assert refused({"free": 1}, {"free": {"a": 1}}) == [("free", "shape")]
    assert refused({"free": 1}, {"free": [1]}) == [("free", "shape")]
    assert accepted({"a": {"b": 1}}, {}, Bounds({"a.b": Bound(least=0, most=1)})) == {"a": {"b": 1}}


class Text(str):
    pass


class Half(float):
    def __float__(self) -> float:
        return 99.0


class Table(dict[str, Any]):
    def items(self) -> Any:
        raise RuntimeError


class Hostile:
    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __repr__(self) -> str:
        raise RuntimeError


def test_judge_subclasses_are_read_without_their_methods() -> None:
    patch = accepted(Table({Text("model"): Text("large"), "free": Half(0.5)}))
    assert patch == {"model": "large", "free": 0.5}
    assert [type(one) for one in (patch, *patch, *patch.values())] == [dict, str, str, str, float]


def test_judge_hostile_patches_are_refused() -> None:
    assert refused(Hostile()) == [("", "shape")]
    assert refused({"free": Hostile()}) == [("free", "kind")]
    loop: dict[str, Any] = {}
    loop["retry"] = loop
    assert refused(loop)
    deep: dict[str, Any] = {}
    for _ in range(10_000):
        deep = {"retry": deep}
    assert refused(deep)
    judged = BOUNDS.judge({"\ud800": "x" * 10**6, "\u202e": "\udfff"}, CURRENT)
    text = msgspec.json.encode(judged).decode()
    assert len(text) < 1000
    assert len(BOUNDS.judge({"k" * 10**6: 1}, CURRENT).refusals[0].key) <= 101


def test_bounds_depth_and_size() -> None:
    path = ".".join("abcdefgh")
    assert len(path.split(".")) == MAX_DEPTH
    deepest = Bounds({path: Bound(least=0, most=1)})
    patch: Any = 1
    for name in reversed(path.split(".")):
        patch = {name: patch}
    assert accepted(patch, {}, deepest) == patch
    many = {f"k{n}": 1 for n in range(MAX_KEYS + 1)}
    all_listed = Bounds({key: Bound(least=0, most=1) for key in many})
    assert refused(many, {}, all_listed) == [("", "size")]
    inner = {f"t{table}": {f"k{n}": 1 for n in range(90)} for table in range(3)}  # 273 keys in all
    keys = {f"t{table}.k{n}": Bound(least=0, most=9) for table in range(3) for n in range(90)}
    assert refused(inner, {}, Bounds(keys)) == [("t2", "size")]

    del many["k0"]
    assert accepted(many, {}, all_listed) == many
    assert len(BOUNDS.judge(many, CURRENT).refusals) == MAX_REASONS


@pytest.mark.parametrize("key", ["auto_apply", "auto_apply_enabled"])
def test_auto_apply_false_is_obeyed_and_not_written(key: str) -> None:
    judged = BOUNDS.judge({"temperature": 0.9, key: False}, CURRENT)
    assert (judged.patch, judged.apply) == ({"temperature": 0.9}, False)
    assert "patch asks" in judged.waits
    judged = BOUNDS.judge({"temperature": 0.9}, CURRENT | {key: False})
    assert (judged.apply, "configuration asks" in judged.waits) == (False, True)
    assert not BOUNDS.judge({"temperature": 0.9}, CURRENT | {key: "false"}).apply
    assert BOUNDS.judge({"temperature": 0.9, key: True}, CURRENT | {key: True}).apply


def test_no_patch_permits_what_the_bounds_withhold() -> None:
    bounds = Bounds(BOUNDS.keys, auto_apply=False)
    judged = bounds.judge({"temperature": 0.9, "auto_apply": True}, CURRENT | {"auto_apply": True})
    assert (judged.patch, judged.apply) == ({"temperature": 0.9}, False)
    assert "bounds ask" in judged.waits


VALUES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=5)
    | st.sampled_from(["small", "large"])
    | st.floats(0.6, 1)
    | st.integers(0, 8)
    | st.binary(max_size=2)
    | st.lists(st.integers(), max_size=2)
)
NAMES = st.sampled_from(
    ["temperature", "timeout_s", "free", "model", "fallback", "n", "retry.limit", "other", "auto_apply"]
)
RETRY = VALUES | st.dictionaries(st.sampled_from(["limit", "wait_s", "jitter"]), VALUES)
GOOD = st.fixed_dictionaries(
    {},
    optional={
        "temperature": st.floats(0.6, 1),
        "retry": st.fixed_dictionaries({}, optional={"limit": st.integers(0, 7), "wait_s": st.floats(7, 13)}),
        "timeout_s": st.floats(40, 210),
        "model": st.sampled_from(["small", "large", "huge"]),
        "auto_apply": st.booleans(),
    },
)
PATCHES = (
    GOOD | VALUES | st.dictionaries(NAMES, VALUES) | st.fixed_dictionaries({"retry": RETRY}, optional={"free": VALUES})
)


@given(PATCHES)
def test_merged_whatever_the_patch_the_result_is_within_bounds(patch: Any) -> None:
    judged = BOUNDS.judge(patch, CURRENT)
    result = merged(CURRENT, judged.patch or {})
    assert (judged.patch is None) == bool(judged.refusals)
    assert {key: result[key] for key in ("tools", "other")} == {key: CURRENT[key] for key in ("tools", "other")}
    assert set(result) <= set(CURRENT) | {"free"}
    assert set(result["retry"]) == set(CURRENT["retry"])
    assert result["retry"]["jitter"] is True
    slack = 1 + ROUNDING
    assert 0 <= result["temperature"] <= 1
    assert abs(result["temperature"] - 0.8) <= 0.1 * slack
    assert type(result["retry"]["limit"]) is int
    assert 1 <= result["retry"]["limit"] <= 5
    assert abs(result["retry"]["wait_s"] - 10) <= 2.5 * slack
    assert abs(result["timeout_s"] - 100) <= 50 * slack
    assert -5 <= result.get("free", 0) <= 5
    assert type(result.get("free", 0)) in (int, float)
    assert result["model"] in ("small", "large")
    assert type(result["fallback"]) is bool
    msgspec.json.encode(judged)


@pytest.mark.parametrize(
    "fields",
    [
        {}, {"least": 0}, {"most": 1}, {"least": 2, "most": 1}, {"least": 0, "most": math.inf},
        {"least": 0, "most": "1"},
        {"least": 0, "most": 1, "step": 0}, {"least": 0, "most": 1, "step": math.nan},
        {"least": 0, "most": 1, "step_ratio": -1}, {"least": 0, "most": 1, "whole": 1}, {"choices": ()},
        {"choices": ["a"]}, {"choices": ([],)}, {"choices": (math.nan,)}, {"choices": ("a",), "step": 1},
        {"choices": ("a",), "whole": True},
    ],
)  # fmt: skip
def test_a_bound_checks_its_fields(fields: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError)):
        Bound(**fields)


@pytest.mark.parametrize("keys", [["a", "a.b"], [""], ["a..b"], [".".join("abcdefghi")], ["auto_apply"], [3]])
def test_bounds_check_their_keys(keys: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"key|cannot"):
        Bounds(dict.fromkeys(keys, Bound(least=0, most=1)))


def test_bounds_refuse_other_wrong_arguments() -> None:
    with pytest.raises(TypeError, match="bound of 'a'"):
        Bounds({"a": (0, 1)})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="auto_apply"):
        Bounds({}, auto_apply="false")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="current"):
        BOUNDS.judge({"free": 1}, None)  # type: ignore[arg-type]
    assert refused({"free": 1}, {}, Bounds({})) == [("free", "key")]
