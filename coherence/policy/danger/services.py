"""Commands about processes, databases, containers, clusters and clouds: what they take from those who rely on it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.policy.danger.danger import Command
from coherence.policy.danger.paths import LIVE, is_disposable
from coherence.policy.danger.sql import destroys_data, wiped_by_sql
from coherence.policy.danger.things import wiped_over_http

_CLOUD_VERB = lazy_regex(
    r"(?:delete|terminate|remove|deregister|purge|revoke|destroy|disable"
    r"|schedule-key-deletion|batch-delete|force-delete)(?:-.*)?"
)
_CLOUD_END = lazy_regex(r"(?:.*:)?(?:delete|destroy|purge|rm|remove|reset|terminate)|delete-.*")
_METHOD = lazy_regex(r"-\w*X|--request|--method|-Method")
_DELETE_METHOD = lazy_regex(r"(?:-\w*X|--request=|--method=)[\"']?DELETE", re.IGNORECASE)
_DROPS = lazy_regex(r"\.\s*(?:drop\w*|deleteMany|remove)\s*\(")
EMPTIES_MONGO = lazy_regex(
    r"\bdropDatabase\s*\(|\.\s*drop\s*\(|\.\s*(?:deleteMany|remove)\s*\(\s*\{?\s*\}?\s*\)"
    r"|\bdelete_?many\s?\(\s?\{\s?\w{1,40}:\s?\{\s?\$(?:exists: ?true|ne: ?null)\s?\}"
    r"|\bdelete_?\w{1,40}\s?\(\s?(?:where|filter):\s?\{\s?\}",
    re.IGNORECASE,
)
_MONGO_CUES = ("drop", "delete", "remove")
"""Without one of them a search would find nothing."""
_COLLECTION = lazy_regex(
    r"\bdb\s*\.\s*(?:getSiblingDB\(\s*[\"'](\w+)[\"']\s*\)|(\w+)\s*\.\s*(?:drop|deleteMany|remove)\b)"
)
_ALL_KEYS = lazy_regex(r"\bKEYS [\"']?\*[\"']?(?:\s|\)|$)|--scan(?! --pattern| ?-\w)", re.IGNORECASE)
_RESETS = lazy_regex(
    r"(?:.*:)?(?:drop|reset|purge|wipe|fresh|flush|sqlflush|reset_db|truncate_all|schema:load|drop:all|undo:all)(?::.*)?"
)
_BUCKET = lazy_regex(r"(?:s3|gs|b2)://[^/]+/?")
_REPOSITORY = lazy_regex(r"api\.github\.com/repos/[^/\s]+/[^/\s?]+/?$|(?:^|/)repos/[^/\s]+/[^/\s]+/?$")
_LISTS_CONTAINERS = lazy_regex(
    r"\b(?:docker|podman) (?:ps|container ls|container list) (?:-\w{0,5}a\w{0,5}|--all)(?! -f| --filter| -\w f)"
)
KINDS = word_set(
    "namespace namespaces ns pv pvc node nodes persistentvolume persistentvolumes persistentvolumeclaim "
    "persistentvolumeclaims crd crds"
)
"""Kinds of resources of a cluster that others rely on."""
_TRIFLES = word_set("pod pods po job jobs event events")


def sql_destroys(command: Command) -> bool:
    """Return whether the client of a database is given SQL that destroys data."""
    given = (arg.partition("=")[2] if arg.startswith("--") else re.sub(r"^-[ceQ]", "", arg) for arg in command.args)
    return any(map(destroys_data, (command.stdin, *given)))


def sql_wipes(command: Command, *, changes: bool = False) -> Iterator[str]:
    """Yield the tables and databases that SQL of a client drops or empties, or all of whose rows it changes."""
    if is_disposable(*(arg for arg in command.args if " " not in arg), command.reads):
        return
    given = (arg for arg in command.args if " " in arg)
    texts = (arg.partition("=")[2] if arg.startswith("--") else re.sub(r"^-[ceQq](?=\S)", "", arg) for arg in given)
    for text in (command.stdin, *texts):
        text = text.replace("{}", "each") if command.stdin else text  # one of many names
        yield from wiped_by_sql(text, changes=changes)


def sql_changes(command: Command) -> Iterator[str]:
    """Yield the tables all of whose rows SQL of a client changes."""
    return sql_wipes(command, changes=True)


def mongo_drops(command: Command) -> bool:
    """Return whether MongoDB's client drops or deletes something."""
    return any(_DROPS.search(text) is not None for text in (*command.args, command.stdin))


