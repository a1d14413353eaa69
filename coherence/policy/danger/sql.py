"""SQL that destroys data, and the tables and databases that it drops or empties."""

from __future__ import annotations

import re

from coherence.core.lazy import lazy_regex
from coherence.core.validation import ends
from coherence.policy.danger.paths import is_disposable

_NOISE = lazy_regex(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'", re.DOTALL)
_DROP = lazy_regex(
    r"\s*+(?:DROP\s+(?:TABLE|DATABASE|SCHEMA|INDEX|VIEW|MATERIALIZED|COLUMN|USER|ROLE|KEYSPACE|SEQUENCE|TYPE|FUNCTION"
    r"|PROCEDURE|TRIGGER|TABLESPACE|EXTENSION|PARTITION|CONSTRAINT|OWNED|COLLECTION|STREAM|WAREHOUSE|STAGE)\b"
    r"|TRUNCATE\b(?!\s*\()|REVOKE\s+\S|PURGE\s+\S|FLUSHALL\b|FLUSHDB\b"  # MySQL has a function TRUNCATE(price, 2)
    r"|ALTER\s+TABLE\s[^;]*?\sDROP\s)",
    re.IGNORECASE,
)
"""Statements that take something away, if only a column or a right."""
_SIGNS = lazy_regex(r"[^\w%]+")


def _without_noise(text: str) -> str:
    """Return SQL without its comments, and with the letters, digits and ``%`` of its strings alone."""
    if "*/" not in text:  # or each comment that stays open would be searched to the end
        text = text.replace("/*", " ")
    without_signs = _SIGNS.sub
    return _NOISE.sub(lambda found: f"'{without_signs('', found[0])}'" if found[0][0] == "'" else " ", text)


_NAME = r"(?P<{}>[\w.\"`\[\]#-]{{1,200}})"
_DROPS = lazy_regex(
    r"\s*+(?:DROP\s+(?P<what>DATABASE|SCHEMA|KEYSPACE|TABLESPACE|OWNED\s+BY|TABLE|COLLECTION)\s+(?:IF\s+EXISTS\s+)?"
    + _NAME.format("dropped")
    + r"|TRUNCATE\s+(?![(-])(?:TABLE\s+)?(?:ONLY\s+)?"
    + _NAME.format("truncated")
    + r"|(?:EXEC\w{0,4}\s+\w*drop\w*|FLUSHALL|FLUSHDB|MATCH\s*\(\w{0,20}\)\s*DETACH\s+DELETE)\b)",
    re.IGNORECASE,
)
_DELETES = lazy_regex(r"\bDELETE\s+(?:(?:\w{1,60}\s+)?FROM\s+)?(?:ONLY\s+)?" + _NAME.format("emptied"), re.IGNORECASE)
_STARTS_DELETE = lazy_regex(r"\s*+(?:DELETE\s+(?:\w{1,60}\s+)?FROM\s|WITH\s|BEGIN\b|DO\b)", re.IGNORECASE)
_UPDATES = lazy_regex(r"\s*+UPDATE\s+" + _NAME.format("changed") + r"\s+(?:AS\s+\w+\s+)?SET\s", re.IGNORECASE)
_LIMITS = lazy_regex(r"\b(?:WHERE|USING|LIMIT|JOIN)\b", re.IGNORECASE)
_CONDITION = lazy_regex(r"\bWHERE\b(.{1,2000})", re.IGNORECASE | re.DOTALL)
_OR, _AND = lazy_regex(r"\bOR\b", re.IGNORECASE), lazy_regex(r"\bAND\b", re.IGNORECASE)
_TRUE = lazy_regex(
    r"TRUE|1|NOT\s+FALSE|(?P<same>'[\w%]{0,80}'|\w{1,60}(?:\.\w{1,60})?)\s*(?:[<>]?=)\s*(?P=same)"
    r"|\w{0,20}id\s*(?:>=?|<>|!=)\s*(?:-\d{1,3}|[01])|\w{1,60}\s+I?LIKE\s+'%{1,3}'|\w{1,60}\s*(?:<>|!=)\s*''"
    r"|(?!\w{0,40}(?:_at|_on|_date|delet|archiv|expir|revok|parent|error|replac|cancel))\w{1,60}\s+IS\s+NOT\s+NULL",
    re.IGNORECASE,
)
"""Conditions that are true of every row."""


def _is_always(statement: str) -> bool:
    """Return whether the condition of a statement is true of every row."""
    found = _CONDITION.search(statement)
    options = _OR.split(found[1]) if found is not None else []
    return any(all(_TRUE.fullmatch(part.strip(" \t\n()")) for part in _AND.split(option)) for option in options)


_MADE = lazy_regex(
    r"\bCREATE\s+(?:OR\s+REPLACE\s+)?(?:(?:LOCAL|GLOBAL)\s+)?(?P<temp>TEMP\w*\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?"
    r"(?P<made>[\w.\"`\[\]#-]{1,200})",
    re.IGNORECASE,
)
_UNDONE = lazy_regex(r"\bROLLBACK\b(?!\s+TO\b)", re.IGNORECASE)
_SQL_CUE = ("drop", "truncate", "delete", "flush", "update")


def _plain(name: str) -> str:
    return name.strip('"`[]').replace('"', "").casefold()


def wiped_by_sql(text: str, *, changes: bool = False) -> list[str]:
    """Return the names of tables and databases that SQL drops or empties; ``?`` where it names none.

    With ``changes`` they are those of tables in which it changes every row.

    Not counted are names that say that they are made to be thrown away, a table that the same text makes anew, and what
    the text takes back.

    Examples
    --------
    >>> wiped_by_sql("SELECT 1; DELETE FROM users WHERE 1=1; DROP TABLE orders")
    ['users', 'orders']
    >>> wiped_by_sql("DELETE FROM users WHERE id = 3; DROP TABLE IF EXISTS t; CREATE TABLE t (a int)")
    []
    """
    text = ends(text, 20_000, ";")
    low = text.casefold()
    if not any(cue in low for cue in _SQL_CUE):
        return []
    clean = _without_noise(text)
    if _UNDONE.search(clean) and "commit" not in low:
        return []
    made = {_plain(found["made"]) for found in _MADE.finditer(clean)}
    wiped: list[str] = []
    for statement in clean.split(";"):
        if not changes and (drop := _DROPS.match(statement)) is not None:
            name = _plain(drop["dropped"] or drop["truncated"] or "?")
            if not (drop["truncated"] is None and name in made) and not is_disposable(name):
                wiped.append(name)
            continue
        deletes = _STARTS_DELETE.match(statement) is not None
        if deletes is changes:
            continue
        found = _DELETES.search(statement) if deletes else _UPDATES.match(statement)
        if found is not None and (not _LIMITS.search(statement, found.end()) or _is_always(statement)):
            name = _plain(found[1])
            if name not in made and not is_disposable(name):
                wiped.append(name)
    return wiped[:8]


def destroys_data(text: str) -> bool:
    """Return whether SQL drops or truncates something, or deletes or changes every row of a table.

    Statements must stand at the start of the text or after a semicolon; words in strings and comments do not count.

    Examples
    --------
    >>> [destroys_data(sql) for sql in ("SELECT 1; DROP TABLE t", "DELETE FROM t", "DELETE FROM t WHERE id = 1")]
    [True, True, False]
    """
    statements = _without_noise(text).split(";")
    return any(map(_DROP.match, statements)) or bool(wiped_by_sql(text) or wiped_by_sql(text, changes=True))
