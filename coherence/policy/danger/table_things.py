"""Enforced rows about services that others rely on, and about what protects or watches a system."""

from __future__ import annotations

import re
from itertools import pairwise

from coherence.core.lazy import lazy_regex
from coherence.policy.danger.danger import Asking, Command, DangerousCall, DangerousCommand, ToolUse
from coherence.policy.danger.paths import is_secret
from coherence.policy.danger.requests import UNGUARD, WIPE_DATA, WIPE_SERVICES
from coherence.policy.danger.table_services import SQL_PROGRAMS
from coherence.policy.danger.things import (
    DELETES,
    GUARD_PROGRAMS,
    GUARDS,
    SERVICE_PROGRAMS,
    SERVICES,
    is_off,
    parts,
    taken_away,
    unguarded,
    wiped_over_http,
)
from coherence.policy.danger.wipes import wiped_by_sql

_SERVICES = Asking(
    acts=WIPE_SERVICES.acts + " unpublish forget", things=f"{WIPE_SERVICES.things} {' '.join(sorted(SERVICES))}"
)
_OVER_HTTP = Asking(
    acts=WIPE_DATA.acts, things=f"{WIPE_DATA.things} {' '.join(sorted(SERVICES))} indices protection record everything"
)
_BY_QUERY = lazy_regex(r"_delete_by_query\b")
_EVERYTHING = lazy_regex(r"match_all|<query>\*:\*</query>|\"q(?:uery)?\":\s?\"\*(?::\*)?\"")
_WEAKENS = lazy_regex(
    r"NOPASSWD|\bPermit(?:RootLogin|EmptyPasswords)[^\n]{0,20}\s(?:yes|without-password)\b"
    r"|\bSELINUX=(?:disabled|permissive)\b|\bENABLED=no\b|^ALL\s*=|\btrust\b|\bssh-(?:rsa|ed25519) ",
)
_SQL = frozenset(SQL_PROGRAMS)
_OPENS_SQL = lazy_regex(
    r"\bALTER\s+(?:USER|ROLE)\s+\S{1,80}\s+(?:WITH\s+)?(?:SUPERUSER|BYPASSRLS)\b|\bDISABLE\s+ROW\s+LEVEL\s+SECURITY\b"
    r"|\bGRANT\s+ALL\b[^;\n]{1,80}\sTO\s+PUBLIC\b|\bGRANT\s+ALL\b[^;\n]{0,40}\sON\s+\*\.\*\s+TO\b|\bPURGE\s+BINARY\s+LOGS\b"
    r"|\bALTER\s+SYSTEM\s+SET\s+log_\w{1,30}|\bSET\s+GLOBAL\s+(?:general_log|log_bin)\s?=\s?(?:OFF|0)\b"
    r"|\bUNINSTALL\s+(?:PLUGIN|COMPONENT)\b|\bDISABLE\s+TRIGGER\s+ALL\b|\bDROP\s+EXTENSION\s+pgaudit\b",
    re.IGNORECASE,
)
_UNSCHEDULES = lazy_regex(r"(?:grep -v|sed)[^)\n]{0,60}(?:backup|audit|restic|borg|clamscan|snapshot)")
_ITS_CONFIG = lazy_regex(
    r"/etc/(?:sudoers|ssh/|selinux/|default/ufw|ufw/|pam\.d/|security/|audit/|postgresql/)|/root[/]\.ssh/authorized_keys"
)
_AUDIT_LOG = lazy_regex(
    r"/var/log/(?:audit(?:/\S{0,80})?|(?:auth|secure|syslog|messages|wtmp|btmp|lastlog|faillog|kern)(?:\.log)?(?:\.\d)?\*?)"
)
_OPEN_MODE = lazy_regex(r"[0-7]?[0-7]{2}[2367]|u\+s|4[0-7]{3}|[ago]*o[ago]*\+[rx]*w\w*|a\+\w*w\w*|\+\w*w\w*")
_GUARDED = lazy_regex(
    r"/etc/(?:shadow|gshadow|passwd|sudoers(?:\.d(?:/\S{0,80})?)?|ssh/\S{1,80})|/(?:usr/)?s?bin/\S{1,60}"
)


