"""Settings files of clients: our hooks are put in and taken out, and all else stays."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.integrations.claude_code.settings import EVENTS, hook_groups
from coherence.integrations.daemon.hook_command import NEVER_FAILS, hook_command
from coherence.integrations.hook_settings import (
    SettingsError,
    apply_change,
    backup_path,
    check_place,
    is_ours,
    parse_settings,
    plan_install,
    plan_removal,
    render_settings,
    with_hooks,
    without_hooks,
    write_file,
)

COMMAND = hook_command(Path("/state"))
GROUPS = hook_groups(COMMAND)
OLD = "/old/python /old/lib/coherence/integrations/daemon/hook.py /old/state"
FOREIGN = {"type": "command", "command": "make lint"}
POSIX = pytest.mark.skipif(sys.platform == "win32", reason="modes and links of POSIX")

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=8,
)
MORE = st.dictionaries(st.text(max_size=9).filter(lambda name: name not in ("hooks", "command")), JSON, max_size=2)
FOREIGN_HOOKS = st.builds(lambda more, command: {**more, "command": command}, MORE, JSON)
OWN_HOOKS = st.sampled_from([{"type": "command", "command": command} for command in (OLD, COMMAND, f"{OLD} --observe")])
NAMES = st.sampled_from(["Stop", "PreToolUse", "SessionStart", "Notification", "Of next year"])


def settings_with(hooks: st.SearchStrategy[dict[str, Any]], least: int) -> st.SearchStrategy[dict[str, Any]]:
    """Return settings whose events have at least so many groups."""
    groups = st.builds(lambda more, inner: {**more, "hooks": inner}, MORE, st.lists(hooks, max_size=3))
    events = st.dictionaries(NAMES, st.lists(groups, min_size=least, max_size=3), min_size=least, max_size=4)
    return st.builds(lambda more, found: {**more, **found}, MORE, st.just({}) | st.builds(dict, hooks=events))


def foreign(settings: dict[str, Any]) -> dict[str, list[Any]]:
    """Return the hooks of others by event, in their order."""
    found = {
        event: [hook for group in groups for hook in group["hooks"] if not is_ours(hook)]
        for event, groups in settings.get("hooks", {}).items()
    }
    return {event: hooks for event, hooks in found.items() if hooks}


def text(value: object) -> str:
    """Return a value as JSON in its own order, which tells 1 from true."""
    return json.dumps(value)


@given(settings_with(FOREIGN_HOOKS, 1))
def test_without_hooks_undoes_with_hooks(settings: dict[str, Any]) -> None:
    before = text(settings)
    assert text(without_hooks(with_hooks(settings, GROUPS))) == before == text(settings)


@given(settings_with(FOREIGN_HOOKS | OWN_HOOKS, 0))
def test_with_hooks_twice_is_once_and_leaves_what_is_of_others(settings: dict[str, Any]) -> None:
    before = text(settings)
    once = with_hooks(settings, GROUPS)
    assert text(with_hooks(once, GROUPS)) == text(once)
    assert text(foreign(once)) == text(foreign(settings)) and text(settings) == before
    rest = [name for name in settings if name != "hooks"]
    assert [name for name in once if name != "hooks"] == rest and all(once[name] == settings[name] for name in rest)


@given(settings_with(FOREIGN_HOOKS | OWN_HOOKS, 0))
def test_with_hooks_each_event_has_one_of_ours_and_no_other_has_any(settings: dict[str, Any]) -> None:
    found = with_hooks(settings, GROUPS)["hooks"]
    ours = {event: [h for group in groups for h in group["hooks"] if is_ours(h)] for event, groups in found.items()}
    entry = {"type": "command", "command": COMMAND + NEVER_FAILS, "timeout": 5}
    assert {event: hooks for event, hooks in ours.items() if hooks} == {event: [entry] for event in EVENTS}


@given(settings_with(FOREIGN_HOOKS | OWN_HOOKS, 0))
def test_without_hooks_takes_ours_alone(settings: dict[str, Any]) -> None:
    left = without_hooks(settings)
    assert text(foreign(left)) == text(foreign(settings))
    assert not [
        h for groups in left.get("hooks", {}).values() for group in groups for h in group["hooks"] if is_ours(h)
    ]
    assert text(without_hooks(left)) == text(left)


def test_with_hooks_replaces_an_older_one_where_it_stands_and_drops_its_double() -> None:
    old = {"type": "command", "command": OLD, "timeout": 60}
    groups = [{"matcher": "Bash", "hooks": [FOREIGN, old, FOREIGN]}, {"matcher": "*", "hooks": [old]}]
    found = with_hooks({"hooks": {"PreToolUse": groups, "MessageDisplay": [{"hooks": [old]}]}}, GROUPS)["hooks"]
    new = {"type": "command", "command": COMMAND + NEVER_FAILS, "timeout": 5}
    assert found["PreToolUse"] == [{"matcher": "Bash", "hooks": [FOREIGN, new, FOREIGN]}]
    assert "MessageDisplay" not in found  # no event of this version


def test_without_hooks_leaves_an_empty_group_of_somebody_else() -> None:
    settings = {"hooks": {"Stop": [{"matcher": "x", "hooks": []}], "Other": []}}
    assert without_hooks(with_hooks(settings, GROUPS)) == settings


@pytest.mark.parametrize(
    ("hook", "ours"),
    [
        ({"type": "command", "command": COMMAND}, True),
        ({"type": "command", "command": r"C:\py\coherence\integrations\daemon\hook.py"}, True),
        ({"type": "command", "command": "/other/integrations/daemon/hook.py"}, False),
        ({"type": "prompt", "prompt": COMMAND}, False),
        ({"command": 1}, False),
    ],
)
def test_is_ours_goes_by_the_path_in_the_command(hook: dict[str, Any], ours: bool) -> None:
    assert is_ours(hook) is ours


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "s.json:1: this is not JSON: Expecting value (column 1); correct it"),
        (b'{\n  "a": 1,\n}', "s.json:3: this is not JSON"),
        (b'{\n"a": "\xff"}', "s.json:2: this is not UTF-8"),
        (b"[]", "s.json:1: it must be an object"),
        (b'{\n"a": {"hooks": 1},\n"hooks":\n[]}', "s.json:4: hooks must be an object"),
        (b'{"hooks": {\n"Other": [], \n"Stop": {}}}', "s.json:3: hooks.Stop must be an array"),
        (
            b'{"hooks": {"Stop": [{"hooks": []},\n{}]}}',
            's.json:2: hooks.Stop[1] must be an object with an array "hooks"',
        ),
        (
            b'{"hooks": {"Stop": [{"m": "}]",\n"hooks": ["make"]}]}}',
            "s.json:2: hooks.Stop[0].hooks[0] must be an object",
        ),
        (b'{"env": {"A": 1, "A": 2}}', "s.json: one object has the key 'A' more than once; correct it"),
        (b'{"a": NaN}', "s.json: NaN is no number of JSON"),
        (b'{"a": 1e999}', "s.json: 1e999 is no number of JSON, or too large a one"),
        (b"[" * 100_000, "s.json: it is nested too deeply"),
    ],
)
def test_parse_settings_refuses_what_would_be_lost_and_names_the_line(content: bytes, message: str) -> None:
    with pytest.raises(SettingsError) as refused:
        parse_settings(content, Path("s.json"))
    assert str(refused.value).startswith(message)


@pytest.mark.parametrize("indent", [2, 4, "\t"])
@pytest.mark.parametrize("end", ["", "\n"])
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_render_settings_keeps_the_form(indent: int | str, end: str, line_end: str) -> None:
    settings = {"näme": ["a", {"b": 1}], "c": {}}
    written = (json.dumps(settings, indent=indent, ensure_ascii=False) + end).replace("\n", line_end)
    assert render_settings(settings, written) == written
    assert render_settings(settings, "\ufeff" + written) == "\ufeff" + written


def test_render_settings_of_one_line_and_of_no_file() -> None:
    assert render_settings({"a": 1}) == '{\n  "a": 1\n}\n'
    assert render_settings({"a": 1}, '{"a": 2}') == '{\n  "a": 1\n}'


@given(settings_with(FOREIGN_HOOKS, 0))
def test_parse_settings_returns_what_render_settings_wrote(settings: dict[str, Any]) -> None:
    written = render_settings(settings).encode()
    assert text(parse_settings(written, Path("s.json"))) == text(settings)


def test_render_settings_half_a_pair_stays_an_escape() -> None:
    settings = parse_settings(rb'{"a": "\ud83d", "b": "\ud83d\ude00"}', Path("s.json"))
    assert render_settings(settings).encode() == '{\n  "a": "\\ud83d",\n  "b": "😀"\n}\n'.encode()


def install(path: Path, command: str = COMMAND) -> None:
    apply_change(plan_install(path, hook_groups(command)))


def remove(path: Path) -> None:
    apply_change(plan_removal(path, GROUPS))


@pytest.mark.parametrize(
    "content",
    [b"{}", b'{"model":"opus" ,\n\n "hooks": {} }', b'{"hooks": {"Stop": []}}\n', b'\xef\xbb\xbf{"a": 1}\r\n'],
)
def test_plan_removal_puts_the_very_bytes_back(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(content)
    install(path)
    assert backup_path(path).read_bytes() == content and COMMAND in path.read_text("utf-8")
    install(path, OLD)
    assert backup_path(path).read_bytes() == content and COMMAND not in path.read_text("utf-8")
    remove(path)
    assert path.read_bytes() == content and os.listdir(tmp_path) == ["settings.json"]


def test_plan_removal_keeps_what_others_have_changed_since_and_the_backup(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{"model": "opus", "a": 1}')
    install(path)
    settings = json.loads(path.read_text())
    path.write_text(json.dumps({**settings, "a": True}))  # equal to 1 in Python, not in JSON
    remove(path)
    assert path.read_text() == '{\n  "model": "opus",\n  "a": true\n}'
    assert backup_path(path).read_text() == '{"model": "opus", "a": 1}'


@pytest.mark.parametrize("content", ["no JSON", json.dumps(with_hooks({}, GROUPS))])
def test_plan_removal_a_backup_that_was_none_stays(tmp_path: Path, content: str) -> None:
    path = tmp_path / "settings.json"
    install(path)
    backup_path(path).write_text(content)
    remove(path)
    assert path.read_text() == "{}\n" and backup_path(path).read_text() == content


def test_plan_removal_a_file_that_was_not_there_goes_unless_others_wrote_into_it(tmp_path: Path) -> None:
    path = tmp_path / "deep" / ".claude" / "settings.json"
    install(path)
    assert not backup_path(path).exists()
    settings = json.loads(path.read_text())
    remove(path)
    assert not path.exists()
    path.write_text(json.dumps({**settings, "model": "opus"}))
    install(path, OLD)
    assert not backup_path(path).exists()  # what was there held hooks of ours
    remove(path)
    assert json.loads(path.read_text()) == {"model": "opus"}


def test_plan_install_and_plan_removal_leave_a_file_that_is_as_wanted(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    assert not plan_removal(path, GROUPS).needed
    path.write_text(json.dumps(with_hooks({}, GROUPS)))  # on one line: its form alone is no reason to write
    assert not plan_install(path, GROUPS).needed
    path.write_text('{"a":1}')
    assert not plan_removal(path, GROUPS).needed and plan_removal(path, GROUPS).diff() == ""
    assert os.listdir(tmp_path) == ["settings.json"]


def test_change_diff_is_a_unified_diff(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    path.write_text('{\n  "a": "\u2028"\n}', encoding="utf-8")
    lines = plan_install(path, GROUPS).diff().split("\n")
    assert lines[:2] == [f"--- {path}", f"+++ {path}"]
    assert lines[3:7] == [" {", '-  "a": "\u2028"', '+  "a": "\u2028",', '+  "hooks": {']
    assert lines[-3:] == [" }", "\\ No newline at end of file", ""]
    path.unlink()
    assert plan_install(path, GROUPS).diff().startswith(f"--- {os.devnull}\n+++ {path}\n")


def test_apply_change_refuses_a_file_that_was_changed_meanwhile(tmp_path: Path) -> None:
    path = tmp_path / "settings.json"
    change = plan_install(path, GROUPS)
    path.write_text('{"model": "opus"}')
    with pytest.raises(SettingsError, match="changed meanwhile"):
        apply_change(change)
    assert path.read_text() == '{"model": "opus"}'


@POSIX
def test_write_file_keeps_the_rights_of_an_old_one_and_makes_a_new_one_for_its_owner(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "folder" / "new"
    old.write_text("old")
    old.chmod(0o640)
    for path in (old, new):
        write_file(path, b"text")
    assert [path.stat().st_mode & 0o777 for path in (old, new, new.parent)] == [0o640, 0o600, 0o700]
    assert old.read_text() == new.read_text() == "text"


def test_write_file_that_fails_leaves_what_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "settings.json"
    path.write_text("{}")

    def fail(*_: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space"):
        install(path)
    assert path.read_text() == "{}" and os.listdir(tmp_path) == ["settings.json"]


@POSIX
@pytest.mark.parametrize("linked", ["settings.json", "settings.json.coherence-backup", "."])
def test_check_place_refuses_every_link(tmp_path: Path, linked: str) -> None:
    real, path = tmp_path / "real", tmp_path / ".claude" / "settings.json"
    if linked == ".":
        real.mkdir()
        path.parent.symlink_to(real)
    else:
        path.parent.mkdir()
        real.write_text("{}")
        (path.parent / linked).symlink_to(real)
    refusing: list[Callable[[Path], object]] = [check_place, install, remove]
    for refused in refusing:
        with pytest.raises(SettingsError, match=r"a symbolic link to .*real, and nothing is written through one"):
            refused(path)
    assert not real.is_dir() or not os.listdir(real)
