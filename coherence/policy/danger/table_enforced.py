"""Rows of what nobody wants unless asked for: ``check`` refuses these by themselves.

They stand beside the rows of the other tables, which say more widely what destroys something.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.policy.danger import table_things
from coherence.policy.danger.arguments import is_shell, runs_code
from coherence.policy.danger.code import INTERPRETERS, code_of, scripts_in
from coherence.policy.danger.danger import DRY, Asking, Command, Danger, DangerousCall, DangerousCommand, ToolUse
from coherence.policy.danger.disclosure import (
    SENDERS,
    call_recipients,
    call_sends_secret,
    code_sends_secret,
    command_recipients,
    recipients,
    sends_secret,
)
from coherence.policy.danger.paths import is_device
from coherence.policy.danger.requests import (
    CHANGE_ALL,
    DISCLOSE,
    FORCE_PUSH,
    RUN_DOWNLOAD,
    WIPE_DATA,
    WIPE_FILES,
    WIPE_SERVICES,
)
from coherence.policy.danger.roots import LIVE, holds_everything, is_disposable, is_system, normal
from coherence.policy.danger.shell import FEEDERS
from coherence.policy.danger.table_services import SQL_PROGRAMS
from coherence.policy.danger.things import COLLECTIONS, STORES, parts, singular, wiped_over_http
from coherence.policy.danger.unwrap import POWERSHELLS, SHELLS
from coherence.policy.danger.wipes import wiped_by_code, wiped_by_sql

_FILTERS = frozenset(
    [
        "-name",
        "-iname",
        "-path",
        "-ipath",
        "-wholename",
        "-regex",
        "-iregex",
        "-mtime",
        "-mmin",
        "-atime",
        "-ctime",
        "-newer",
        "-size",
        "-empty",
        "-user",
        "-group",
        "-perm",
        "-nouser",
        "-nogroup",
        "-inum",
        "-samefile",
    ]
)
_BRANCHES = lazy_regex(
    r"(?:\+|HEAD:|\w+:|:)*(?:refs/heads/)?(main|master|trunk|develop|production|prod|stable|release(?:[/-].*)?)",
    re.IGNORECASE,
)
_ALL_BUCKET = lazy_regex(r"(?:s3|gs|b2)://[^/]+/?")
_ALL_KEYS = lazy_regex(r"\bKEYS [\"']?\*[\"']?(?:\s|\)|$)|--scan(?! --pattern| ?-\w)", re.IGNORECASE)
_REPOSITORY = lazy_regex(r"api\.github\.com/repos/[^/\s]+/[^/\s?]+/?$|(?:^|/)repos/[^/\s]+/[^/\s]+/?$")
_MONGO = lazy_regex(
    r"\bdropDatabase\s*\(|\.\s*drop\s*\(|\.\s*(?:deleteMany|remove)\s*\(\s*\{?\s*\}?\s*\)|\bdropAllUsers\b"
    r"|\bdelete_?many\s?\(\s?\{\s?\w{1,40}:\s?\{\s?\$(?:exists: ?true|ne: ?null)\s?\}"
    r"|\bdelete_?\w{1,40}\s?\(\s?(?:where|filter):\s?\{\s?\}",
    re.IGNORECASE,
)
_MONGO_NAME = lazy_regex(
    r"\bdb\s*\.\s*(?:getSiblingDB\(\s*[\"'](\w+)[\"']\s*\)|(\w+)\s*\.\s*(?:drop|deleteMany|remove)\b)"
)
_IS_STORED = lazy_regex(
    r"(?:^|[/_-])(?:prod(?:uction)?|live|main)\w{0,20}\.(?:sqlite3?|db)$"
    r"|^(?!/tmp/|/var/tmp/)(?:~|/)(?:[\w.-]{1,60}/){0,3}backups?/[^/\s]{0,60}\*[^/\s]{0,60}$",
    re.IGNORECASE,
)
"""Files that hold a live database, and all files of a folder of backups."""
_LISTS_ALL = lazy_regex(
    r"\$\((?:ls(?: -[A1a]+)*|git ls-files(?: -z)?|find(?: \.)?(?: -type f| -print0?| -mindepth 1)*)\)"
)


def _recursive(command: Command) -> bool:
    flags = command.flags
    return not flags.isdisjoint(("-r", "-R", "--recursive", "-Recurse", "-recurse", "-Rec")) or any(
        arg.casefold() in ("/s", "-recurse", "-r") for arg in command.args
    )


def _wiped(command: Command) -> Iterator[str]:
    """Yield the paths that ``rm`` and its like wipe whole."""
    if command.program in ("rmdir", "unlink") and not any(arg.casefold() == "/s" for arg in command.args):
        return
    if any(arg in ("-i", "-I", "-ri", "-ir", "--interactive") for arg in command.args[:20]):
        return
    recursive = _recursive(command) or command.program in ("rimraf", "deltree", "srm", "wipe")
    for operand in command.operands[:200]:
        whole = operand.casefold() not in ("/s", "/q", "/f") and holds_everything(operand, command.folder)
        anchored = "*" in operand and operand.strip("\"'").startswith(("/", "~", "$HOME", "C:", "c:"))
        if (whole and (recursive or anchored)) or _IS_STORED.search(operand) is not None:
            yield operand
        elif recursive and command.reads and operand.strip("\"'{}").startswith("$") and "/" not in operand:
            yield from (word for word in command.reads.split() if holds_everything(word) and word not in (".", "*"))
    for arg in command.args[:200]:
        if "no-preserve-root" in arg:
            yield "/"
    if not command.operands and _LISTS_ALL.fullmatch(command.stdin.strip()) is not None:
        yield "."
    if recursive and not command.operands and command.stdin:
        yield from (
            word
            for word in command.stdin.replace("$(", " ").replace(")", " ").split()
            if holds_everything(word) and word not in (".", "*")
        )


def _found(command: Command) -> Iterator[str]:
    args = command.args
    deletes = "-delete" in args or any(
        flag in ("-exec", "-execdir", "-ok")
        and args[at + 1 : at + 2]
        and args[at + 1].rpartition("/")[2] in ("rm", "shred", "unlink", "sudo")
        for at, flag in enumerate(args)
    )
    filters = any(
        arg in _FILTERS
        and args[at - 1] not in ("-not", "!")
        and not (arg in ("-name", "-iname", "-path") and args[at + 1 : at + 2] in (("*",), ("*.*",), ("?*",)))
        for at, arg in enumerate(args)
    )
    if deletes and not filters:
        yield from (
            path
            for path in command.operands[:1] or ("." if args and args[0].startswith("-") else "",)
            if holds_everything(path, command.folder)
        )


def _mirrored(command: Command) -> Iterator[str]:
    """Yield the system's folders and homes over which ``rsync`` puts something else."""
    if any(flag.startswith("--del") for flag in command.flags) and len(command.operands) > 1:
        empty = "empty" in command.operands[0]
        yield from (
            path
            for path in command.operands[-1:]
            if is_system(path) or normal(path) == "~" or (empty and holds_everything(path, command.folder))
        )


