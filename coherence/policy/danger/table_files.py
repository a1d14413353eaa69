"""Rows about files: deleting, overwriting, who may read them."""

from __future__ import annotations

from itertools import pairwise

from coherence.core.lazy import lazy_regex
from coherence.policy.danger.danger import DRY, Command, DangerousCommand
from coherence.policy.danger.paths import is_device, is_guarded, is_secret

_DANGEROUS_MODE = lazy_regex(
    r"0?[0-7]?[0-7][0-7][2367]|[4-7][0-7]{3}|0*[0-7]?000|[ugoa]*-[rwxst]+|[ugo]*[oa][ugo]*[+=][rxX]*w[rxX]*|[ug]*\+s"
)


def _destination(command: Command) -> str:
    target = next((arg.partition("=")[2] for arg in command.args if arg.startswith("--target-directory=")), "")
    return target or (command.operands[-1] if len(command.operands) > 1 else "")


def _redirects(command: Command) -> bool:
    return is_device(command.writes) if command.appends else is_guarded(command.writes)


def _copies_over(command: Command) -> bool:
    return is_guarded(_destination(command)) or (command.program == "cp" and command.lead.startswith("/dev/null "))


def _moves(command: Command) -> bool:
    if _destination(command) == "/dev/null" or is_guarded(_destination(command)):
        return True
    return any(is_secret(operand) for operand in command.operands)


def _writes_operand(command: Command) -> bool:
    return any(is_guarded(operand) for operand in command.operands)


def _tees(command: Command) -> bool:
    appends = not command.flags.isdisjoint(("-a", "--append"))
    return any(is_device(name) if appends else is_guarded(name) for name in command.operands)


def _dd(command: Command) -> bool:
    return any(arg.startswith("of=") and not arg.startswith(("of=/dev/null", "of=/dev/stdout")) for arg in command.args)


def _chmod(command: Command) -> bool:
    if not command.flags.isdisjoint(("-R", "--recursive", "-x", "-w", "-r")):
        return True
    modes = (command.operands[0] if command.operands else "").split(",")
    return any(_DANGEROUS_MODE.fullmatch(mode) is not None for mode in modes[:20])


def _edits_in_place(command: Command) -> bool:
    return any(flag.startswith(("-i", "--in-place")) for flag in command.flags) and _writes_operand(command)


def _saves_to(command: Command) -> bool:
    names = ("-o", "--output", "-O", "--output-document", "-OutFile")
    return any(flag in names and is_guarded(path) for flag, path in pairwise(command.args))


def _patch(command: Command) -> bool:
    return any("*** Delete File: " in text for text in (command.stdin, *command.args[:4]))