def mongo_wipes(command: Command) -> Iterator[str]:
    """Yield the collections and databases that MongoDB's client drops or empties."""
    for text in (*command.args, command.stdin):
        low = text.casefold()
        if not any(cue in low for cue in _MONGO_CUES):
            continue
        if EMPTIES_MONGO.search(text) is not None and not is_disposable(*command.args):
            found = _COLLECTION.search(text)
            named = (arg for arg in command.operands if not any(sign in arg for sign in " (."))
            yield (found[1] or found[2]) if found else next(named, "?").rpartition("/")[2].partition("?")[0]


def redis_deletes(command: Command) -> bool:
    """Return whether a client of Redis deletes keys or stops the server."""
    words = (*command.operands[:1], *command.stdin.split()[:1])
    return any(word.lower() in ("flushall", "flushdb", "del", "unlink", "shutdown") for word in words)


def redis_wipes(command: Command) -> Iterator[str]:
    """Yield ``?`` where a client of Redis empties a store."""
    words = [word.casefold() for word in (*command.operands[:1], *command.stdin.split()[:1])]
    every = words[:1] in (["del"], ["unlink"]) and _ALL_KEYS.search(command.stdin) is not None
    if (every or "flushall" in words or "flushdb" in words) and not is_disposable(*command.args):
        yield "?"


def drops(command: Command) -> bool:
    """Return whether ``mysqladmin`` drops a database."""
    return "drop" in command.operands


def dropped(command: Command) -> Iterator[str]:
    """Yield the database that ``dropdb`` or ``mysqladmin`` deletes."""
    if command.program == "dropdb" or drops(command):
        name = next((word for word in reversed(command.operands) if word != "drop"), "?")
        if not is_disposable(name, *command.args):
            yield name


def resets(command: Command) -> bool:
    """Return whether a framework's command empties a database."""
    words = command.operands[:4]
    runs = command.program.startswith("python") or command.program in ("php", "uv", "npx", "node")
    if runs and not any(word.rpartition("/")[2] in ("manage.py", "artisan", "prisma") for word in words[:2]):
        return False
    return (
        any(_RESETS.fullmatch(word) is not None for word in words)
        or not command.flags.isdisjoint(("--force-reset", "--accept-data-loss"))
        or ("downgrade" in words and "base" in words)
        # Django's "manage.py migrate shop zero"; above, "alembic downgrade base".
        or words[3:] == ("zero",)
        or (words[:1] == ("migrate:rollback",) and "--all" in command.flags)
    )


def reset(command: Command) -> Iterator[str]:
    """Yield ``?`` where a framework's command empties a database that others may rely on."""
    if "cache" not in command.text and resets(command) and not is_disposable(command.text):
        yield "?"


def infrastructure(command: Command) -> Iterator[str]:
    """Yield the stack or cluster that is destroyed as a whole."""
    operands = command.operands
    destroys = "destroy" in operands[:3] or not command.flags.isdisjoint(("-destroy", "--destroy"))
    deletes = command.program == "eksctl" and "delete" in operands[:3]
    if not (destroys or deletes or command.lead.startswith(("stack rm", "workspace delete"))):
        return
    partly = "plan" in operands[:2] or "-target" in " ".join(command.args)
    if not partly and not is_disposable(command.text, command.folder):
        yield next((word for word in operands[1:3] if word not in ("destroy", "rm", "delete")), "?")


def cluster(command: Command) -> Iterator[str]:
    """Yield what ``kubectl delete`` takes from those who use a cluster."""
    operands = command.operands
    if "delete" not in operands[:2] or is_disposable(command.text):
        return
    at = operands.index("delete")
    kind, names = "".join(operands[at + 1 : at + 2]).casefold(), operands[at + 2 :]
    if not kind and command.stdin:  # they come from elsewhere
        kind = next((word for word in re.findall(r"[a-z]+", command.stdin[:500]) if word in KINDS), "")
    kind, _, name = kind.partition("/")
    names = (name, *names) if name else names
    every = not command.flags.isdisjoint(("--all", "--all-namespaces", "-A"))
    lives = LIVE.search(" ".join(command.args).replace("_", " ")) is not None
    if kind in KINDS or (lives and kind not in _TRIFLES):
        yield from names or ("?",)
    elif every and kind.partition(",")[0] not in _TRIFLES:
        yield "?"