_LISTS_DISKS = lazy_regex(r"\$\((?:sudo )?(?:lsblk|blkid|fdisk -l|ls /dev/(?:sd|nvme|vd|disk))\b")


def _spelled_out(command: Command) -> tuple[str, ...]:
    """Return a command's words, with the disks that a loop, or the command before it, puts in the place of one."""
    args = command.args
    if "/dev/" in command.reads and any("$" in arg for arg in args):
        disks = [word for word in command.reads.split() if word.startswith("/dev/")]
        args = tuple(arg.partition("$")[0] + disk for arg in args if "$" in arg for disk in disks[:8]) + args
    if command.stdin and _LISTS_DISKS.search(command.stdin[:500]) is not None:
        args = tuple(arg.replace("{}", "/dev/{}") for arg in args if "{}" in arg) or ("/dev/{}",)
        args = (*args, "/dev/{a}")
    return args


def _devices(command: Command) -> Iterator[str]:
    """Yield the disks that a command overwrites or formats."""
    args, program = _spelled_out(command), command.program
    if program == "dd":
        yield from (arg[3:] for arg in args if arg.startswith("of=") and is_device(arg[3:]))
    elif program in ("cp", "tee", "cat", "mv"):
        yield from (arg for arg in command.operands[-1:] if is_device(arg))
    elif program in ("fdisk", "sfdisk", "gdisk", "cfdisk", "parted") and (
        not command.flags.isdisjoint(("-l", "--list", "-p", "--dump", "-d"))
        or {"print", "unit"} & set(command.operands[1:2])
    ):
        return
    elif program == "diskutil":
        yield from (
            command.operands[1:]
            if command.operands[:1]
            and command.operands[0].casefold().startswith(("erase", "partition", "zero", "secureerase"))
            else ()
        )
    elif program == "diskpart":
        yield from (
            "?"
            for word in re.findall(r"[a-z]+", command.stdin.replace("\\n", " ").casefold())
            if word in ("clean", "format")
        )
    elif program in ("format", "format-volume", "clear-disk", "initialize-disk"):
        drive = r"[A-Za-z]:" if program == "format" else r"[A-Za-z]:?|\d+"  # "Format plan B" is prose
        found = [arg for arg in args if re.fullmatch(drive, arg)]
        yield from found or (["?"] if program in ("clear-disk", "format-volume", "initialize-disk") else [])
    elif not (program.startswith("mk") and "-n" in command.flags):  # which only says what it would do
        yield from (arg for arg in args if arg.startswith("/dev/") and is_device(arg))


def _redirected(command: Command) -> Iterator[str]:
    if command.writes and is_device(command.writes):
        yield command.writes


def _system_modes(command: Command) -> Iterator[str]:
    if _recursive(command):
        yield from (path for path in command.operands[1:] if is_system(path))


def _thrown_away(command: Command) -> Iterator[str]:
    if len(command.operands) > 1 and command.operands[-1] == "/dev/null":
        yield from (path for path in command.operands[:-1] if holds_everything(path, command.folder))


def _sql(command: Command, *, changes: bool = False) -> Iterator[str]:
    where = [arg for arg in command.args if " " not in arg]
    if is_disposable(*where, command.reads):
        return
    for text in (command.stdin, *(arg for arg in command.args if " " in arg)):
        text = text.replace("{}", "each") if command.stdin else text  # one of many names
        yield from wiped_by_sql(
            text.partition("=")[2] if text.startswith("--") else re.sub(r"^-[ceQq](?=\S)", "", text),
            changes=changes,
        )


def _mongo(command: Command) -> Iterator[str]:
    for text in (*command.args, command.stdin):
        if _MONGO.search(text) is not None and not is_disposable(*command.args):
            found = _MONGO_NAME.search(text)
            name = next((arg for arg in command.operands if " " not in arg and "(" not in arg and "." not in arg), "?")
            yield (
                (found[1] or found[2])
                if found is not None and (found[1] or found[2])
                else name.rpartition("/")[2].partition("?")[0]
            )


def _redis(command: Command) -> Iterator[str]:
    words = [word.casefold() for word in (*command.operands[:1], *command.stdin.split()[:1])]
    every = words[:1] in (["del"], ["unlink"]) and _ALL_KEYS.search(command.stdin) is not None
    every = every or (words[:1] == ["eval"] and "flush" in command.text.casefold())
    if (every or "flushall" in words or "flushdb" in words) and not is_disposable(*command.args):
        yield "?"


def _dropdb(command: Command) -> Iterator[str]:
    operands = [word for word in command.operands if word not in ("drop", "create")]
    if command.program != "mysqladmin" or "drop" in command.operands:
        yield from (name for name in operands[-1:] or ("?",) if not is_disposable(name, *command.args))


def _frameworks(command: Command) -> Iterator[str]:
    words = command.operands[:4]
    runs = command.program.startswith("python") or command.program in ("php", "uv", "npx", "node")
    if runs and not any(word.rpartition("/")[2] in ("manage.py", "artisan", "prisma") for word in words[:2]):
        return
    resets = (
        ("downgrade" in words and "base" in words)
        or words[3:4] == ("zero",)
        or any(
            re.fullmatch(
                r"(?:.*:)?(?:drop|reset|purge|wipe|fresh|flush|sqlflush|reset_db|truncate_all|drop:all|undo:all)(?::.*)?",
                word,
            )
            for word in words
        )
    )
    forced = not command.flags.isdisjoint(("--force-reset", "--accept-data-loss"))
    forced = forced or (words[:1] == ("migrate:rollback",) and "--all" in command.flags)
    if (resets or forced) and not is_disposable(command.text) and "cache" not in command.text:
        yield "?"