def _taken(command: Command) -> list[str]:
    if command.program == "nsupdate":
        return ["?"] if "update del" in command.stdin[:4_000] else []
    each = "$(" in command.stdin and not any("://" in arg for arg in command.args)
    return taken_away(command.program, command.operands, command.args, each=each)


def _over_http(command: Command) -> list[str]:
    args = command.args
    method = " ".join(args[:60]).casefold()
    url = next((arg for arg in args if "://" in arg or (":" in arg and "/" in arg)), "")
    if "delete" in (word.removeprefix("-x").rpartition("=")[2] for word in method.split()):
        found = wiped_over_http(url, each="$(" in command.stdin or "$(" in command.reads)
        return [found] if found else []
    return _by_query([*args, command.stdin[:2_000]])


def _by_query(texts: list[str]) -> list[str]:
    text = "\n".join(each[:2_000] for each in texts[:60])
    if (_BY_QUERY.search(text) is not None or "<delete>" in text) and _EVERYTHING.search(text) is not None:
        return ["?"]
    return [name for each in texts for name in wiped_by_sql(each[2:])] if "q=D" in text or "q=d" in text else []


def _weakens(command: Command) -> bool:
    """Return whether a command writes a setting that lets everybody in, opens a guarded file or empties a log."""
    program, operands = command.program, command.operands
    if program == "chmod":
        return _OPEN_MODE.fullmatch("".join(operands[:1])) is not None and any(
            _GUARDED.fullmatch(path) is not None or is_secret(path) for path in operands[1:]
        )
    if program in ("truncate", "shred", "rm") or (command.writes and not command.appends):
        return any(_AUDIT_LOG.fullmatch(path) is not None for path in (*operands, command.writes))
    shown = f"{command.text} {command.stdin[:500]}"
    if program == "crontab":
        return _UNSCHEDULES.search(command.stdin[:2_000]) is not None
    if program in _SQL:
        return _OPENS_SQL.search(" ".join(command.args)[:4_000] + command.stdin[:4_000]) is not None
    return _WEAKENS.search(shown) is not None and _ITS_CONFIG.search(f"{command.writes} {command.text}") is not None


COMMANDS: tuple[DangerousCommand, ...] = (
    DangerousCommand(
        name="wipe-cloud",
        kind="wipe",
        says="deletes data, machines or backups that others rely on",
        programs=(*SERVICE_PROGRAMS, "nsupdate"),
        test=lambda command: bool(_taken(command)),
        enforced=True,
        weighs=False,
        asking=_SERVICES,
        targets=_taken,
    ),
    DangerousCommand(
        name="wipe-over-http",
        kind="wipe",
        says="deletes a whole store or collection",
        programs=("curl", "http", "https", "xh", "wget", "iwr", "irm", "invoke-restmethod", "invoke-webrequest"),
        test=lambda command: bool(_over_http(command)),
        enforced=True,
        weighs=False,
        asking=_OVER_HTTP,
        targets=_over_http,
    ),
    DangerousCommand(
        name="unguard",
        kind="protection",
        says="switches off what protects or watches a system, or opens it to everybody",
        programs=GUARD_PROGRAMS,
        test=lambda command: unguarded(command.program, command.args),
        enforced=True,
        weighs=False,
        asking=UNGUARD,
    ),
    DangerousCommand(
        name="weaken",
        kind="protection",
        says="lets everybody in, or empties the log that would tell",
        programs=("chmod", "sed", "tee", "echo", "printf", "truncate", "shred", "rm", "crontab", *SQL_PROGRAMS, ""),
        test=_weakens,
        enforced=True,
        weighs=False,
        asking=UNGUARD,
    ),
)
"""Rows about commands."""


