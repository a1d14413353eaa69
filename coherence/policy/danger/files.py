"""Commands about files and disks: what they overwrite, and what they wipe whole."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from coherence.core.lazy import lazy_regex
from coherence.core.words import word_set
from coherence.policy.danger.danger import Command
from coherence.policy.danger.paths import holds_everything, is_device, is_guarded, is_secret, is_system, normal

_DANGEROUS_MODE = lazy_regex(
    r"0?[0-7]?[0-7][0-7][2367]|[4-7][0-7]{3}|0*[0-7]?000|[ugoa]*-[rwxst]+|[ugo]*[oa][ugo]*[+=][rxX]*w[rxX]*|[ug]*\+s"
)
_SAVES_TO = word_set("-o --output -O --output-document -OutFile")
_FILTERS = word_set(
    "-name -iname -path -ipath -wholename -regex -iregex -mtime -mmin -atime -ctime -newer -size -empty -user -group "
    "-perm -nouser -nogroup -inum -samefile"
)
_ALL_NAMES = (("*",), ("*.*",), ("?*",))
_BACKUPS = lazy_regex(
    r"(?:^|[/_-])(?:prod(?:uction)?|live|main)\w{0,20}\.(?:sqlite3?|db)$"
    r"|^(?!/tmp/|/var/tmp/)(?:~|/)(?:[\w.-]{1,60}/){0,3}backups?/[^/\s]{0,60}\*[^/\s]{0,60}$",
    re.IGNORECASE,
)
"""Files that hold a live database, and all files of a folder of backups."""
_LISTS_ALL = lazy_regex(
    r"\$\((?:ls(?: -[A1a]+)*|git ls-files(?: -z)?|find(?: \.)?(?: -type f| -print0?| -mindepth 1)*)\)"
)
_DRIVE = lazy_regex(r"[A-Za-z]:")


def redirects_over(command: Command) -> bool:
    """Return whether a redirection overwrites a secret, a system file or a device."""
    if not command.writes:
        return False
    return is_device(command.writes) if command.appends else is_guarded(command.writes)  # a file keeps what it had


def copies_over(command: Command) -> bool:
    """Return whether a copy or a move overwrites a secret or a system file, or takes a secret away."""
    target = next((arg.partition("=")[2] for arg in command.args if arg.startswith("--target-directory=")), "")
    target = target or (command.operands[-1] if len(command.operands) > 1 else "")
    if command.program in ("mv", "move", "move-item", "rename-item"):
        return target == "/dev/null" or is_guarded(target) or any(map(is_secret, command.operands))
    # "cp /dev/null x" empties x
    return is_guarded(target) or (command.program == "cp" and command.lead.startswith("/dev/null "))


def writes_over(command: Command) -> bool:
    """Return whether a command that writes files overwrites or changes a secret, a system file or a device."""
    if command.program in ("curl", "wget", "sort", "iwr", "invoke-webrequest"):
        return any(flag in _SAVES_TO and is_guarded(path) for flag, path in pairwise(command.args))
    if command.program in ("sed", "gsed", "perl") and not any(
        flag.startswith(("-i", "--in-place")) for flag in command.flags
    ):
        return False
    appends = command.program == "tee" and not command.flags.isdisjoint(("-a", "--append"))
    return any(map(is_device if appends else is_guarded, command.operands))


def dd_writes(command: Command) -> bool:
    """Return whether ``dd`` writes to a file or a device."""
    return any(arg.startswith("of=") and not arg.startswith(("of=/dev/null", "of=/dev/stdout")) for arg in command.args)


def opens_access(command: Command) -> bool:
    """Return whether ``chmod`` changes a whole tree, takes access away or gives it to everybody."""
    if not command.flags.isdisjoint(("-R", "--recursive", "-x", "-w", "-r")):
        return True
    modes = (command.operands[0] if command.operands else "").split(",")
    return any(_DANGEROUS_MODE.fullmatch(mode) is not None for mode in modes[:20])


def patch_deletes(command: Command) -> bool:
    """Return whether a patch deletes a file."""
    return any("*** Delete File: " in text for text in (command.stdin, *command.args[:4]))


def partitions(command: Command) -> bool:
    """Return whether a command that formats names a disk: "Format plan B" is prose."""
    return command.program != "format" or any(":" in word for word in command.args)


def is_recursive(command: Command) -> bool:
    """Return whether a command takes folders with all that is in them."""
    return not command.flags.isdisjoint(("-r", "-R", "--recursive", "-Recurse", "-recurse", "-Rec")) or any(
        arg.casefold() in ("/s", "-recurse", "-r") for arg in command.args
    )


def asks_first(command: Command) -> bool:
    """Return whether a command asks before it removes something."""
    return any(arg in ("-i", "-I", "-ri", "-ir", "--interactive") for arg in command.args[:20])


def wiped(command: Command) -> Iterator[str]:
    """Yield the paths that ``rm`` and its like wipe whole."""
    # They take an empty folder or one file, unless it is Windows' "rmdir /s".
    if command.program in ("rmdir", "unlink") and not any(arg.casefold() == "/s" for arg in command.args):
        return
    if asks_first(command):
        return
    recursive = is_recursive(command) or command.program in ("rimraf", "deltree", "srm", "wipe")
    brought = command.stdin.replace("$(", " ").replace(")", " ") if not command.operands else ""
    for operand in command.operands[:200]:
        # Flags of Windows look like paths.
        whole = operand.casefold() not in ("/s", "/q", "/f") and holds_everything(operand, command.folder)
        anchored = "*" in operand and operand.strip("\"'").startswith(("/", "~", "$HOME", "C:", "c:"))
        if (whole and (recursive or anchored)) or _BACKUPS.search(operand) is not None:
            yield operand
        elif operand.strip("\"'{}").startswith("$") and "/" not in operand:
            brought += command.reads
    if recursive:
        yield from (word for word in brought.split() if holds_everything(word) and word not in (".", "*"))
    if any("no-preserve-root" in arg for arg in command.args[:200]):
        yield "/"
    if not command.operands and _LISTS_ALL.fullmatch(command.stdin.strip()) is not None:
        yield "."


def wiped_by_unknown(command: Command) -> Iterator[str]:
    """Yield the paths that a program wipes whole if it is ``rm``: its name is known only at run time."""
    if not command.program and not command.flags.isdisjoint(("-rf", "-fr", "-Rf")):
        yield from wiped(command)


def deletes_each(args: Sequence[str]) -> bool:
    """Return whether ``find`` deletes what it finds."""
    return "-delete" in args or any(
        flag in ("-exec", "-execdir", "-ok") and word.rpartition("/")[2] in ("rm", "shred", "unlink", "sudo")
        for flag, word in pairwise(args)
    )


def takes_all(args: Sequence[str]) -> bool:
    """Return whether ``find`` finds everything in its folder."""
    return not any(
        arg in _FILTERS
        and args[at - 1] not in ("-not", "!")  # "! -name x" spares x and takes all the rest
        and not (arg in ("-name", "-iname", "-path") and args[at + 1 : at + 2] in _ALL_NAMES)
        for at, arg in enumerate(args)
    )


def found(command: Command) -> Iterator[str]:
    """Yield the folder in which ``find`` deletes everything."""
    args = command.args
    if deletes_each(args) and takes_all(args):
        path = next(iter(command.operands), "." if args[0].startswith("-") else "")
        if holds_everything(path, command.folder):
            yield path


def mirrored(command: Command) -> Iterator[str]:
    """Yield the system's folder or the home over which ``rsync`` puts something else."""
    if len(command.operands) > 1 and any(flag.startswith("--del") for flag in command.flags):
        path = command.operands[-1]
        # "rsync --delete empty/ x" is a usual way to empty x.
        empties = "empty" in command.operands[0] and holds_everything(path, command.folder)
        if empties or is_system(path) or normal(path) == "~":
            yield path