def _terraform(command: Command) -> Iterator[str]:
    destroys = "destroy" in command.operands[:3] or not command.flags.isdisjoint(("-destroy", "--destroy"))
    kills = command.program in ("eksctl", "gcloud", "doctl") and "delete" in command.operands[:3]
    stack = command.lead.startswith(("stack rm", "workspace delete"))
    if not (destroys or kills or stack) or "plan" in command.operands[:2] or "-target" in " ".join(command.args):
        return
    if not is_disposable(command.text, command.folder):
        yield from [*(arg for arg in command.operands[1:3] if arg not in ("destroy", "rm", "delete")), "?"][:1]


_KINDS = frozenset(
    [
        "namespace",
        "namespaces",
        "ns",
        "pv",
        "pvc",
        "node",
        "nodes",
        "persistentvolume",
        "persistentvolumes",
        "persistentvolumeclaims",
        "crd",
        "crds",
    ]
)


def _kubectl(command: Command) -> Iterator[str]:
    operands = command.operands
    if "delete" not in operands[:2] or is_disposable(command.text):
        return
    at = operands.index("delete")
    kind, names = (operands[at + 1 : at + 2] or ("",))[0].casefold(), operands[at + 2 :]
    if not kind and command.stdin:
        kind = next((word for word in re.findall(r"[a-z]+", command.stdin[:500]) if word in _KINDS), "")
        names = ("?",)
    kind, _, name = kind.partition("/")
    names = (name, *names) if name else names
    every = not command.flags.isdisjoint(("--all", "--all-namespaces", "-A"))
    if kind in ("namespace", "namespaces", "ns"):
        yield from names or ("?",)
    elif every and kind.partition(",")[0] not in ("pod", "pods", "po", "job", "jobs", "event", "events"):
        yield "?"
    elif kind in (
        "pv",
        "pvc",
        "persistentvolume",
        "persistentvolumes",
        "persistentvolumeclaim",
        "persistentvolumeclaims",
        "node",
        "nodes",
        "crd",
        "crds",
    ) or (
        LIVE.search(" ".join(command.args).replace("_", " ")) is not None
        and kind
        not in (
            "pod",
            "pods",
            "po",
            "job",
            "jobs",
        )
    ):
        yield from names or ("?",)


def _helm(command: Command) -> Iterator[str]:
    text = " ".join(command.args)
    if len(command.operands) == 1 and command.stdin:  # their names come from elsewhere
        yield "?"
    elif LIVE.search(text.replace("_", " ")) is not None:
        yield from command.operands[1:2]


_ALL_CONTAINERS = lazy_regex(
    r"\b(?:docker|podman) (?:ps|container ls|container list) (?:-\w{0,5}a\w{0,5}|--all)(?! -f| --filter| -\w f)"
)


def _containers(command: Command) -> Iterator[str]:
    args = command.args
    text = " ".join(args)
    if (
        (command.lead.startswith("system prune") and "--volumes" in command.flags)
        or (command.lead.startswith("volume prune") and not command.flags.isdisjoint(("-a", "--all")))
        or (command.lead.startswith(("rm ", "container rm ")) and _ALL_CONTAINERS.search(f"{text} {command.stdin}"))
    ):
        yield "?"
    elif command.lead.startswith(("volume rm", "stack rm")) and not is_disposable(text):
        yield from command.operands[2:] or ("?",)
    elif (
        "down" in command.operands[:4]
        and not command.flags.isdisjoint(("-v", "--volumes"))
        and LIVE.search(text.replace("_", " ")) is not None
    ):
        yield "?"


def _buckets(command: Command) -> Iterator[str]:
    args = command.args
    verbs = {"rm", "rb", "del", "delete", "remove"} & set(command.operands[:3])
    if not verbs:
        return
    whole = "rb" in verbs or not command.flags.isdisjoint(("--recursive", "-r", "-R", "--all"))
    for arg in args:
        if whole and _ALL_BUCKET.fullmatch(arg.removesuffix("/*").removesuffix("/**")) and not is_disposable(arg):
            yield arg.partition("://")[2].strip("/*")


def _repository(command: Command) -> Iterator[str]:
    if command.operands[:2] == ("repo", "delete"):
        yield from [*command.operands[2:3], "?"][:1]
    elif command.operands[:1] == ("api",) and "DELETE" in " ".join(command.args[:20]):
        for word in command.operands[1:]:
            if _REPOSITORY.search(word) or wiped_over_http(word):
                yield word.rstrip("/").rpartition("/")[2]


def _pushed(command: Command) -> list[str]:
    """Return the branches that a push writes to; ``mirror`` for all of them."""
    if not command.flags.isdisjoint(("--mirror", "--all")):
        return ["mirror"]
    return [word.lstrip("+").rpartition(":")[2].removeprefix("refs/heads/").casefold() for word in command.operands[2:]]


def _branch(command: Command) -> list[str]:
    """Return the branches that a push names, if others work on them."""
    found = (_BRANCHES.fullmatch(word) for word in command.operands[1:])
    return [match[1].casefold() for match in found if match is not None]


def _leases(command: Command) -> bool:
    """Return whether a forced push looks what is there first, and goes to a branch of one's own that it names."""
    careful = not command.flags.isdisjoint(("--force-with-lease", "--force-if-includes"))
    return (
        careful
        and command.flags.isdisjoint(("-f", "--force", "--mirror"))
        and len(command.operands) > 2
        and not _branch(command)
    )


def _forces(command: Command) -> bool:
    forced = not command.flags.isdisjoint(
        ("-f", "--force", "--force-with-lease", "--force-if-includes", "--mirror", "--prune")
    )
    plus = any(word.startswith("+") and len(word) > 1 for word in command.operands[1:])
    return (forced and not _leases(command)) or plus