def releases(command: Command) -> Iterator[str]:
    """Yield the release that Helm uninstalls, if others rely on it."""
    if len(command.operands) == 1 and command.stdin:  # their names come from elsewhere
        yield "?"
    elif LIVE.search(" ".join(command.args).replace("_", " ")) is not None:
        yield from command.operands[1:2]


def takes_down(command: Command) -> bool:
    """Return whether Compose takes volumes or images down too."""
    return "down" in command.operands[:4] and not command.flags.isdisjoint(("-v", "--volumes", "--rmi"))


def volumes(command: Command) -> Iterator[str]:
    """Yield the stored data of containers that is deleted; ``?`` for all of it."""
    text, lead = " ".join(command.args), command.lead
    if (
        (lead.startswith("system prune") and "--volumes" in command.flags)
        or (lead.startswith("volume prune") and not command.flags.isdisjoint(("-a", "--all")))
        or (lead.startswith(("rm ", "container rm ")) and _LISTS_CONTAINERS.search(f"{text} {command.stdin}"))
        or (takes_down(command) and "--rmi" not in text and LIVE.search(text.replace("_", " ")) is not None)
    ):
        yield "?"
    elif lead.startswith(("volume rm", "stack rm")) and not is_disposable(text):
        yield from command.operands[2:] or ("?",)


def buckets(command: Command) -> Iterator[str]:
    """Yield the buckets that are deleted as a whole."""
    verbs = {"rm", "rb", "del", "delete", "remove"}.intersection(command.operands[:3])
    if "rb" in verbs or (verbs and not command.flags.isdisjoint(("--recursive", "-r", "-R", "--all"))):
        for arg in command.args:
            if _BUCKET.fullmatch(arg.removesuffix("/*").removesuffix("/**")) and not is_disposable(arg):
                yield arg.partition("://")[2].strip("/*")


def repositories(command: Command) -> Iterator[str]:
    """Yield the repository that a program of a forge deletes."""
    if command.operands[:2] == ("repo", "delete"):
        yield "".join(command.operands[2:3]) or "?"
    elif command.operands[:1] == ("api",) and "DELETE" in " ".join(command.args[:20]):
        for word in command.operands[1:]:
            if _REPOSITORY.search(word) or wiped_over_http(word):
                yield word.rstrip("/").rpartition("/")[2]


def aws_deletes(command: Command) -> bool:
    """Return whether an operation of AWS takes something away."""
    return any(_CLOUD_VERB.fullmatch(word) is not None for word in command.operands[1:2])


def cloud_deletes(command: Command) -> bool:
    """Return whether an operation of a cloud's program takes something away."""
    return any(_CLOUD_END.fullmatch(word) is not None for word in command.operands[:5])


def deletes_over_http(command: Command) -> bool:
    """Return whether a client sends an HTTP ``DELETE``."""
    args = command.args
    if command.program in ("http", "https", "xh"):
        return "DELETE" in args
    after = any(_METHOD.fullmatch(flag) is not None and verb.upper() == "DELETE" for flag, verb in pairwise(args))
    return after or any(_DELETE_METHOD.fullmatch(arg) is not None for arg in args)


def signals(command: Command) -> bool:
    """Return whether a command sends a signal that may end a process."""
    # signal 0 only asks whether a process is there
    return not re.search(r"(?:^| )-s (?:0|EXIT)(?: |$)", " ".join(command.args[:4]))


def ends_all(command: Command) -> bool:
    """Return whether ``kill`` is given every process, ``-1``."""
    return command.args[-1:] == ("-1",) and len(command.args) > 1  # alone, -1 is a signal


def is_fork_bomb(command: Command) -> bool:
    """Return whether a function calls itself twice and nothing else: ``:(){ :|:& };:``."""
    return bool(command.program) and command.stdin == f"\n$({command.program})" and not command.args


def stops(command: Command) -> bool:
    """Return whether ``service`` stops one."""
    return "stop" in command.operands[1:2]