_STORE_TOOLS = frozenset({"elasticsearch", "es", "elastic", "opensearch", "couchdb", "qdrant"})
_METHODS = ("method", "http_method", "verb", "action", "type")
_URLS = ("url", "uri", "endpoint", "path", "address", "href")


def _call_over_http(call: ToolUse) -> list[str]:
    deletes = "delete" in call.words or any(value.casefold() == "delete" for value in call.values(_METHODS))
    urls = [value for value in call.values(_URLS) if "/" in value]
    if deletes:
        store = not _STORE_TOOLS.isdisjoint(call.words)  # whose paths are those of a search store
        host = "http://elastic:9200" if store else "https://api"
        given = "delete" not in call.words or store  # else a path is one of a file
        full = [url if "://" in url else f"{host}/{url.lstrip('/')}" for url in urls if "://" in url or given]
        return [found for url in full if (found := wiped_over_http(url))][:4]
    return (
        _by_query([f"{key} {value}" for key, value in call.pairs[:60]])
        if any("_delete_by_query" in url for url in urls)
        else []
    )


_STATES = (
    "enabled",
    "enable",
    "active",
    "state",
    "status",
    "enforced",
    "protected",
    "on",
    "value",
    "setting",
    "action",
)
_NO = ("false", "off", "disabled", "0", "no", "inactive", "disable")
_ACTIONS = ("action", "operation", "op", "command", "verb")
_FLAGS = GUARDS | {"retention", "enforce", "required", "audit"}
_SQL_KEYS = ("query", "sql", "statement", "statements")
_CHANGES = DELETES | {
    "add",
    "create",
    "authorize",
    "open",
    "allow",
    "reset",
    "sql",
    "query",
    "put",
    "patch",
    "disable",
    "stop",
    "turn",
    "deactivate",
    "suspend",
    "set",
    "update",
    "configure",
    "change",
    "toggle",
}


def _call_unguards(call: ToolUse) -> bool:
    words = set(call.words).union(*(parts(value) for value in call.values(_ACTIONS) if len(value) <= 60))
    asks = "http" in words or "request" in words or "fetch" in words
    if _CHANGES.isdisjoint(words) and not asks:
        return False
    if any(key in _SQL_KEYS and _OPENS_SQL.search(value[:4_000]) is not None for key, value in call.pairs[:60]):
        return True
    named = {part for value in call.values(("name", "service", "feature", "setting", "key")) for part in parts(value)}
    if any(value.casefold() in ("put", "patch", "post") for value in call.values(_METHODS)):
        words.add("set")
        named.update(
            part for value in call.values(_URLS) for part in parts(value.partition("://")[2].partition("/")[2])
        )
    off = any(value.casefold() in _NO for value in call.values(_STATES))
    for key, value in call.pairs[:200]:
        if value.casefold() in _NO and not _FLAGS.isdisjoint(parts(key)):
            named.update(parts(key))
            off = True
    if words & {"group", "firewall", "ingress", "acl"} and any(
        value in ("0.0.0.0/0", "::/0", "public-read", "*") for _, value in call.pairs
    ):
        return True
    own = {*words, *map("".join, pairwise(call.words))}
    return is_off({*own, *named, *(("off",) if off else ())})


CALLS: tuple[DangerousCall, ...] = (
    DangerousCall(
        name="tool-wipe-over-http",
        kind="wipe",
        says="deletes a whole store or collection",
        test=lambda call: bool(_call_over_http(call)),
        enforced=True,
        weighs=False,
        asking=_OVER_HTTP,
        targets=_call_over_http,
    ),
    DangerousCall(
        name="tool-unguard",
        kind="protection",
        says="switches off what protects or watches a system, or opens it to everybody",
        test=_call_unguards,
        enforced=True,
        weighs=False,
        asking=UNGUARD,
    ),
)
"""Rows about tools that are no shell."""