def _deletes_main(command: Command) -> bool:
    deletes = not command.flags.isdisjoint(("-d", "--delete")) or any(
        word.startswith(":") for word in command.operands[1:]
    )
    named = [word for word in command.operands[2:] if not word.startswith(("$(", "{}", "`"))]
    unnamed = not command.flags.isdisjoint(("-d", "--delete")) and not named  # their names come from elsewhere
    return deletes and (bool(_branch(command)) or unnamed)


def _hosts(command: Command) -> list[str]:
    return list(recipients([command.text, command.stdin[:500]]))[:4]


def _code_wipes(command: Command) -> list[str]:
    code = code_of(command)
    return wiped_by_code(code) if code else []


def _code_sends(command: Command) -> bool:
    code = code_of(command)
    return bool(code) and code_sends_secret(code, command.holding)


_RUNS_FETCHED = lazy_regex(
    r"\b(?:exec|eval|Function|run|system|runInThisContext|execSync|loads)\s*\(\s*[^\n]{0,120}?(?:urlopen\s*\("
    r"|requests\.get\s*\(|httpx\.get\s*\(|fetch\s*\(|axios\.get|URI\.open|open\(\s*[\"']https?:)"
)
_GETS = lazy_regex(
    r"([A-Za-z_]\w{0,40}) = (?:await )?[^\n]{0,60}(?:urlopen\s*\(|requests\.get\s*\(|httpx\.get\s*\("
    r"|fetch\s*\(|axios\.get)[^\n]{0,300}"
)
_THEN_RUN = lazy_regex(r"\.then\(\s*(?:eval\b|\w{1,20}\s*=>\s*(?:eval|new Function|Function)\s*\()")
_EXECUTES = lazy_regex(r"\b(?:exec|eval|Function)\s*\(\s*([A-Za-z_]\w{0,40})")


_SAVES = lazy_regex(
    r"urlretrieve\([^,\n]{1,300},\s?[\"']([^\"'\n]{1,200})[\"']"
    r"|open\([\"']([^\"'\n]{1,200})[\"'],\s?[\"']wb?[\"']\)\.write\([^\n]{0,60}(?:requests\.get|httpx\.get|urlopen)\("
)
_SCRIPT_BLOCK = lazy_regex(r"scriptblock\]::Create\([^\n]{0,80}(?:\birm\b|\biwr\b|Invoke-|Download)", re.IGNORECASE)
_UNPICKLES = lazy_regex(r"\b(?:pickle|marshal|dill)\.loads?\([^\n]{0,80}(?:urlopen|requests\.get|httpx\.get)\(")


def _saved_and_run(path: str, code: str) -> bool:
    for script in scripts_in(code):
        words = script.split() if isinstance(script, str) else list(script)
        if path in words and (path == words[0] or words[0] in SHELLS or words[0] in INTERPRETERS or "chmod" in words):
            return True
    return False


def runs_fetched(code: str) -> bool:
    """Return whether code executes what it downloads.

    Examples
    --------
    >>> runs_fetched("exec(requests.get('https://x.io/a.py').text)"), runs_fetched("json.loads(requests.get(u).text)")
    (True, False)
    """
    code = code[:20_000]
    if not any(cue in code for cue in ("exec", "eval", "Function", "system", "subprocess", "spawn", "pickle", "block")):
        return False
    if _SCRIPT_BLOCK.search(code) is not None:
        return True
    if _UNPICKLES.search(code) is not None or ("dup2(" in code and "connect(" in code):
        return True
    if (found := _RUNS_FETCHED.search(code)) is not None and not found[0].startswith(("loads", "run(")):
        return True
    if ".then(" in code and "fetch" in code and _THEN_RUN.search(code) is not None:
        return True
    if any(_saved_and_run(found[1] or found[2], code) for found in islice(_SAVES.finditer(code), 20)):
        return True
    fetched = {found[1] for found in _GETS.finditer(code)}
    return bool(fetched) and any(found[1] in fetched for found in _EXECUTES.finditer(code))


def _runs_fetched_code(command: Command) -> bool:
    code = code_of(command)
    substituted = code.startswith(("$(", "`")) and FEEDERS.search(code[:500]) is not None
    return substituted or runs_fetched(code)


