"""SQL and code that wipe whole tables, databases or folders, and what they wipe."""

from __future__ import annotations

import re
from collections.abc import Iterator

from coherence.core.lazy import lazy_regex
from coherence.policy.danger.roots import holds_everything, is_disposable
from coherence.policy.danger.sql import without_noise

_NAME = r"(?P<{}>[\w.\"`\[\]#-]{{1,200}})"
_DROPS = lazy_regex(
    r"\s*(?:DROP\s+(?P<what>DATABASE|SCHEMA|KEYSPACE|TABLESPACE|OWNED\s+BY|TABLE|COLLECTION)\s+(?:IF\s+EXISTS\s+)?"
    + _NAME.format("dropped")
    + r"|TRUNCATE\s+(?![(-])(?:TABLE\s+)?(?:ONLY\s+)?"
    + _NAME.format("truncated")
    + r"|(?:EXEC\w{0,4}\s+\w*drop\w*|FLUSHALL|FLUSHDB)\b)",
    re.IGNORECASE,
)
_DELETES = lazy_regex(r"\bDELETE\s+(?:FROM\s+)?(?:ONLY\s+)?" + _NAME.format("emptied"), re.IGNORECASE)
_STARTS_DELETE = lazy_regex(r"\s*(?:DELETE\s+FROM\s|WITH\s|BEGIN\b|DO\b)", re.IGNORECASE)
_UPDATES = lazy_regex(r"\s*UPDATE\s+" + _NAME.format("changed") + r"\s+(?:AS\s+\w+\s+)?SET\s", re.IGNORECASE)
_LIMITS = lazy_regex(r"\b(?:WHERE|USING|LIMIT|JOIN)\b", re.IGNORECASE)
_ALWAYS = lazy_regex(
    r"\bWHERE\s+\(?\s*(?:(\d+|'')\s*=\s*\1|TRUE|1|1\s*<\s*2|NOT\s+FALSE|\w{1,60}\s+IS\s+NOT\s+NULL"
    r"|\w{0,20}id\s*>=?\s*[01-]\d?"
    r"|\w{1,60}\s+LIKE\s+'%?')\s*\)?\s*$",
    re.IGNORECASE,
)
_MADE = lazy_regex(
    r"\bCREATE\s+(?:OR\s+REPLACE\s+)?(?:(?:LOCAL|GLOBAL)\s+)?(?P<temp>TEMP\w*\s+)?TABLE\s+(?:IF\s+NOT\s+EXISTS\s+)?"
    r"(?P<made>[\w.\"`\[\]#-]{1,200})",
    re.IGNORECASE,
)
_UNDONE = lazy_regex(r"\bROLLBACK\b(?!\s+TO\b)", re.IGNORECASE)
_SQL_CUE = ("drop", "truncate", "delete", "flush", "update")


def _plain(name: str) -> str:
    return name.strip('"`[]').replace('"', "").casefold()


def wiped_by_sql(text: str) -> list[str]:
    """Return the names of tables and databases that SQL drops or empties; ``?`` where it names none.

    Not counted are names that say that they are made to be thrown away, a table that the same text makes anew, and what
    the text takes back.

    Examples
    --------
    >>> wiped_by_sql("SELECT 1; DELETE FROM users WHERE 1=1; DROP TABLE orders")
    ['users', 'orders']
    >>> wiped_by_sql("DELETE FROM users WHERE id = 3; DROP TABLE IF EXISTS t; CREATE TABLE t (a int)")
    []
    """
    low = text[:20_000].casefold() if len(text) <= 20_000 else (text[:10_000] + ";" + text[-10_000:]).casefold()
    if not any(cue in low for cue in _SQL_CUE):
        return []
    text = text if len(text) <= 20_000 else text[:10_000] + ";" + text[-10_000:]
    clean = without_noise(text)
    if _UNDONE.search(clean) and "commit" not in low:
        return []
    made = {_plain(found["made"]) for found in _MADE.finditer(clean)}
    wiped: list[str] = []
    for statement in clean.split(";"):
        if (drop := _DROPS.match(statement)) is not None:
            name = _plain(drop["dropped"] or drop["truncated"] or "?")
            if not (drop["truncated"] is None and name in made) and not is_disposable(name):
                wiped.append(name)
            continue
        found = _DELETES.search(statement) if _STARTS_DELETE.match(statement) else _UPDATES.match(statement)
        if found is not None and (not _LIMITS.search(statement, found.end()) or _ALWAYS.search(statement)):
            name = _plain(found[1])
            if name not in made and not is_disposable(name):
                wiped.append(name)
    return wiped[:8]


