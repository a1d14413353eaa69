"""Tools that do what a command does, read as that command: ``git_push(force=True)`` as ``git push --force``."""

from __future__ import annotations

from collections.abc import Iterator

from coherence.core.words import word_set
from coherence.policy.danger.arguments import is_shell
from coherence.policy.danger.calls import PATH_KEYS, wiping
from coherence.policy.danger.danger import ToolUse, short
from coherence.policy.danger.roots import holds_everything
from coherence.policy.danger.services import KINDS
from coherence.policy.danger.shell import Simple

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


def stands_for(call: ToolUse) -> Iterator[Simple]:
    """Yield the commands that a call of a tool stands for.

    Examples
    --------
    >>> call = ToolUse(words=("git", "push"), pairs=(("force", "true"), ("branch", "main")))
    >>> [command.argv for command in stands_for(call)]
    [('git', 'push', '--force', 'origin', 'main')]
    """
    verbs = [value.casefold() for value in call.values(_VERB_KEYS)]
    for argv in (*_requests(call, verbs), *_of_cluster(call, verbs), *_pushes(call, verbs), *_removals(call)):
        yield Simple(argv, text=short(" ".join(argv)))
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


def _queries(call: ToolUse) -> Iterator[Simple]:
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
    yield from (Simple((program, *places), stdin=text, text=short(text)) for text in texts for program in programs)