COMMANDS: tuple[DangerousCommand, ...] = (
    DangerousCommand(
        name="wipe-files",
        kind="wipe",
        says="wipes a system, a home or the project",
        programs=(
            "rm",
            "rmdir",
            "shred",
            "srm",
            "wipe",
            "rd",
            "del",
            "erase",
            "deltree",
            "rimraf",
            "ri",
            "remove-item",
            "unlink",
        ),
        test=lambda command: any(True for _ in _wiped(command)),
        enforced=True,
        weighs=False,
        asking=WIPE_FILES,
        targets=_wiped,
    ),
    DangerousCommand(
        name="wipe-unknown",
        kind="wipe",
        says="wipes a system, a home or the project, by a program that is named only when it runs",
        unless=(),
        test=lambda command: (
            not command.program
            and not command.flags.isdisjoint(("-rf", "-fr", "-Rf"))
            and any(True for _ in _wiped(command))
        ),
        enforced=True,
        weighs=False,
        asking=WIPE_FILES,
        targets=_wiped,
    ),
    DangerousCommand(
        name="wipe-found",
        kind="wipe",
        says="wipes a system, a home or the project",
        programs=("find", "fd"),
        test=lambda command: any(True for _ in _found(command)),
        enforced=True,
        weighs=False,
        asking=WIPE_FILES,
        targets=_found,
    ),
    DangerousCommand(
        name="wipe-by-mirror",
        kind="wipe",
        says="deletes everything in a system's folder or a home that the other side lacks",
        programs=("rsync",),
        unless=(*DRY, "-n"),
        test=lambda command: any(True for _ in _mirrored(command)),
        enforced=True,
        weighs=False,
        asking=WIPE_FILES,
        targets=_mirrored,
    ),
    DangerousCommand(
        name="wipe-disk",
        kind="wipe",
        says="overwrites or formats a disk",
        programs=(
            *(
                "dd",
                "cp",
                "tee",
                "mv",
                "cat",
                "shred",
                "mkfs*",
                "mke2fs",
                "mkswap",
                "fdisk",
                "sfdisk",
                "gdisk",
                "sgdisk",
                "parted",
                "wipefs",
            ),
            *(
                "blkdiscard",
                "format",
                "format-volume",
                "clear-disk",
                "initialize-disk",
                "diskpart",
                "diskutil",
                "cryptsetup",
                "badblocks",
                "hdparm",
                "nvme",
            ),
            *("pvcreate", "zpool", "mdadm"),
        ),
        unless=(*DRY, "--no-act", "-I", "luksOpen"),
        test=lambda command: (
            any(True for _ in _devices(command))
            and not {"open", "luksOpen", "status", "import", "list"} & set(command.operands[:1])
        ),
        enforced=True,
        weighs=False,
        asking=WIPE_FILES,
        targets=_devices,
    ),
    DangerousCommand(
        name="write-disk",
        kind="wipe",
        says="overwrites a disk",
        unless=(),
        test=lambda command: any(True for _ in _redirected(command)),
        enforced=True,
        weighs=False,
        asking=WIPE_FILES,
        targets=_redirected,
    ),
    DangerousCommand(
        name="system-modes",
        kind="wipe",
        says="changes the access to the whole system",
        programs=("chmod", "chown", "chgrp", "chattr", "setfacl"),
        test=lambda command: any(True for _ in _system_modes(command)),
        enforced=True,
        weighs=False,
        asking=Asking(
            acts="chmod chown change set open fix reset", things="permissions permission owner ownership mode"
        ),
        targets=_system_modes,
    ),
    DangerousCommand(
        name="throw-away",
        kind="wipe",
        says="throws a system, a home or the project away",
        programs=("mv",),
        test=lambda command: any(True for _ in _thrown_away(command)),
        enforced=True,
        weighs=False,
        asking=WIPE_FILES,
        targets=_thrown_away,
    ),
    DangerousCommand(
        name="fork-bomb",
        kind="wipe",
        says="starts processes until nothing else runs",
        unless=(),
        test=lambda command: bool(command.program) and command.stdin == f"\n$({command.program})" and not command.args,
        enforced=True,
        weighs=False,
    ),
    DangerousCommand(
        name="kill-all",
        kind="wipe",
        says="ends every process",
        programs=("kill",),
        test=lambda command: command.args[-1:] == ("-1",) and len(command.args) > 1,
        enforced=True,
        weighs=False,
        asking=Asking(acts="kill end stop terminate", things="everything processes process"),
    ),
    DangerousCommand(
        name="wipe-sql",
        kind="wipe",
        says="drops or empties whole tables or databases",
        programs=(*SQL_PROGRAMS, "cypher-shell"),
        test=lambda command: any(True for _ in _sql(command)),
        enforced=True,
        weighs=False,
        asking=WIPE_DATA,
        targets=_sql,
    ),
    DangerousCommand(
        name="change-sql",
        kind="wipe",
        says="changes every row of a table",
        programs=SQL_PROGRAMS,
        test=lambda command: any(True for _ in _sql(command, changes=True)),
        enforced=True,
        weighs=False,
        asking=CHANGE_ALL,
        targets=lambda command: _sql(command, changes=True),
    ),
    DangerousCommand(
        name="wipe-mongo",
        kind="wipe",
        says="drops or empties whole collections or databases",
        programs=("mongo", "mongosh"),
        test=lambda command: any(True for _ in _mongo(command)),
        enforced=True,
        weighs=False,
        asking=WIPE_DATA,
        targets=_mongo,
    ),
    DangerousCommand(
        name="wipe-redis",
        kind="wipe",
        says="empties a store",
        programs=("redis-cli", "valkey-cli"),
        test=lambda command: any(True for _ in _redis(command)),
        enforced=True,
        weighs=False,
        asking=WIPE_DATA,
        targets=_redis,
    ),
    DangerousCommand(
        name="wipe-database",
        kind="wipe",
        says="deletes a database",
        programs=("dropdb", "mysqladmin"),
        test=lambda command: any(True for _ in _dropdb(command)),
        enforced=True,
        weighs=False,
        asking=WIPE_DATA,
        targets=_dropdb,
    ),
    DangerousCommand(
        name="wipe-framework",
        kind="wipe",
        says="empties a database",
        programs=(
            "rails",
            "rake",
            "artisan",
            "django-admin",
            "manage.py",
            "python",
            "python3",
            "mix",
            "php",
            "prisma",
            "sequelize",
            "typeorm",
            "knex",
            "alembic",
            "flask",
        ),
        test=lambda command: any(True for _ in _frameworks(command)),
        enforced=True,
        weighs=False,
        asking=WIPE_DATA,
        targets=_frameworks,
    ),
    DangerousCommand(
        name="wipe-infrastructure",
        kind="wipe",
        says="destroys infrastructure",
        programs=("terraform", "tofu", "terragrunt", "pulumi", "cdk", "cdktf", "eksctl", "serverless", "sls"),
        test=lambda command: any(True for _ in _terraform(command)),
        enforced=True,
        weighs=False,
        asking=WIPE_SERVICES,
        targets=_terraform,
    ),
    DangerousCommand(
        name="wipe-cluster",
        kind="wipe",
        says="deletes what others run in a cluster",
        programs=("kubectl", "oc", "k3s"),
        test=lambda command: any(True for _ in _kubectl(command)),
        enforced=True,
        weighs=False,
        asking=WIPE_SERVICES,
        targets=_kubectl,
    ),
    DangerousCommand(
        name="wipe-release",
        kind="wipe",
        says="uninstalls what others rely on",
        programs=("helm",),
        verbs=("uninstall", "delete", "del", "un"),
        test=lambda command: any(True for _ in _helm(command)),
        enforced=True,
        weighs=False,
        asking=WIPE_SERVICES,
        targets=_helm,
    ),
    DangerousCommand(
        name="wipe-volumes",
        kind="wipe",
        says="deletes stored data of containers",
        programs=("docker", "podman", "docker-compose", "podman-compose", "nerdctl"),
        test=lambda command: any(True for _ in _containers(command)),
        enforced=True,
        weighs=False,
        asking=WIPE_SERVICES,
        targets=_containers,
    ),
    DangerousCommand(
        name="wipe-bucket",
        kind="wipe",
        says="deletes a whole bucket",
        programs=("aws", "s3cmd", "gsutil", "mc", "gcloud", "rclone", "s5cmd"),
        test=lambda command: any(True for _ in _buckets(command)),
        enforced=True,
        weighs=False,
        asking=WIPE_SERVICES,
        targets=_buckets,
    ),
    DangerousCommand(
        name="wipe-repository",
        kind="wipe",
        says="deletes a repository",
        programs=("gh", "glab"),
        test=lambda command: any(True for _ in _repository(command)),
        enforced=True,
        weighs=False,
        asking=WIPE_SERVICES,
        targets=_repository,
    ),
    DangerousCommand(
        name="wipe-storage",
        kind="wipe",
        says="deletes a volume or its data",
        programs=("lvremove", "vgremove", "zfs", "zpool", "vssadmin", "wbadmin"),
        unless=(*DRY, "-n"),
        test=lambda command: (
            command.program in ("lvremove", "vgremove")
            or (command.operands[:1] == ("destroy",) and not any("@" in word for word in command.operands))
            or (command.program in ("vssadmin", "wbadmin") and "delete" in command.operands[:1])
        ),
        enforced=True,
        weighs=False,
        asking=WIPE_FILES,
        targets=lambda command: command.operands[-1:],
    ),
    DangerousCommand(
        name="force-push",
        kind="force push",
        says="overwrites commits on the remote",
        programs=("git",),
        verbs=("push",),
        unless=(*DRY, "-n"),
        test=_forces,
        enforced=True,
        weighs=False,
        asking=FORCE_PUSH,
        targets=_pushed,
    ),
    DangerousCommand(
        name="delete-main",
        kind="force push",
        says="deletes a branch that others work on",
        programs=("git",),
        verbs=("push",),
        unless=(*DRY, "-n"),
        test=_deletes_main,
        enforced=True,
        weighs=False,
        asking=WIPE_SERVICES,
        targets=_branch,
    ),
    DangerousCommand(
        name="run-fetched",
        kind="remote code",
        says="runs what was downloaded, and nobody has read it",
        unless=(),
        test=lambda command: command.fetched,
        enforced=True,
        weighs=False,
        asking=RUN_DOWNLOAD,
        targets=_hosts,
    ),
    DangerousCommand(
        name="wipe-code",
        kind="wipe",
        says="runs code that wipes folders or data",
        programs=tuple(INTERPRETERS),
        unless=(),
        test=lambda command: bool(_code_wipes(command)),
        enforced=True,
        weighs=False,
        asking=Asking(acts=WIPE_FILES.acts + " " + WIPE_DATA.acts, things=WIPE_FILES.things + " " + WIPE_DATA.things),
        targets=_code_wipes,
    ),
    DangerousCommand(
        name="run-fetched-code",
        kind="remote code",
        says="runs what was downloaded, and nobody has read it",
        programs=tuple(INTERPRETERS),
        unless=(),
        test=_runs_fetched_code,
        enforced=True,
        weighs=False,
        asking=RUN_DOWNLOAD,
        targets=_hosts,
    ),
    DangerousCommand(
        name="send-secret",
        kind="disclosure",
        says="sends credentials away",
        programs=SENDERS,
        unless=("--help", "--version"),
        test=sends_secret,
        enforced=True,
        weighs=False,
        asking=DISCLOSE,
        targets=command_recipients,
    ),
    DangerousCommand(
        name="send-secret-code",
        kind="disclosure",
        says="runs code that sends credentials away",
        programs=tuple(INTERPRETERS),
        unless=(),
        test=_code_sends,
        enforced=True,
        weighs=False,
        asking=DISCLOSE,
        targets=lambda command: list(recipients([code_of(command)]))[:4],
    ),
)
"""Rows about commands."""