_REMOVES_TREE = lazy_regex(
    r"\b(?:rmtree|removedirs|rmSync|rmdirSync|rm|rmdir|removeSync|emptyDirSync|emptyDir|rimraf|rimrafSync|rm_rf|rm_r"
    r"|remove_entry_secure|remove_dir_all|RemoveAll|deleteDirectory|deleteRecursively|remove_tree|nuke)"
    r"\s*\(\s*(?P<what>[^\n]{1,300})"
)
_STRING = lazy_regex(r"[\"'`]([^\"'`\n]{1,300})[\"'`]")
_VARIABLE = lazy_regex(r"[A-Za-z_]\w{0,60}")
_SET = lazy_regex(r"(?:^|[;\n])\s{0,20}(?:const |let |var )?([A-Za-z_]\w{0,60}) = ([^\n;]{1,300})")
_LOOP = lazy_regex(r"\bfor ([A-Za-z_]\w{0,60}) (?:in|of) ([^\n:]{1,300})")
_HOME_CALL = lazy_regex(
    r"(?:(?:pathlib\.)?Path\.home\(\)|(?:os\.)?homedir\(\)|Dir\.home"
    r"|(?:os\.)?environ(?:\.get)?[\[(]\s*[\"']HOME[\"']\s*[\])]"
    r"|process\.env\.HOME|ENV\[[\"']HOME[\"']\]|os\.UserHomeDir\(\))\s*(?:[,)]|$)"
)
_DROPS_DATA = lazy_regex(
    r"\bdrop_?database\s*\(|\bdrop_all\s*\(|\.\s*delete_?many\s*\(\s*(?:\{\s*\}\s*)?\)|\.\s*remove\s*\(\s*\{\s*\}\s*\)"
    r"|\.objects\s*\.\s*all\s*\(\s*\)\s*\.\s*(?:_raw_)?delete\s*\(|\.\s*query\s*\.\s*delete\s*\(\s*\)"
    r"|\bflush_?(?:all|db)\s*\(|\bdrop_?collection\s*\(|\.\s*drop\s*\(\s*\)\s*;?\s*$|\b(?:deleteAll|delete_all"
    r"|destroy_all|truncateAll)\b"
    r"|\bindices\s*\.\s*delete\s*\(\s*(?:index\s*=\s*)?[\"'](?:\*|_all)",
    re.IGNORECASE | re.MULTILINE,
)
_CONNECTS = lazy_regex(
    r"(?:connect|create_engine|Client|Redis|createConnection|createPool|Database)\s*\(([^\n]{0,300})"
)
_ORM_CUE = ("drop", "delete", "remove", "flush", "destroy", "truncate")
_TEXTS = lazy_regex(
    r"\"\"\"(.{1,4000}?)\"\"\"|'''(.{1,4000}?)'''|\"((?:[^\"\\\n]|\\.){1,2000})\"|'((?:[^'\\\n]|\\.){1,2000})'"
    r"|`([^`]{1,2000})`",
    re.DOTALL,
)
_TREE_CUE = ("rm", "remov", "empty", "delete", "rimraf", "nuke")
MAX_CODE = 20_000


def wiped_by_code(code: str) -> list[str]:
    r"""Return what code in another language than shell wipes: whole folders, tables or databases.

    Examples
    --------
    >>> wiped_by_code("import shutil, os\np = os.path.expanduser('~')\nshutil.rmtree(p)")
    ['~']
    >>> wiped_by_code("shutil.rmtree('build')"), wiped_by_code("db.execute('DROP TABLE users')")
    ([], ['users'])
    """
    code = code if len(code) <= MAX_CODE else code[: MAX_CODE // 2] + "\n" + code[-MAX_CODE // 2 :]
    low = code.casefold()
    return [*_trees(code, low), *_data(code, low)][:8]


def _trees(code: str, low: str) -> Iterator[str]:
    if not any(cue in low for cue in _TREE_CUE):
        return
    if "walk" in low or "glob" in low or "dir" in low:
        walked = [
            found["root"]
            for found in _WALKS.finditer(code)
            if _is_whole(found["root"]) and found["root"] not in (".", "*")
        ]
        if walked and _REMOVES_EACH.search(code) is not None:
            yield walked[0]
    known = {found[1]: found[2] for found in _SET.finditer(code)}
    known |= {found[1]: found[2] for found in _LOOP.finditer(code)}
    for found in _REMOVES_TREE.finditer(code):
        what = found["what"]
        name = _VARIABLE.match(what)
        if name is not None and name[0] in known and what[name.end() :].lstrip()[:1] in (",", ")", ""):
            what = known[name[0]] + ")"
        head = what.partition(")")[0] + ")"
        if _HOME_CALL.match(what) is not None:
            yield "~"
        elif (text := _STRING.search(head)) is not None and "join" not in head and "/ " not in head:
            before = head[: text.start()].strip()
            if (not before or before.endswith("(") or before in ("f", "r", "b")) and _is_whole(text[1]):
                yield text[1]


_WALKS = lazy_regex(
    r"\b(?:walk|Path|scandir|glob|rglob|readdirSync|listdir)\s*\(\s*[\"'](?P<root>[^\"'\n]{1,200})[\"']"
)
_REMOVES_EACH = lazy_regex(r"\b(?:os\.remove|os\.unlink|unlinkSync|rmSync|\.unlink|rmtree)\s*\(")


def _is_whole(path: str) -> bool:
    return holds_everything(path) if path not in (".", "*") else True


def _data(code: str, low: str) -> Iterator[str]:
    if not any(cue in low for cue in _ORM_CUE):
        return
    connected = _CONNECTS.search(code)
    if connected is not None and is_disposable(connected[1]):
        return
    for found in _TEXTS.finditer(code):
        text = next(group for group in found.groups() if group is not None)
        if " " in text:
            yield from wiped_by_sql(text)
    if _DROPS_DATA.search(code) is not None:
        yield "?"