FILES: tuple[DangerousCommand, ...] = (
    DangerousCommand(
        name="rm",
        kind="delete",
        says="deletes files",
        programs=("rm", "rmdir", "unlink", "shred", "srm", "wipe", "rd", "del", "erase", "deltree", "rimraf", "ri"),
    ),
    DangerousCommand(
        name="remove-item", kind="delete", says="deletes files", programs=("remove-item", "clear-content", "clear-item")
    ),
    DangerousCommand(name="find-delete", kind="delete", says="deletes files", programs=("find",), flags=("-delete",)),
    DangerousCommand(name="truncate", kind="overwrite", says="cuts files off", programs=("truncate",)),
    DangerousCommand(name="dd", kind="overwrite", says="overwrites a file or a device", programs=("dd",), test=_dd),
    DangerousCommand(
        name="rsync-delete",
        kind="delete",
        says="deletes files that the other side lacks",
        programs=("rsync",),
        flags=(
            "--delete",
            "--delete-before",
            "--delete-after",
            "--delete-during",
            "--delete-excluded",
            "--del",
            "--remove-source-files",
        ),
        unless=(*DRY, "-n"),
    ),
    DangerousCommand(
        name="archive-and-delete",
        kind="delete",
        says="deletes what it packs",
        programs=("tar",),
        flags=("--remove-files",),
    ),
    DangerousCommand(
        name="rclone",
        kind="delete",
        says="deletes stored files",
        programs=("rclone",),
        unless=(*DRY, "-n"),
        verbs=("delete", "purge", "deletefile", "sync", "rmdir", "rmdirs", "cleanup", "move"),
    ),
    DangerousCommand(
        name="redirect",
        kind="overwrite",
        says="overwrites a secret, a system file or a device",
        test=_redirects,
        unless=(),
    ),
    DangerousCommand(
        name="copy-over",
        kind="overwrite",
        says="overwrites a secret or a system file",
        programs=("cp", "install", "ln", "scp", "rsync", "copy", "copy-item"),
        unless=(*DRY, "-n", "--no-clobber", "-i"),
        test=_copies_over,
    ),
    DangerousCommand(
        name="move",
        kind="overwrite",
        says="moves or overwrites a secret or a system file",
        programs=("mv", "move", "move-item", "rename-item"),
        unless=(*DRY, "-n", "--no-clobber"),
        test=_moves,
    ),
    DangerousCommand(
        name="tee",
        kind="overwrite",
        says="overwrites a secret or a system file",
        programs=("tee", "sponge"),
        test=_tees,
    ),
    DangerousCommand(
        name="set-content",
        kind="overwrite",
        says="overwrites a secret or a system file",
        programs=("set-content", "out-file"),
        test=_writes_operand,
    ),
    DangerousCommand(
        name="edit-in-place",
        kind="overwrite",
        says="changes a secret or a system file",
        programs=("sed", "perl", "gsed"),
        test=_edits_in_place,
    ),
    DangerousCommand(
        name="download-over",
        kind="overwrite",
        says="overwrites a secret or a system file",
        programs=("curl", "wget", "sort", "iwr", "invoke-webrequest"),
        test=_saves_to,
    ),
    DangerousCommand(
        name="patch-delete", kind="delete", says="deletes files", programs=("apply_patch", "applypatch"), test=_patch
    ),
    DangerousCommand(
        name="chmod", kind="permissions", says="takes or opens up access to files", programs=("chmod",), test=_chmod
    ),
    DangerousCommand(
        name="chown",
        kind="permissions",
        says="changes the owner of a whole tree",
        programs=("chown", "chgrp", "setfacl"),
        flags=("-R", "--recursive"),
    ),
    DangerousCommand(
        name="windows-permissions",
        kind="permissions",
        says="changes who owns files",
        programs=("icacls", "takeown", "cacls"),
    ),
    DangerousCommand(
        name="mkfs",
        kind="overwrite",
        says="formats or partitions a disk",
        programs=(
            "mkfs*",
            "mkswap",
            "fdisk",
            "sfdisk",
            "cfdisk",
            "gdisk",
            "sgdisk",
            "parted",
            "wipefs",
            "blkdiscard",
            "format",
            "format-volume",
            "clear-disk",
            "diskpart",
        ),
        unless=(*DRY, "-l", "--list", "-n", "--no-act"),
        test=lambda command: command.program != "format" or any(":" in word for word in command.args),  # a drive
    ),
    DangerousCommand(
        name="volumes",
        kind="delete",
        says="deletes a volume",
        programs=("lvremove", "vgremove", "pvremove"),
    ),
    DangerousCommand(
        name="zfs",
        kind="delete",
        says="deletes stored data",
        programs=("zfs", "zpool", "btrfs", "cryptsetup", "diskutil"),
        unless=(*DRY, "-n"),
        verbs=(
            "destroy",
            "labelclear",
            "rollback",
            "subvolume delete",
            "luksFormat",
            "erase",
            "luksErase",
            "eraseDisk",
            "eraseVolume",
            "apfs deleteVolume",
            "partitionDisk",
        ),
    ),
)
"""Rows about files and disks."""