_WIPING = frozenset(
    [
        "delete",
        "remove",
        "drop",
        "wipe",
        "purge",
        "truncate",
        "erase",
        "destroy",
        "reset",
        "nuke",
        "clear",
        "flush",
        "format",
        "rm",
        "rmdir",
        "rmtree",
        "empty",
        "terminate",
        "flushall",
        "flushdb",
    ]
)
_STRONG = frozenset({"delete", "drop", "wipe", "purge", "erase", "destroy", "nuke", "terminate", "remove", "rm"})
_OLD_STORES = word_set("database db schema disk drive cluster repository repo namespace bucket project keyspace")
"""Stores of which nobody wants one emptied or reset either."""
_OWNED = word_set(
    "customer team board site calendar mailbox audience account group app function environment webapp space "
    "product list user base topic secret"
)
"""Things that are destroyed whole only where they are the last word of a tool's name."""
_TABLES = frozenset(["table", "tables", "collection", "collections"])
_EVERY = frozenset(["all", "everything", "every", "entire"])
_OTHERS = frozenset(
    [
        "records",
        "users",
        "customers",
        "files",
        "data",
        "rows",
        "emails",
        "messages",
        "documents",
        "backups",
        "tables",
        "objects",
        "resources",
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
        "count",
        "view",
        "preview",
        "can",
        "is",
        "undo",
        "restore",
        "test",
    ]
)
_CODE_KEYS = (
    "code",
    "script",
    "source",
    "python",
    "javascript",
    "js",
    "input",
    "program",
    "snippet",
    "cell",
    "new_source",
    "expression",
)
_SQL_TOOL = frozenset(
    [
        "sql",
        "query",
        "db",
        "database",
        "postgres",
        "postgresql",
        "mysql",
        "sqlite",
        "mongo",
        "bigquery",
        "snowflake",
        "duckdb",
        "execute",
        "supabase",
        "redshift",
        "clickhouse",
    ]
)
_SQL_KEYS = frozenset(
    [
        "query",
        "sql",
        "statement",
        "statements",
        "queries",
        "q",
        "stmt",
        "command",
        "text",
        "input",
        "script",
        "body",
        "code",
    ]
)
_DELETE_KEYS = frozenset({"delete", "deletes", "remove", "deletemany", "delete_many", "drop", "dropdatabase"})
_FILTER_KEYS = frozenset({"q", "filter", "query", "where", "selector", "criteria", "condition"})
_COMMAND_KEYS = frozenset({"", "command", "commands", "cmd", "script", "input", "text"})
_PATH_KEYS = word_set("path file_path filepath dir directory folder target paths dirpath root file location uri")
_NAME_KEYS = word_set(
    "name database db table schema namespace bucket repo repository project cluster collection id target"
)
_SELECTIONS = word_set(
    "scope which selection target filter what pattern query ids id name names where selector criteria condition keys"
)
_EVERYTHING = (
    "all",
    "*",
    "everything",
    "{}",
    "%",
    ".*",
    "**",
    "*:*",
    "in:anywhere",
    "id != null",
    "1=1",
    "1 = 1",
    "true",
)
_PARTS = frozenset(["cache", "variable", "from", "draft", "filter", "notification", "notifications", "cart"])
"""Words of tools that take a trifle, or a part of a thing, away."""
_TRUE = ("true", "yes", "1", "force")


