"""A patch is applied and taken back through an adapter, and what the adapter says is checked by reading again.

Only the keys of a patch are its own: what others change in the configuration meanwhile stays as they left it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

import msgspec

from coherence.core.validation import shown
from coherence.guard.bounds import short_text
from coherence.guard.collaborators import ConfigAdapter, NotAwaitedError, not_awaited, refuse_async
from coherence.guard.patch_events import Decision
from coherence.guard.patch_state import OnTrial

FAILED = "could not be applied: "
"""So begins why a patch ends that its adapter has not applied as it says."""

MAX_DEPTH = 100
"""Tables and lists within one another that a configuration or a patch may have."""

_MISSING = object()


def adapter_of(strategy: object, adapter: ConfigAdapter | None) -> ConfigAdapter | None:
    """Return the owner of the configuration: an adapter, or a strategy that applies patches itself.

    A strategy's ``apply(agent_id=, config_patch=)`` takes the place of the adapter's ``apply_config``. Without an
    adapter, a strategy that also has ``current_config(agent_id=)`` and ``rollback(agent_id=, backup_config=)`` is the
    owner.

    Raises
    ------
    TypeError
        If one of these methods is async.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> strategy = SimpleNamespace(apply=lambda *, agent_id, config_patch: True)
    >>> adapter_of(strategy, None) is None
    True
    """
    apply = getattr(strategy, "apply", None)
    if not callable(apply):
        return adapter
    get = getattr(strategy, "current_config", None) if adapter is None else adapter.get_config
    restore = getattr(strategy, "rollback", None) if adapter is None else adapter.rollback_config
    if not callable(get) or not callable(restore):
        return None
    for name, method in (("apply", apply), ("current_config", get), ("rollback", restore)):
        refuse_async(f"strategy.{name}", method)
    both = getattr(adapter, "serves_both", False)
    owner = SimpleNamespace(get_config=get, apply_config=apply, rollback_config=restore, serves_both=both)
    return cast(ConfigAdapter, owner)


def apply(
    adapter: ConfigAdapter, agent: str, trial: OnTrial, owner: str, count: Callable[[BaseException], None]
) -> Decision:
    """Apply a patch, and return what came of it.

    It serves if the adapter says so and the configuration shows it. It is not applied if the adapter says that, and
    the keys of the patch are what they were. Else the configuration before it is to be restored.

    Parameters
    ----------
    adapter : ConfigAdapter
        Owns the configuration. Where it cannot be read afterwards, its word counts.
    agent : str
        Owner of the configuration.
    trial : OnTrial
        The patch.
    owner : str
        Who has claimed this.
    count : callable
        Takes each exception of the adapter.
    """
    before = trial.backup
    if trial.applied:  # else it has just been read
        found = _read(adapter, agent, count)
        before = before if found is None else found
    said = ""
    try:
        done = not_awaited(adapter.apply_config(agent_id=agent, config_patch=_copy(trial.patch)), "apply_config")
        said = "" if done else f"the adapter returned {shown(done)}"
    except BaseException as error:
        count(error)
        said = _failure(error)
    # its word is not enough: it may fail when half is done, or return True for nothing
    after = _read(adapter, agent, count)
    if after is None:
        return _ending(owner, f"{said}, and the configuration cannot be read") if said else Decision("serving")
    if said:
        changed = difference(after, before, trial.patch)
        return (
            _ending(owner, f"{said}, and {changed} has changed all the same")
            if changed
            else Decision("not_applied", why=said)
        )
    if missing := difference(after, trial.patch, trial.patch):
        return _ending(owner, f"apply_config returned True, and the configuration does not show {missing}")
    removed = _removed(after, before, trial.patch)
    return _ending(owner, f"apply_config has removed {removed}") if removed else Decision("serving")


def restore(
    adapter: ConfigAdapter,
    agent: str,
    patch: Mapping[str, Any],
    backup: dict[str, Any],
    count: Callable[[BaseException], None],
    *,
    fill: bool = False,
) -> Decision:
    """Take a patch back, and return what came of it.

    The adapter is handed the configuration in force as :func:`unpatched` makes it, or the backup as it is if the one in
    force cannot be read.

    Parameters
    ----------
    adapter, agent, count
        Those of :func:`apply`.
    patch : mapping
        The patch; the backup itself if only the configuration to restore is known.
    backup : dict
        The configuration before the patch.
    fill : bool
        True = keys that are gone come back as well: the patch never came into force, so the adapter removed them.
    """
    now = _read(adapter, agent, count)
    target = backup
    if now is not None:
        target = unpatched(now, patch, backup)
        if fill:
            target = _filled(target, backup)
    try:
        if (
            not_awaited(adapter.rollback_config(agent_id=agent, backup_config=_copy(target)), "rollback_config")
            is False
        ):
            return Decision("restore_failed", why="the adapter returned False")
    except BaseException as error:
        count(error)
        return Decision("restore_failed", why=_failure(error))
    after = _read(adapter, agent, count)
    left = "" if after is None else difference(after, backup, patch)
    if left:
        why = f"the adapter has restored, it says, and the configuration still shows the patch: {left}"
        return Decision("restore_failed", why=why)
    return Decision("restored")


def read_config(adapter: ConfigAdapter, agent: str) -> dict[str, Any]:
    """Return the configuration in force, as it can be kept.

    Raises
    ------
    Exception
        What the adapter raises, and what :func:`kept_config` does.
    """
    return kept_config(not_awaited(adapter.get_config(agent_id=agent), "get_config"))


def kept_config(config: object) -> dict[str, Any]:
    """Return a copy of a configuration that can be kept and restored as it is.

    Raises
    ------
    ValueError
        If it is not made of dicts with text keys, lists, texts, finite numbers (whole ones below 2**63 in magnitude),
        True, False and None, or nested deeper than :data:`MAX_DEPTH`.
    """
    try:
        found = msgspec.json.decode(msgspec.json.encode(config))
        msgspec.msgpack.encode(found)  # the account, which holds it, is kept so; a larger whole number is not taken
    except Exception as error:
        raise ValueError(f"the configuration is not plain JSON: {type(error).__name__}") from error
    # tuples and keys that are numbers would come back as something else
    if not isinstance(found, dict) or found != config:
        raise ValueError("the configuration is not plain JSON: it would not come back as it is")
    if _is_deep(found, MAX_DEPTH):
        raise ValueError(f"the configuration is nested more than {MAX_DEPTH} deep")
    return found


def unpatched(config: Mapping[str, Any], patch: Mapping[str, Any], backup: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with the keys of a patch put back to what they were; all others stay. Copies nothing deep.

    Keys that the backup does not have are removed, and tables that the patch has made and that are empty by that.

    Examples
    --------
    >>> now = {"retry": {"limit": 4, "wait_s": 60}, "model": "b", "fast": True}
    >>> unpatched(now, {"retry": {"limit": 4}, "fast": True}, {"retry": {"limit": 3, "wait_s": 1}, "model": "a"})
    {'retry': {'limit': 3, 'wait_s': 60}, 'model': 'b'}
    """
    result = dict(config)
    for key, value in patch.items():
        held, before = result.get(key), backup.get(key, {})
        if isinstance(value, Mapping) and isinstance(held, Mapping) and isinstance(before, Mapping):
            result[key] = unpatched(held, value, before)
            if not result[key] and key not in backup:
                del result[key]
        elif key in backup:
            result[key] = before
        else:
            result.pop(key, None)
    return result


