"""Calls of tools that are no shell: what their names and arguments destroy, and the commands that they stand for."""

from __future__ import annotations

import re
from collections.abc import Iterator

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.policy.danger.arguments import is_shell
from coherence.policy.danger.danger import Command, ToolUse, command_of, short
from coherence.policy.danger.paths import holds_everything, is_disposable, is_guarded
from coherence.policy.danger.services import KINDS
from coherence.policy.danger.sql import destroys_data
from coherence.policy.danger.things import COLLECTIONS, STORES, parts, singular

_DESTROYS = word_set(
    "delete remove destroy purge wipe erase kill terminate revoke uninstall unpublish unlink rmdir rm rmtree "
    "shutdown del"
)
_DROPS = word_set("drop truncate reset flush")
_DROPPED = word_set(
    "table tables database db collection index schema column view keyspace partition data all stream topic"
)
_LOOKS = word_set(
    "get list read show describe search find check can is has preview count undo restore validate view fetch query "
    "should help explain simulate dry plan estimate test no not"
)
_NOT_FILES = word_set(
    "whitespace spaces duplicates duplicate background punctuation stopwords stopword filter filters highlight noise "
    "formatting html emoji accents outliers nulls nan prefix suffix watermark selection"
)
_ACTIONS = word_set("action operation op method verb http_method httpmethod command mode subcommand")
_PATHS = word_set(
    "path file_path filepath filename file file_name target_file notebook_path destination dest target uri "
    "new_path output_path absolute_path relative_path targetfile"
)
_WRITES = word_set(
    "write edit create update save replace overwrite insert multiedit multi patch put upload move rename copy str "
    "editor append modify change download"
)
_PATCHED = lazy_regex(r"^\*\*\* (?P<verb>Delete|Update|Add) File: (?P<path>[^\n]+)", re.MULTILINE)
_NAME = lazy_regex(r"[\w.-]{1,100}")
_SEPARATORS = lazy_regex(r"[_.-]")


def destroys_by_name(call: ToolUse) -> bool:
    """Return whether a tool's name says that it destroys something, unless a word before says that it only looks."""
    verb = ""
    for word in call.words:
        if word in _LOOKS:
            return False
        if word in _DESTROYS or word in _DROPS:
            verb = word
            break
    if verb in _DROPS:
        return (call.words == (verb,) and verb != "reset") or not _DROPPED.isdisjoint(call.words)
    return bool(verb) and _NOT_FILES.isdisjoint(call.words)


def destroys_by_action(call: ToolUse) -> bool:
    """Return whether an argument asks a tool to delete something."""
    return any(
        _NAME.fullmatch(value) is not None and not _DESTROYS.isdisjoint(_SEPARATORS.split(value.lower())[:1])
        for value in call.values(_ACTIONS)
    )


def writes_over(call: ToolUse) -> bool:
    """Return whether a tool overwrites a secret or a system file."""
    if _WRITES.isdisjoint(call.words) or any(
        value in ("view", "read", "list", "get") for value in call.values(_ACTIONS)
    ):
        return False
    return any(map(is_guarded, call.values(_PATHS)))


def patch_destroys(call: ToolUse) -> bool:
    """Return whether a patch deletes a file or changes a secret."""
    return any(
        found["verb"] == "Delete" or (found["verb"] == "Update" and is_guarded(found["path"]))
        for _, value in call.pairs
        if "*** " in value
        for found in _PATCHED.finditer(value)
    )


def sql_destroys(call: ToolUse) -> bool:
    """Return whether a tool is given SQL that destroys data."""
    return any(map(destroys_data, call.values(("query", "sql", "statement", "statements", "queries"))))


