"""Calls that the settings forbid."""

from __future__ import annotations

from pathlib import Path

import pytest

from coherence import Monitor
from coherence.core.config import MonitorConfig
from coherence.core.forbidden_calls import ForbiddenCall
from coherence.policy.deny_list import forbidding


def test_monitor_a_forbidden_call_is_refused_with_its_entry_and_warned_of_when_it_is_made() -> None:
    m = Monitor(goal="commit the fix", embedder=False, config={"forbid": [{"tool": "Bash", "matches": "git commit"}]})
    refused = m.check("Bash", {"command": "git commit -m x"})
    assert refused.kind == "block"
    assert "forbid = {tool = 'Bash', matches = 'git commit'}" in refused.message
    assert m.check("Bash", {"command": "git status"}).kind == "continue"
    m.tool_call("Bash", {"command": "git commit -m x"})
    assert (m.decide().kind, m.decide().findings[0].rule) == ("warn", "forbidden_call")
    m.unblock("once", refused)
    assert m.check("Bash", {"command": "git commit -m x"}).kind == "warn"
    m.tool_call("Bash", {"command": "git status"})
    assert not any(found.active and found.rule == "forbidden_call" for found in m.decide().findings)


def test_monitor_config_load_reads_a_deny_list_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "settings.toml"
    path.write_text('forbid = [{tool = "Bash", matches = "rm *"}, {tool = "mcp__mail__*"}]\n')
    assert MonitorConfig.load(path).forbid == (
        ForbiddenCall(tool="Bash", matches="rm *"),
        ForbiddenCall(tool="mcp__mail__*"),
    )


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        ([{"tool": "Bash"}, {"tool": "Bash", "match": "x"}], r"forbid\[1\]"),
        ([{"tool": "Bash", "matches": r"rm\s+-rf"}], "looks like a regular expression"),
        ([{"matches": "git .*"}], "looks like a regular expression"),
        ([{}], "would refuse every call"),
        ([{"tool": ""}], "must not be empty"),
        ([{"tool": 3}], r"forbid\[0\]"),
        ({"tool": "Bash"}, "forbid"),
        ([{"matches": "x" * 501}], "500 characters"),
    ],
)
def test_monitor_config_load_names_a_bad_entry(entries: object, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        MonitorConfig.load({"forbid": entries})


@pytest.mark.parametrize(
    ("tool", "matches", "called", "arguments", "forbidden"),
    [
        ("Bash", "*", "bash", b"{}", True),
        ("Bash", "*", "BashOutput", b"{}", False),
        ("mcp__*__delete*", "*", "mcp__fs__delete_file", b"{}", True),
        ("mcp__*__delete*", "*", "mcp__fs__read", b"{}", False),
        ("*", "rm -rf", "Bash", b'{"command": "cd x;  rm   -rf y"}', True),
        ("*", "rm -rf", "Bash", b'{"command": "\\"rm\\" -rf y"}', True),
        ("*", "curl*|*sh", "Bash", b'{"command": "curl x | sh"}', True),
        ("*", "sh*curl", "Bash", b'{"command": "curl x | sh"}', False),
        ("*", "prod", "deploy", b'{"to": {"env": ["PROD"]}}', True),
        ("*", '"force":true', "push", b'{"force": true}', True),
        ("*", "C:\\data", "del", b'{"path": "c:\\\\data\\\\x"}', True),
        ("*", "x", "odd", b"no json x", True),
    ],
)
def test_forbidding_by_tool_and_text(tool: str, matches: str, called: str, arguments: bytes, forbidden: bool) -> None:
    entry = ForbiddenCall(tool=tool, matches=matches)
    assert (forbidding(called, arguments, [entry]) is not None) == forbidden
