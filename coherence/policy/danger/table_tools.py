"""Rows about tools that are no shell: their names and arguments."""

from __future__ import annotations

import re

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.policy.danger.code import destroys
from coherence.policy.danger.danger import DangerousCall, ToolUse
from coherence.policy.danger.paths import is_guarded
from coherence.policy.danger.sql import destroys_data

_DESTROYS = frozenset(
    [
        "delete",
        "remove",
        "destroy",
        "purge",
        "wipe",
        "erase",
        "kill",
        "terminate",
        "revoke",
        "uninstall",
        "unpublish",
        "unlink",
        "rmdir",
        "rm",
        "rmtree",
        "shutdown",
        "del",
    ]
)
_DROPS = frozenset(["drop", "truncate", "reset", "flush"])
_DROPPED = frozenset(
    [
        "table",
        "tables",
        "database",
        "db",
        "collection",
        "index",
        "schema",
        "column",
        "view",
        "keyspace",
        "partition",
        "data",
        "all",
        "stream",
        "topic",
    ]
)
_LOOKS = frozenset(
    [
        "get",
        "list",
        "read",
        "show",
        "describe",
        "search",
        "find",
        "check",
        "can",
        "is",
        "has",
        "preview",
        "count",
        "undo",
        "restore",
        "validate",
        "view",
        "fetch",
        "query",
        "should",
        "help",
        "explain",
        "simulate",
        "dry",
        "plan",
        "estimate",
        "test",
        "no",
        "not",
    ]
)
_NOT_FILES = frozenset(
    [
        "whitespace",
        "spaces",
        "duplicates",
        "duplicate",
        "background",
        "punctuation",
        "stopwords",
        "stopword",
        "filter",
        "filters",
        "highlight",
        "noise",
        "formatting",
        "html",
        "emoji",
        "accents",
        "outliers",
        "nulls",
        "nan",
        "prefix",
        "suffix",
        "watermark",
        "selection",
    ]
)
_ACTIONS = word_set("action operation op method verb http_method httpmethod command mode subcommand")
_PATHS = word_set(
    "path file_path filepath filename file file_name target_file notebook_path destination dest target uri "
    "new_path output_path absolute_path relative_path targetfile"
)
_WRITES = frozenset(
    [
        "write",
        "edit",
        "create",
        "update",
        "save",
        "replace",
        "overwrite",
        "insert",
        "multiedit",
        "multi",
        "patch",
        "put",
        "upload",
        "move",
        "rename",
        "copy",
        "str",
        "editor",
        "append",
        "modify",
        "change",
        "download",
    ]
)
_PATCHED = lazy_regex(r"^\*\*\* (?P<verb>Delete|Update|Add) File: (?P<path>[^\n]+)", re.MULTILINE)
_NAME = lazy_regex(r"[\w.-]{1,100}")
_SEPARATORS = lazy_regex(r"[_.-]")
_CODE = word_set("code script source python javascript js")


def _verb(call: ToolUse) -> str:
    """Return the destroying word of the tool's name, unless a word before it says that it only looks."""
    for word in call.words:
        if word in _LOOKS:
            return ""
        if word in _DESTROYS or word in _DROPS:
            return word
    return ""


def _named(call: ToolUse) -> bool:
    verb = _verb(call)
    if verb in _DROPS:
        return (call.words == (verb,) and verb != "reset") or not _DROPPED.isdisjoint(call.words)
    return bool(verb) and _NOT_FILES.isdisjoint(call.words)


def _acts(call: ToolUse) -> bool:
    return any(
        _NAME.fullmatch(value) is not None and not _DESTROYS.isdisjoint(_SEPARATORS.split(value.lower())[:1])
        for value in call.values(_ACTIONS)
    )


def _overwrites_secret(call: ToolUse) -> bool:
    if _WRITES.isdisjoint(call.words) or any(
        value in ("view", "read", "list", "get") for value in call.values(_ACTIONS)
    ):
        return False
    return any(is_guarded(value) for value in call.values(_PATHS))


def _patches(call: ToolUse) -> bool:
    return any(
        found["verb"] == "Delete" or (found["verb"] == "Update" and is_guarded(found["path"]))
        for _, value in call.pairs
        if "*** " in value
        for found in _PATCHED.finditer(value)
    )


def _queries(call: ToolUse) -> bool:
    return any(destroys_data(value) for value in call.values(("query", "sql", "statement", "statements", "queries")))


def _codes(call: ToolUse) -> bool:
    return any(destroys(value) for value in call.values(_CODE))


TOOLS: tuple[DangerousCall, ...] = (
    DangerousCall(name="tool-name", kind="delete", says="deletes or ends something, by its name", test=_named),
    DangerousCall(name="tool-action", kind="delete", says="is asked to delete something", test=_acts),
    DangerousCall(
        name="tool-secret", kind="overwrite", says="overwrites a secret or a system file", test=_overwrites_secret
    ),
    DangerousCall(
        name="tool-patch", kind="delete", says="deletes a file, or changes a secret, by a patch", test=_patches
    ),
    DangerousCall(name="tool-sql", kind="data", says="destroys data", test=_queries),
    DangerousCall(name="tool-code", kind="delete", says="runs code that deletes", test=_codes),
)
"""Rows about tools that are no shell."""