_WIPING = word_set(
    "delete remove drop wipe purge truncate erase destroy reset nuke clear flush format rm rmdir rmtree empty "
    "terminate flushall flushdb"
)
_STRONG = word_set("delete drop wipe purge erase destroy nuke terminate remove rm")
_EMPTIED = word_set("database db schema disk drive cluster repository repo namespace bucket project keyspace")
"""Stores that a tool may not empty or reset either."""
OWNED = word_set(
    "customer team board site calendar mailbox audience account group app function environment webapp space "
    "product list user base topic secret"
)
"""Things that are destroyed whole only where they are the last word of a tool's name."""
_EVERY = word_set("all everything every entire")
_MANY = COLLECTIONS | word_set(
    "records users customers files data rows emails messages documents backups tables objects resources"
)
_SINGLE = word_set("file files row rows record records branch document item entry key object label member")
"""Things of which a tool takes one, unless it says that it takes all."""
_PARTS = word_set("cache variable from draft filter notification notifications cart")
"""Words of tools that take a trifle, or a part of a thing, away."""
_WIPING_KEYS = word_set("action operation op method command subcommand verb")
_THING_KEYS = word_set("action operation op method resource resource_type kind type")
_NAME_KEYS = word_set(
    "name database db table schema namespace bucket repo repository project cluster collection id target"
)
PATH_KEYS = word_set("path file_path filepath dir directory folder target paths dirpath root file location uri")
"""Arguments that name files or folders."""
_SELECTIONS = word_set(
    "scope which selection target filter what pattern query ids id name names where selector criteria condition keys "
    "index indices"
)
_EVERYTHING = word_set("all * everything {} % .* ** *:* _all in:anywhere 1=1 true") | {"id != null", "1 = 1"}


def names(call: ToolUse) -> list[str]:
    """Return the names that a tool is given."""
    return [value for value in call.values(_NAME_KEYS) if len(value) <= 200]


def _words(call: ToolUse, keys: frozenset[str]) -> list[str]:
    """Return the words of a tool's name, and of the short arguments of some names."""
    return [*call.words, *(word for value in call.values(keys) if len(value) <= 60 for word in parts(value))]


def wiping(call: ToolUse) -> str:
    """Return the word of the tool's name, or of its action, that wipes; none where a word before it only looks."""
    verb = next((word for word in _words(call, _WIPING_KEYS) if word in _WIPING or word in _LOOKS), "")
    return verb if verb in _WIPING else ""


def wipes_store(call: ToolUse) -> bool:
    """Return whether a tool's name and arguments say that it takes a whole store, or all of something."""
    verb = wiping(call)
    if not verb:
        return False
    words = set(_words(call, _THING_KEYS))
    nouns = [word for word in call.words if word not in _WIPING]
    last = singular(nouns[-1]) if nouns and verb in _STRONG else ""
    if not words.isdisjoint(_PARTS) or ("user" in call.words and last != "user"):
        return False
    if any(value.strip().casefold() in _EVERYTHING for value in call.values(_SELECTIONS)) and not any(
        call.values(PATH_KEYS)
    ):
        words |= {"all", "data"}
    if any(value == "true" for value in call.values(("all", "everything"))):
        words.add("all")
    if words & {"flushall", "flushdb"} or words >= {"redis", "flush"}:
        return True
    if call.words[-1:] in (("all",), ("everything",)) and verb in _STRONG:
        return True
    things = words.union(map(singular, words))
    stores = (
        last in OWNED
        or not (STORES if verb in _STRONG else _EMPTIED).isdisjoint(things)
        or (bool(things & {"table", "collection"}) and bool(words & {"drop", "truncate", "wipe", "purge", "empty"}))
    )
    every = bool(words & _EVERY) and (not _MANY.isdisjoint(things) or words <= _WIPING | _EVERY)
    # A single row is a trifle, a single record of DNS takes a site off the net.
    if not every and "dns" not in words and not words.isdisjoint(_SINGLE):
        return False
    return (stores or every) and not is_disposable(*names(call))


_SQL_TOOL = word_set(
    "sql query db database postgres postgresql mysql sqlite mongo bigquery snowflake duckdb execute supabase redshift "
    "clickhouse"
)
_DATA_TOOL = _SQL_TOOL | {"mongodb", "redis", "cache", "graphql"}
_CLUSTER_TOOL = word_set("k8s kubernetes kube kubectl cluster openshift")
_STORE_TOOL = word_set("elasticsearch es elastic opensearch couchdb qdrant")
WRITES_CODE = word_set("write create edit save str replace update append patch insert view")
"""Words of tools that are given text which they do not run."""
_SQL_KEYS = word_set("query sql statement statements queries q stmt command text input script body code")
_PLACE_KEYS = word_set("database db connection environment env database_url dsn path host")
_DELETE_KEYS = word_set("delete deletes remove deletemany delete_many drop dropdatabase")
_FILTER_KEYS = word_set("q filter query where selector criteria condition")
_COMMAND_KEYS = word_set("command commands cmd script input text") | {""}
_REF_KEYS = word_set("branch ref refspec target remote_branch")
_FORCE_KEYS = word_set("force forced force_push force_with_lease forcepush")
_FLAG_KEYS = word_set("args flags options arguments refspec")
_VERB_KEYS = word_set("verb action operation method command subcommand http_method type")
_TRUE = ("true", "yes", "1", "force")