def devices(command: Command) -> Iterator[str]:
    """Yield the disks that a command overwrites or formats."""
    args, program, operands = command.args, command.program, command.operands
    if not {"open", "luksOpen", "status", "import", "list"}.isdisjoint(operands[:1]):
        return
    if program == "dd":
        yield from (arg[3:] for arg in args if arg.startswith("of=") and is_device(arg[3:]))
    elif program in ("cp", "tee", "cat", "mv"):
        yield from (arg for arg in operands[-1:] if is_device(arg))
    elif program in ("fdisk", "sfdisk", "gdisk", "parted") and (
        not command.flags.isdisjoint(("-l", "--list", "-p", "--dump", "-d"))
        or not {"print", "unit"}.isdisjoint(operands[1:2])
    ):
        return
    elif program == "diskutil":
        if "".join(operands[:1]).casefold().startswith(("erase", "partition", "zero", "secureerase")):
            yield from operands[1:]
    elif program == "format":
        yield from (arg for arg in args if _DRIVE.fullmatch(arg))
    elif program in ("clear-disk", "format-volume", "initialize-disk"):
        yield "?"
    elif not (program.startswith("mk") and "-n" in command.flags):  # -n: only says what it would do
        looped = command.reads.split() if any("$" in arg for arg in args) else ()
        yield from (arg for arg in (*args, *looped) if is_device(arg))


def redirected(command: Command) -> Iterator[str]:
    """Yield the disk to which a redirection writes."""
    if command.writes and is_device(command.writes):
        yield command.writes


def system_modes(command: Command) -> Iterator[str]:
    """Yield the system's folders all of whose files get another owner or other permissions."""
    if is_recursive(command):
        yield from filter(is_system, command.operands[1:])


def storage(command: Command) -> Iterator[str]:
    """Yield the volume or the backups that a command of a storage system deletes."""
    # "pool/data@monday" is a snapshot, not the data.
    destroys = command.operands[:1] in (("destroy",), ("delete",)) and not any("@" in word for word in command.operands)
    if destroys or command.program in ("lvremove", "vgremove"):
        yield command.operands[-1] if command.operands else "?"
