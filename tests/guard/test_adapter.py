"""Restoring a configuration when a patch goes, and comparing two configurations as JSON."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.guard.adapter import MAX_DEPTH, apply, difference, kept_config, restore, unpatched
from coherence.guard.baseline import Baseline
from coherence.guard.bounds import merged
from coherence.guard.classic import Metrics
from coherence.guard.patch_events import Decision
from coherence.guard.patch_state import OnTrial
from coherence.guard.verdict import Trial
from guard.helpers import Memory

SCALARS = st.one_of(st.none(), st.booleans(), st.integers(0, 2), st.sampled_from((1.0, "a", "")))
KEYS = st.sampled_from(("a", "b", "c", ""))
CONFIGS = st.dictionaries(
    KEYS,
    st.recursive(
        st.one_of(SCALARS, st.lists(SCALARS, max_size=2)), lambda inner: st.dictionaries(KEYS, inner, max_size=3)
    ),
    max_size=4,
)


def on_trial(patch: dict[str, Any], backup: dict[str, Any], *, applied: int = 1, both: bool = False) -> OnTrial:
    before = Metrics(0.9, 0.1, 0)
    found = OnTrial(1, patch, backup, "sequential", 0.5, 10, both, "salt", Trial.begin(Baseline()), before)
    found.applied = applied
    return found


@given(CONFIGS, CONFIGS)
def test_difference_without_other_edits_the_backup_comes_back(backup: dict[str, Any], patch: dict[str, Any]) -> None:
    patched = merged(backup, patch)
    kept = deepcopy((patched, patch, backup))
    assert difference(patched, merged(patched, patch), patch) == ""
    back = unpatched(patched, patch, backup)
    assert back == backup
    assert difference(back, backup, patch) == ""
    assert (patched, patch, backup) == kept


@given(CONFIGS, CONFIGS, CONFIGS)
def test_difference_whatever_others_have_edited_the_keys_of_the_patch_are_as_before(
    backup: dict[str, Any], patch: dict[str, Any], now: dict[str, Any]
) -> None:
    back = unpatched(now, patch, backup)
    assert difference(back, backup, patch) == ""
    assert {key: value for key, value in back.items() if key not in patch} == {
        key: value for key, value in now.items() if key not in patch
    }


@pytest.mark.parametrize(
    ("now", "patch", "backup", "back"),
    [
        ({"a": {"x": 2, "y": 9}}, {"a": {"x": 2}}, {}, {"a": {"y": 9}}),
        ({"a": {"x": 2}}, {"a": {"x": 2}}, {}, {}),  # a table that the patch has made
        ({"a": {"x": 2}}, {"a": {"x": 2}}, {"a": {}}, {"a": {}}),  # and one that was there
        ({"a": 7}, {"a": {"x": 2}}, {"a": {"x": 1}}, {"a": {"x": 1}}),  # no table any more
        ({"a": {"x": 2}}, {"a": {"x": 2}}, {"a": 7}, {"a": 7}),
        ({"b": 1}, {"a": 2}, {"a": 1}, {"b": 1, "a": 1}),
        ({"a": [2]}, {"a": [2]}, {"a": [1]}, {"a": [1]}),
    ],
)
def test_unpatched_what_is_put_back(now: Any, patch: Any, backup: Any, back: Any) -> None:
    assert unpatched(now, patch, backup) == back


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        (1, 1.0, True), (True, 1, False), (0, False, False), ([1, True], [1.0, True], True), ([True], [1], False),
        ({"b": 1}, {"b": True}, False), ({"b": 1}, {"b": 1, "c": 1}, False), ([1], [1, 1], False), (None, "", False),
    ],
)  # fmt: skip
def test_difference_values_are_compared_as_json(one: Any, two: Any, same: bool) -> None:
    assert difference({"a": one}, {"a": two}, {"a": 0}) == ("" if same else "a")
    assert difference({"a": one}, {"a": two}, {"b": 0}) == ""


def test_kept_config_refuses_what_could_not_be_restored_as_it_is() -> None:
    def nested(depth: int) -> dict[str, Any]:
        found: dict[str, Any] = {"a": 1}
        for _ in range(depth):
            found = {"a": found}
        return found

    assert kept_config(nested(MAX_DEPTH - 1))
    with pytest.raises(ValueError, match="nested more than 100 deep"):
        kept_config(nested(MAX_DEPTH))
    with pytest.raises(ValueError, match="not plain JSON"):
        kept_config({"level": 2**70})


class Replaces(Memory):
    """Takes a patch for the whole configuration."""

    def apply_config(self, *, agent_id: str, config_patch: dict[str, Any]) -> object:
        self.config = config_patch
        return True


@pytest.mark.parametrize("both", [False, True])
def test_an_adapter_that_removes_what_is_beside_the_patch_is_found_out_and_mended(both: bool) -> None:
    adapter = Replaces()
    backup = {"retry": {"limit": 1, "wait_s": 5}, "model": "a"}
    adapter.config = deepcopy(backup)
    trial = on_trial({"retry": {"limit": 2}}, backup, applied=int(both), both=both)
    found = apply(adapter, "a", trial, "me", print)
    assert found == Decision("ending", owner="me", why="could not be applied: apply_config has removed retry.wait_s")
    assert restore(adapter, "a", trial.patch, backup, print, fill=True) == Decision("restored")
    assert adapter.config == backup


def test_an_adapter_may_keep_and_change_what_it_is_handed() -> None:
    class Spoils(Memory):
        def apply_config(self, *, agent_id: str, config_patch: dict[str, Any]) -> object:
            self.config = {**self.config, "a": {**self.config["a"], **config_patch["a"]}}
            config_patch["a"]["x"] = 99
            return True

        def rollback_config(self, *, agent_id: str, backup_config: dict[str, Any]) -> object:
            self.config = deepcopy(backup_config)
            backup_config["a"]["x"] = 99
            return None

    adapter = Spoils()
    adapter.config = {"a": {"x": 1}}
    trial = on_trial({"a": {"x": 2}}, {"a": {"x": 1}}, applied=0)
    assert apply(adapter, "a", trial, "me", print) == Decision("serving")
    assert restore(adapter, "a", trial.patch, trial.backup, print) == Decision("restored")
    assert (adapter.config, trial.patch, trial.backup) == ({"a": {"x": 1}}, {"a": {"x": 2}}, {"a": {"x": 1}})


def test_adapter_a_restore_that_only_adds_keys_is_found_out() -> None:
    class Adds(Memory):
        def rollback_config(self, *, agent_id: str, backup_config: dict[str, Any]) -> object:
            self.config |= backup_config
            return True

    adapter = Adds()
    adapter.config = {"level": 1, "new": 2}
    found = restore(adapter, "a", {"new": 2}, {"level": 1}, print)
    assert found.kind == "restore_failed"
    assert found.why.endswith("still shows the patch: new")