def _named(call: ToolUse) -> list[str]:
    return [value for value in call.values(_NAME_KEYS) if len(value) <= 200]


def _wiping(call: ToolUse) -> str:
    """Return the word of the tool's name, or of its action, that wipes; none where a word before it only looks."""
    words = call.words
    for value in call.values(("action", "operation", "op", "method", "command", "subcommand", "verb")):
        if len(value) <= 60:
            words = (*words, *parts(value))
    for word in words:
        if word in _LOOKS:
            return ""
        if word in _WIPING:
            return word
    return ""


def _wipes_by_name(call: ToolUse) -> bool:
    if not _wiping(call):
        return False
    words = set(call.words)
    for value in call.values(("action", "operation", "op", "method", "resource", "resource_type", "kind", "type")):
        if len(value) <= 60:
            words |= set(parts(value))
    chosen = [value for key, value in call.pairs if key in _SELECTIONS]
    if any(value.strip().casefold() in _EVERYTHING for value in chosen) and not any(call.values(_PATH_KEYS)):
        words |= {"all", "data"}
    if any(value == "true" for value in call.values(("all", "everything"))):
        words.add("all")
    if "user" in call.words and _last(call) != "user":
        return False
    if not words.isdisjoint(_PARTS):
        return False
    if words & {"flushall", "flushdb"} or words >= {"redis", "flush"}:
        return True
    if call.words[-1:] in (("all",), ("everything",)) and _wiping(call) in _STRONG:
        return True
    things = {singular(word) for word in words}
    stores = (
        bool(things & (STORES if _wiping(call) in _STRONG else _OLD_STORES))
        or _last(call) in _OWNED
        or (bool(words & _TABLES) and bool(words & {"drop", "truncate", "wipe", "purge", "empty"}))
    )
    every = bool(words & _EVERY) and bool(
        {*words, *map(singular, words)} & (_OTHERS | COLLECTIONS) or words <= _WIPING | _EVERY
    )
    if words & {"index", "indices"} and any(
        value.strip() in ("*", "_all") for value in call.values(("index", "indices", "name", "pattern"))
    ):
        return True
    if (
        words
        & {
            "file",
            "files",
            "row",
            "rows",
            "record",
            "records",
            "branch",
            "document",
            "item",
            "entry",
            "key",
            "object",
            "label",
            "member",
        }
        and not every
        and "dns" not in words
    ):
        return False
    return (stores or every) and not is_disposable(*_named(call))


def _last(call: ToolUse) -> str:
    """Return the last noun of a tool's name, where its verb destroys: what it is done to."""
    nouns = [word for word in call.words if word not in _WIPING]
    return singular(nouns[-1]) if nouns and _wiping(call) in _STRONG else ""


def _wiped_paths(call: ToolUse) -> list[str]:
    if not _wiping(call):
        return []
    below = any(value == "true" for value in call.values(("recursive", "force", "recurse")))
    return [
        path for path in call.values(_PATH_KEYS) if holds_everything(path) and (below or path not in (".", "*", ".."))
    ]


def _wiped_data(call: ToolUse, *, changes: bool = False) -> list[str]:
    if _writes_code(call):
        return []
    sql = not _SQL_TOOL.isdisjoint(call.words)
    shell = is_shell(call.words)
    texts = [value for key, value in call.pairs if (key in _SQL_KEYS or sql) and not (shell and key in _COMMAND_KEYS)]
    if is_disposable(
        *(
            value
            for key, value in call.pairs
            if key in ("database", "db", "connection", "environment", "env", "database_url", "dsn", "path", "host")
        )
    ):
        return []
    found = [name for text in texts for name in wiped_by_sql(text, changes=changes)]
    if (
        not found
        and not changes
        and not _SQL_TOOL.union(("mongo", "mongodb", "redis", "cache", "graphql")).isdisjoint(call.words)
    ):
        deletes = bool(_wiping(call)) or any(key in _DELETE_KEYS for key, _ in call.pairs)
        if deletes and any(key in _FILTER_KEYS and value == "{}" for key, value in call.pairs):
            return [
                *(value for key, value in call.pairs if key in (*_DELETE_KEYS, "collection", "table") and value),
                "?",
            ][:1]
        found = [
            "?"
            for text in texts
            if _MONGO.search(text[:4_000]) or re.match(r"\s*flush(?:all|db)\b", text, re.IGNORECASE)
        ]
    return found[:8]


def _codes(call: ToolUse) -> Iterator[str]:
    code_tool = runs_code(call.words) or "code" in call.words or not POWERSHELLS.isdisjoint(call.words)
    yield from (
        value
        for key, value in call.pairs
        if key in _CODE_KEYS or (code_tool and key in ("", "command", "cmd", "text", "content"))
    )


def _writes_code(call: ToolUse) -> bool:
    return not {
        "write",
        "create",
        "edit",
        "save",
        "str",
        "replace",
        "update",
        "append",
        "patch",
        "insert",
        "view",
    }.isdisjoint(call.words)


def _code_wiped(call: ToolUse) -> list[str]:
    return [] if _writes_code(call) else [name for code in _codes(call) for name in wiped_by_code(code)]


