"""Code in other languages than shell that wipes whole folders, tables or databases."""

from __future__ import annotations

import re
from collections.abc import Iterator

from coherence.core.lazy import lazy_regex
from coherence.policy.danger.code import code_of, plain_roots
from coherence.policy.danger.danger import Command
from coherence.policy.danger.paths import holds_everything, is_device, is_disposable
from coherence.policy.danger.sql import wiped_by_sql
from coherence.policy.danger.things import taken_by_code

_REMOVES_TREE = lazy_regex(
    r"\b(?:rmtree|removedirs|rmSync|rmdirSync|rm|rmdir|removeSync|emptyDirSync|emptyDir|rimraf(?:[\"']\)\.|\.)sync|rimraf|rimrafSync|rm_rf|rm_r"
    r"|remove_entry_secure|remove_dir_all|remove_dir|RemoveAll|deleteDirectory|deleteRecursively|remove_tree|nuke)"
    r"(?:\s*\(\s*| (?=[\"']))(?P<what>[^\n]{1,300})"
)
_STRING = lazy_regex(r"[\"'`]([^\"'`\n]{1,300})[\"'`]")
_VARIABLE = lazy_regex(r"[A-Za-z_]\w{0,60}")
_SET = lazy_regex(r"(?:^|[;\n])\s{0,20}(?:const |let |var )?([A-Za-z_]\w{0,60}) = ([^\n;]{1,300})")
_LOOP = lazy_regex(r"\bfor \(?(?:const |let |var )?([A-Za-z_]\w{0,60}) (?:in|of) ([^\n:]{1,300})")
_DROPS_DATA = lazy_regex(
    r"\bdrop_?database\s*\(|\bdrop_all\s*\(|\.\s*delete_?many\s*\(\s*(?:\{\s*\}\s*)?\)|\.\s*remove\s*\(\s*\{\s*\}\s*\)"
    r"|\.objects\s*\.\s*all\s*\(\s*\)\s*\.\s*(?:_raw_)?delete\s*\(|\.\s*query\s*\.\s*delete\s*\(\s*\)"
    r"|\bflush_?(?:all|db)\s*\(|\bdrop_?collection\s*\(|\.\s*drop\s*\(\s*\)\s*;?\s*$|\b(?:deleteAll|delete_all"
    r"|destroy_all|truncateAll)\b"
    r"|\.store\(\s?[\"']1:\*[\"'],\s?[\"']\+FLAGS[\"'],\s?[\"'][^\"'\n]{0,20}Deleted"
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
_TREE_CUE = ("rm", "remov", "empty", "delete", "rimraf", "nuke", "unlink")
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
    return [*_trees(plain_roots(code), low), *_data(code, low), *taken_by_code(code)][:8]


def code_wipes(command: Command) -> list[str]:
    """Return what the code that an interpreter is given wipes whole."""
    code = code_of(command)
    return wiped_by_code(code) if code else []


def _trees(code: str, low: str) -> Iterator[str]:
    if not any(cue in low for cue in _TREE_CUE) and "/dev/" not in low:
        return
    sifted = _SIFTED.search(code) is not None
    if "walk" in low or "glob" in low or "dir" in low:
        roots = [found["root"] or "~" for found in _WALKS.finditer(code)]
        apart = sifted or not all(map(_is_whole, roots))
        walked = [root for root in roots if _is_whole(root) and not (apart and root in (".", "*"))]
        if walked and _REMOVES_EACH.search(code) is not None:
            yield walked[0]
    looped = {found[1]: found[2] for found in _LOOP.finditer(code)}
    known = {found[1]: found[2] for found in _SET.finditer(code)} | looped
    for found in _REMOVES_TREE.finditer(code):
        if _is_quoted(code, found.start()):
            continue
        what = found["what"]
        name = _VARIABLE.match(what)
        if name is not None and name[0] in known and what[name.end() :].lstrip()[:1] in (",", ")", ""):
            if sifted and name[0] in looped:
                continue
            what = known[name[0]] + ")"
        head = what.partition(")")[0] + ")"
        if (
            (text := _STRING.search(head)) is not None
            and "join" not in head
            and _GOES_ON.match(what, text.end()) is None
        ):
            before, after = head[: text.start()].strip(), what[text.end() :].lstrip()
            if (
                before[-2:-1].isalnum()
                and before[-5:] not in ("glob(",)
                and before.endswith("(")
                and after.startswith(",")
            ) or (text[1] == "." and "chdir" in low):
                continue  # a folder in it, or another one
            if (not before or before.endswith("(") or before in ("f", "r", "b")) and _is_whole(text[1]):
                yield text[1]
    yield from (found[1] for found in _OPENS_DISK.finditer(code) if is_device(found[1]))


_WALKS = lazy_regex(
    r"\b(?:walk|Path|scandir|glob|rglob|readdirSync|listdir)\s*\(\s*[\"'](?P<root>[^\"'\n]{1,200})[\"']"
    r"|[\"']~[\"']\.(?:rglob|iterdir|glob)\("
)
_SIFTED = lazy_regex(
    r"\bif\b(?! \(?(?:\w{1,40}\.is|os\.path\.is))|\bunless\b|filter|match|suffix|ends_?with|starts_?with|chdir|mkdtemp"
    r"|glob\w{0,5}\(\s?[rf]?[\"'](?!(?:\*\*/)?\*[\"'])",
    re.IGNORECASE,
)
"""Code that takes only some of the files in a folder, or goes to another one."""
_GOES_ON = lazy_regex(
    r"[\s)]{0,20}(?:\.(?:resolve|absolute|expanduser)\(\))*[\s)]{0,20}"
    r"(?:[+%]|/(?!/)|\.(?!then|catch|sync|resolve|absolute|expanduser))"
)
_OPENS_DISK = lazy_regex(r"\b(?:open|openSync|fopen)\(\s?[\"'](/dev/[^\"'\n]{1,80})[\"']\s?,\s?[\"'](?:[wa]|r\+|rb\+)")
_REMOVES_EACH = lazy_regex(r"\b(?:os\.remove|os\.unlink|unlinkSync|rmSync|\.unlink|rmtree)\s*\(")


def _is_quoted(code: str, at: int) -> bool:
    """Return whether a place in code stands within a text of its line."""
    line = code[max(code.rfind("\n", 0, at), at - 300, 0) : at]
    return (line.count("'") % 2 == 1 and line.count('"') % 2 == 0) or (line.count('"') % 2 == 1 and "'" not in line)


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
            yield from wiped_by_sql(text, changes=True)
    if _DROPS_DATA.search(code) is not None:
        yield "?"
