"""Tools that are no shell, where shell text is found, and the table that users change."""

from __future__ import annotations

import re
from collections import Counter
from inspect import isfunction
from pathlib import Path
from typing import Any

import msgspec
import pytest

from coherence.policy.danger import (
    calls,
    disclosure,
    files,
    git,
    protection,
    services,
    system,
    table,
    things,
    unread,
)
from coherence.policy.danger.arguments import words_of
from coherence.policy.danger.classify import classify
from coherence.policy.danger.danger import DangerousCall, DangerousCommand
from coherence.policy.danger.table import DEFAULT

DESTRUCTIVE: list[tuple[str, Any]] = [
    ("delete_file", {"path": "x"}),
    ("deleteFile", {"path": "x"}),
    ("mcp__github__delete_branch", {}),
    ("fs.remove", {"path": "x"}),
    ("drop_table", {"name": "t"}),
    ("truncate-table", {}),
    ("terminate_instance", {}),
    ("revokeAccess", {}),
    ("kill_process", {"pid": 1}),
    ("files", {"action": "delete", "path": "x"}),
    ("request", {"method": "DELETE", "url": "https://x"}),
    ("query_db", {"sql": "DROP TABLE t"}),
    ("run_query", {"query": "delete from t"}),
    ("Write", {"file_path": "/app/.env", "content": "A=1"}),
    ("Edit", {"file_path": "~/.aws/credentials", "old_string": "a", "new_string": "b"}),
    ("create_file", {"path": "server.key"}),
    ("multi_edit", {"edits": [{"path": ".npmrc"}]}),
    ("str_replace_based_edit_tool", {"command": "create", "path": ".env"}),
    ("apply_patch", {"input": "*** Begin Patch\n*** Delete File: x.py\n*** End Patch"}),
    ("python", {"code": "import shutil\nshutil.rmtree('x')"}),
    ("execute_python", {"code": "import os; os.system('rm -rf x')"}),
    ("python", {"code": "open('.env', 'w').write('')"}),
    ("run_code", {"language": "bash", "code": "rm x"}),
    ("run_code", {"code": "rm -rf x"}),
    ("shell", {"command": ["bash", "-lc", "rm -rf x"]}),
    ("shell", {"command": ["rm", "-rf", "x"]}),
    ("exec_command", {"cmd": "rm x"}),
    ("execute", {"command": "rm", "args": ["-rf", "x"]}),
    ("run_commands", {"commands": ["ls", "rm x"]}),
    ("terminal", "rm -rf x"),
    ("terminal", ["rm", "x"]),
    ("computer_bash", {"input": "rm x"}),
    ("anything", {"input": {"command": "rm x"}}),
    ("powershell", {"command": "Remove-Item x"}),
    ("Bash", b'{"command": "rm x"}'),
    ("Bash", b"rm x"),
]

HARMLESS: list[tuple[str, Any]] = [
    ("list_deleted_files", {}),
    ("get_delete_status", {}),
    ("undelete_file", {}),
    ("restore_deleted", {}),
    ("drag_and_drop", {"x": 1}),
    ("reset_password_hint", {}),
    ("remove_background", {"image": "x"}),
    ("skill", {"name": "kill"}),
    ("removed_items", {}),
    ("files", {"action": "read", "path": "delete"}),
    ("request", {"method": "GET", "url": "https://x/delete"}),
    ("query_db", {"sql": "SELECT * FROM deleted"}),
    ("run_query", {"query": "delete from t where id = 1"}),
    ("search", {"query": "how to drop table"}),
    ("Write", {"file_path": "main.py", "content": "rm -rf x; DROP TABLE t"}),
    ("Write", {"file_path": ".env.example", "content": ""}),
    ("Read", {"file_path": ".env"}),
    ("str_replace_based_edit_tool", {"command": "view", "path": ".env"}),
    ("str_replace_based_edit_tool", {"command": "undo_edit", "path": "x"}),
    ("apply_patch", {"input": "*** Begin Patch\n*** Update File: x.py\n*** End Patch"}),
    ("python", {"code": "del xs[0]\nxs.remove(2)\nprint('rm -rf x')"}),
    ("run_code", {"code": "del x\nprint(x)"}),
    ("run_code", {"language": "python", "code": "rm = 1\nrm -rf"}),
    ("send_email", {"body": "please rm -rf x", "subject": "delete"}),
    ("shell", {"command": ["bash", "-lc", "ls"]}),
    ("shell", {"command": ["echo", "rm -rf x"]}),
    ("Bash", {"command": "ls", "description": "rm -rf the folder"}),
    ("Bash", {}),
    ("Bash", None),
    ("Bash", b"\xff"),
    ("", {}),
]


@pytest.mark.parametrize(("tool", "arguments"), DESTRUCTIVE)
def test_tools_destructive(tool: str, arguments: Any) -> None:
    assert classify(tool, arguments) is not None


@pytest.mark.parametrize(("tool", "arguments"), HARMLESS)
def test_tools_harmless(tool: str, arguments: Any) -> None:
    assert classify(tool, arguments) is None


@pytest.mark.parametrize(("tool", "arguments"), [case for case in DESTRUCTIVE if not isinstance(case[1], bytes)])
def test_tools_json_says_the_same_as_its_value(tool: str, arguments: Any) -> None:
    assert classify(tool, msgspec.json.encode(arguments)) == classify(tool, arguments)


def test_words_of_a_name() -> None:
    assert words_of("mcp__files__HTTPDeleteFile2") == ("http", "delete", "file", "2")
    assert words_of("__") == ()


def test_tools_a_row_can_be_dropped_and_added() -> None:
    call = {"command": "rm x"}
    without = tuple(row for row in DEFAULT if row.name != "rm")
    mine = DangerousCommand(name="mine", kind="deploy", says="deploys", programs=("deploy",), flags=("--prod",))
    assert classify("Bash", call, without) is None
    found = classify("Bash", {"command": "cd x && sudo deploy --prod"}, [*without, mine])
    assert found is not None and (found.name, found.what) == ("mine", "deploy --prod deploys")
    assert classify("Bash", {"command": "deploy --staging"}, (*DEFAULT, mine)) is None
    mail = DangerousCall(name="mail", kind="send", says="sends", test=lambda call: "email" in call.words)
    assert classify("send_email", {}, (mail,)) is not None
    assert classify("Bash", call, ()) is None


def test_tools_every_row_has_its_own_name_and_says_what_happens() -> None:
    names = [row.name for row in DEFAULT]
    assert len(set(names)) == len(names)
    assert all(row.kind and row.says for row in DEFAULT)


def test_default_names_every_public_check_that_no_other_module_calls() -> None:
    folder = Path(table.__file__).parent
    texts = [path.read_text("utf-8") for path in (*folder.glob("*.py"), folder / "dangers.toml")]
    modules = (calls, disclosure, files, git, protection, services, system, things, unread)
    checks = {name for module in modules for name, value in vars(module).items() if isfunction(value)}
    uses = Counter(word for text in texts for word in re.findall(r"(?<!def )\b[a-z_]+\b", text))
    assert sorted(name for name in checks if not uses[name]) == []


def test_tools_wrong_arguments_of_a_user_are_refused() -> None:
    with pytest.raises(TypeError, match="tool must be a str"):
        classify(3, {})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="table must hold"):
        classify("Bash", {}, ("rm",))  # type: ignore[arg-type]