def stands_for(call: ToolUse) -> Iterator[Command]:
    """Yield the commands that a call of a tool stands for.

    Examples
    --------
    >>> call = ToolUse(words=("git", "push"), pairs=[("force", "true"), ("branch", "main")])
    >>> [command.text for command in stands_for(call)]
    ['git push --force origin main']
    """
    verbs = [value.casefold() for value in call.values(_VERB_KEYS)]
    for argv in (*_requests(call, verbs), *_of_cluster(call, verbs), *_pushes(call, verbs), *_removals(call)):
        yield command_of(argv, text=short(" ".join(argv)))
    yield from _queries(call)


def _requests(call: ToolUse, verbs: list[str]) -> Iterator[tuple[str, ...]]:
    urls = [value for value in call.values(("url", "uri", "endpoint", "path", "address", "href")) if "/" in value]
    if "delete" in call.words or "delete" in verbs:
        store = not _STORE_TOOL.isdisjoint(call.words)  # its paths are those of a search store
        host = "http://elastic:9200" if store else "https://api"
        whole = "delete" not in call.words or store  # else a path is one of a file
        full = (url if "://" in url else f"{host}/{url.lstrip('/')}" for url in urls if "://" in url or whole)
        yield from (("curl", "-X", "DELETE", url) for url in full)
    elif any("_delete_by_query" in url for url in urls):
        yield ("curl", *(f"{key} {value}" for key, value in call.pairs[:60]))


def _of_cluster(call: ToolUse, verbs: list[str]) -> Iterator[tuple[str, ...]]:
    if _CLUSTER_TOOL.isdisjoint({*call.words, "".join(call.words[:3])}) or "delete" not in (*call.words, *verbs):
        return
    given = call.values(("resource", "resource_type", "kind", "type", "resourcetype"))
    kind = next(given, next((word for word in call.words if word in KINDS), ""))
    names = call.values(("name", "resource_name", "names"))
    every = any(value in _TRUE for value in call.values(("all", "every")))
    places = (f"--namespace={value}" for value in call.values(("namespace", "context", "cluster")))
    yield ("kubectl", "delete", kind, *names, *(("--all",) if every else ()), *places)


def _pushes(call: ToolUse, verbs: list[str]) -> Iterator[tuple[str, ...]]:
    refs = tuple(call.values(_REF_KEYS))
    if refs and "branch" in call.words and wiping(call):
        yield ("git", "push", "--delete", "origin", *refs)
    on_forge = any("/git/refs/heads/" in value for value in call.values(("url", "endpoint", "path")))
    pushes = on_forge or any(verb == "push" or verb.startswith("git push") for verb in verbs)
    if not pushes and {"push", "ref", "refs"}.isdisjoint(call.words):
        return
    flags = call.values(_FLAG_KEYS)
    if (
        "force" in call.words
        or any(value.casefold() in _TRUE for value in call.values(_FORCE_KEYS))
        or any(value in ("--force", "-f") or (value.startswith("+") and "/" in value) for value in flags)
    ):
        yield ("git", "push", "--force", "origin", *refs)


def _removals(call: ToolUse) -> Iterator[tuple[str, ...]]:
    if wiping(call):
        below = any(value == "true" for value in call.values(("recursive", "force", "recurse")))
        paths = (path for path in call.values(PATH_KEYS) if below or path not in (".", "*", ".."))
        yield from (("rm", "-rf", path) for path in paths if holds_everything(path))


def _queries(call: ToolUse) -> Iterator[Command]:
    if not WRITES_CODE.isdisjoint(call.words):
        return
    places = [value for value in call.values(_PLACE_KEYS) if " " not in value]
    sql, shell = not _SQL_TOOL.isdisjoint(call.words), is_shell(call.words)
    texts = [value for key, value in call.pairs if (key in _SQL_KEYS or sql) and not (shell and key in _COMMAND_KEYS)]
    programs = ["psql"]
    if not _DATA_TOOL.isdisjoint(call.words):
        programs += ["mongosh", "redis-cli"]
        deletes = bool(wiping(call)) or any(key in _DELETE_KEYS for key, _ in call.pairs)
        if deletes and any(value == "{}" for value in call.values(_FILTER_KEYS)):
            name = next(filter(None, call.values(_DELETE_KEYS | {"collection", "table"})), "x")
            texts.append(f"db.{name}.deleteMany({{}})")
    yield from (command_of((program, *places), stdin=text, text=short(text)) for text in texts for program in programs)
