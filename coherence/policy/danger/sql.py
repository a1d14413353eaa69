"""SQL that destroys data."""

from __future__ import annotations

import re

from coherence.core.lazy import lazy_regex

_NOISE = lazy_regex(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'", re.DOTALL)
_DROP = lazy_regex(
    r"\s*(?:DROP\s+(?:TABLE|DATABASE|SCHEMA|INDEX|VIEW|MATERIALIZED|COLUMN|USER|ROLE|KEYSPACE|SEQUENCE|TYPE|FUNCTION"
    r"|PROCEDURE|TRIGGER|TABLESPACE|EXTENSION|PARTITION|CONSTRAINT|OWNED|COLLECTION|STREAM|WAREHOUSE|STAGE)\b"
    r"|TRUNCATE\b(?!\s*\()|REVOKE\s+\S|PURGE\s+\S|FLUSHALL\b|FLUSHDB\b"
    r"|ALTER\s+TABLE\s[^;]*?\sDROP\s)",
    re.IGNORECASE,
)
_EVERY_ROW = lazy_regex(r"\b(?:DELETE\s+FROM\s+\S|UPDATE\s+\S+\s+(?:AS\s+\S+\s+)?SET\s)", re.IGNORECASE)
_WHERE = lazy_regex(r"\bWHERE\b(?!\s+(?:1\s*=\s*1|TRUE)\s*(?:;|\)|$))", re.IGNORECASE)
_ONLY_SHOWS = lazy_regex(r"\s*(?:EXPLAIN(?!\s+ANALYZE)|SHOW|DESCRIBE)\b", re.IGNORECASE)


_SIGNS = lazy_regex(r"[^\w%]")


def without_noise(text: str, *, keep: bool = False) -> str:
    """Return SQL without its comments and without what its strings hold, or with their letters, digits and ``%``."""
    if "*/" not in text:  # or each comment that stays open would be searched to the end
        text = text.replace("/*", " ")
    return _NOISE.sub(lambda found: _letters(found[0], keep) if found[0][0] == "'" else " ", text)


def _letters(text: str, keep: bool) -> str:
    return f"'{_SIGNS.sub('', text)}'" if keep else "''"


def destroys_data(text: str) -> bool:
    """Return whether SQL drops or truncates something, or deletes or changes rows without a real ``WHERE``.

    Statements must stand at the start of the text or after a semicolon; words in strings and comments do not count.

    Examples
    --------
    >>> [destroys_data(sql) for sql in ("SELECT 1; DROP TABLE t", "DELETE FROM t", "DELETE FROM t WHERE id = 1")]
    [True, True, False]
    """
    for statement in without_noise(text).split(";"):
        if _DROP.match(statement):
            return True
        if _EVERY_ROW.search(statement) and not _WHERE.search(statement) and not _ONLY_SHOWS.match(statement):
            return True
    return False