def difference(one: Mapping[str, Any], two: Mapping[str, Any], patch: Mapping[str, Any]) -> str:
    """Return the first key of a patch, as a dotted path, in which two configurations differ as JSON, or an empty text.

    Examples
    --------
    >>> difference({"retry": {"limit": 3, "wait_s": 1}}, {"retry": {"limit": 4}}, {"retry": {"limit": 4}})
    'retry.limit'
    >>> difference({"limit": 3, "wait_s": 1}, {"limit": 3.0, "wait_s": 2}, {"limit": 4})
    ''
    """
    return short_text(_difference(one, two, patch))


def _difference(one: Mapping[str, Any], two: Mapping[str, Any], patch: Mapping[str, Any]) -> str:
    for key, value in patch.items():
        first, second = one.get(key, _MISSING), two.get(key, _MISSING)
        if isinstance(value, Mapping) and _is_table(first) and _is_table(second):
            within = _difference(_table(first), _table(second), value)
            if within:
                return f"{key}.{within}"
        elif not _same(first, second):
            return key or "a key without a name"
    return ""


def _removed(after: Mapping[str, Any], before: Mapping[str, Any], patch: Mapping[str, Any]) -> str:
    """Return a key that is gone and that the patch does not replace."""
    for key, value in before.items():
        if key in patch and not isinstance(patch[key], Mapping):
            continue
        if key not in after:
            return short_text(key)
        if isinstance(value, Mapping):
            within = _removed(_table(after[key]), value, _table(patch.get(key)))
            if within:
                return short_text(f"{key}.{within}")
    return ""


def _filled(config: Mapping[str, Any], backup: Mapping[str, Any]) -> dict[str, Any]:
    """Return a configuration with the keys of a backup that it lacks."""
    result = {**backup, **config}
    for key, value in backup.items():
        if isinstance(value, Mapping) and isinstance(result[key], Mapping):
            result[key] = _filled(result[key], value)
    return result


def _same(one: object, two: object) -> bool:
    """Return whether two values are the same JSON: 1 is 1.0, and True is no number."""
    if isinstance(one, dict) and isinstance(two, dict):
        return one.keys() == two.keys() and all(_same(one[key], two[key]) for key in one)
    if isinstance(one, list) and isinstance(two, list):
        return len(one) == len(two) and all(map(_same, one, two))
    return isinstance(one, bool) == isinstance(two, bool) and one == two


def _is_table(value: object) -> bool:
    return value is _MISSING or isinstance(value, Mapping)


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _is_deep(value: object, most: int) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return most < 0 or any(_is_deep(each, most - 1) for each in inner)


def _read(adapter: ConfigAdapter, agent: str, count: Callable[[BaseException], None]) -> dict[str, Any] | None:
    try:
        return read_config(adapter, agent)
    except BaseException as error:
        count(error)
        return None


def _ending(owner: str, why: str) -> Decision:
    return Decision("ending", owner=owner, why=FAILED + why)


def _failure(error: BaseException) -> str:
    return str(error) if isinstance(error, NotAwaitedError) else f"the adapter failed: {type(error).__name__}"


def _copy(value: dict[str, Any]) -> dict[str, Any]:
    # an adapter may keep and change what it is handed; the trail may not change by that
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(value))
    return found