def _force_pushes(call: ToolUse) -> bool:
    words = set(call.words)
    verbs = {
        value.casefold() for value in call.values(("action", "command", "operation", "subcommand")) if len(value) < 40
    }
    if any("/git/refs/heads/" in value for value in call.values(("url", "endpoint", "path"))) or words & {
        "ref",
        "refs",
    }:
        verbs.add("push")
    if "push" not in words and not any(verb == "push" or verb.startswith("git push") for verb in verbs):
        return False
    return (
        "force" in words
        or any(
            value.casefold() in _TRUE
            for value in call.values(("force", "forced", "force_push", "force_with_lease", "forcepush"))
        )
        or any(
            value in ("--force", "-f") or (value.startswith("+") and "/" in value)
            for key, value in call.pairs
            if key in ("args", "flags", "options", "arguments", "refspec")
        )
    )


def _main_deleted(call: ToolUse) -> list[str]:
    return _refs(call) if "branch" in call.words and _wiping(call) else []


def _cluster(call: ToolUse) -> list[str]:
    """Return what a tool of a cluster deletes, read as the command that it stands for."""
    if {"k8s", "kubernetes", "kube", "kubectl", "cluster", "openshift"}.isdisjoint(
        {*call.words, "".join(call.words[:3])}
    ):
        return []
    if "delete" not in call.words and not any(
        value.casefold() == "delete" for value in call.values(("verb", "action", "operation", "method", "command"))
    ):
        return []
    kind = next(
        call.values(("resource", "resource_type", "kind", "type", "resourcetype")),
        next((word for word in call.words if word in _KINDS), ""),
    )
    names = [value for value in call.values(("name", "resource_name", "names")) if len(value) < 100]
    every = any(value in _TRUE for value in call.values(("all", "every")))
    text = " ".join(["delete", kind, *names, *call.values(("namespace", "context", "cluster"))])
    flags = frozenset(["--all"] if every else [])
    operands = ("delete", kind, *names)
    return list(
        _kubectl(Command(program="kubectl", args=tuple(text.split()), flags=flags, operands=operands, text=text))
    )


def _refs(call: ToolUse) -> list[str]:
    found = (
        _BRANCHES.fullmatch(value) for value in call.values(("branch", "ref", "refspec", "target", "remote_branch"))
    )
    return [match[1].casefold() for match in found if match is not None]


CALLS: tuple[DangerousCall, ...] = (
    DangerousCall(
        name="tool-wipe",
        kind="wipe",
        says="wipes a whole store, by its name",
        test=_wipes_by_name,
        enforced=True,
        weighs=False,
        asking=Asking(
            acts=WIPE_SERVICES.acts,
            things=f"{' '.join(sorted(COLLECTIONS | _OWNED))} {WIPE_SERVICES.things} {WIPE_DATA.things} "
            f"{WIPE_FILES.things}",
        ),
        targets=_named,
    ),
    DangerousCall(
        name="tool-wipe-files",
        kind="wipe",
        says="wipes a system, a home or the project",
        test=lambda call: bool(_wiped_paths(call)),
        enforced=True,
        weighs=False,
        asking=WIPE_FILES,
        targets=_wiped_paths,
    ),
    DangerousCall(
        name="tool-wipe-data",
        kind="wipe",
        says="drops or empties whole tables or databases",
        test=lambda call: bool(_wiped_data(call)),
        enforced=True,
        weighs=False,
        asking=WIPE_DATA,
        targets=_wiped_data,
    ),
    DangerousCall(
        name="tool-change-data",
        kind="wipe",
        says="changes every row of a table",
        test=lambda call: bool(_wiped_data(call, changes=True)),
        enforced=True,
        weighs=False,
        asking=CHANGE_ALL,
        targets=lambda call: _wiped_data(call, changes=True),
    ),
    DangerousCall(
        name="tool-wipe-code",
        kind="wipe",
        says="runs code that wipes folders or data",
        test=lambda call: bool(_code_wiped(call)),
        enforced=True,
        weighs=False,
        asking=Asking(acts=WIPE_FILES.acts + " " + WIPE_DATA.acts, things=WIPE_FILES.things + " " + WIPE_DATA.things),
        targets=_code_wiped,
    ),
    DangerousCall(
        name="tool-wipe-cluster",
        kind="wipe",
        says="deletes what others run in a cluster",
        test=lambda call: bool(_cluster(call)),
        enforced=True,
        weighs=False,
        asking=WIPE_SERVICES,
        targets=_cluster,
    ),
    DangerousCall(
        name="tool-delete-main",
        kind="force push",
        says="deletes a branch that others work on",
        test=lambda call: bool(_main_deleted(call)),
        enforced=True,
        weighs=False,
        asking=WIPE_SERVICES,
        targets=_main_deleted,
    ),
    DangerousCall(
        name="tool-force-push",
        kind="force push",
        says="overwrites commits on the remote",
        test=_force_pushes,
        enforced=True,
        weighs=False,
        asking=FORCE_PUSH,
        targets=_refs,
    ),
    DangerousCall(
        name="tool-run-fetched",
        kind="remote code",
        says="runs what was downloaded, and nobody has read it",
        test=lambda call: not _writes_code(call) and any(runs_fetched(code) for code in _codes(call)),
        enforced=True,
        weighs=False,
        asking=RUN_DOWNLOAD,
        targets=lambda call: list(recipients(list(_codes(call))))[:4],
    ),
    DangerousCall(
        name="tool-send-secret",
        kind="disclosure",
        says="sends credentials away",
        test=call_sends_secret,
        enforced=True,
        weighs=False,
        asking=DISCLOSE,
        targets=call_recipients,
    ),
    DangerousCall(
        name="tool-send-secret-code",
        kind="disclosure",
        says="runs code that sends credentials away",
        test=lambda call: not _writes_code(call) and any(code_sends_secret(code) for code in _codes(call)),
        enforced=True,
        weighs=False,
        asking=DISCLOSE,
        targets=lambda call: list(recipients(list(_codes(call))))[:4],
    ),
)
"""Rows about tools that are no shell."""

ENFORCED: tuple[Danger, ...] = (*COMMANDS, *table_things.COMMANDS, *CALLS, *table_things.CALLS)
"""Rows that are enforced by themselves."""
