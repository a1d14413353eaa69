"""Rows about version control: lost commits, lost changes, rewritten history."""

from __future__ import annotations

from coherence.policy.danger.danger import DRY, Command, DangerousCommand

_GIT = ("git",)


def _forced_ref(command: Command) -> bool:
    return any(word.startswith("+") and len(word) > 1 for word in command.operands[1:])


def _deleted_ref(command: Command) -> bool:
    return any(word.startswith(":") and len(word) > 1 for word in command.operands[1:])


def _discards(command: Command) -> bool:
    if not command.flags.isdisjoint(("-b", "-B", "--orphan", "-t", "--track")):
        return False
    return (
        len(command.operands) > 2
        or "--" in command.args[:-1]
        or any(word == "." or word.startswith((":/", "./", "*")) for word in command.operands[1:])
    )


def _restores(command: Command) -> bool:
    return command.flags.isdisjoint(("--staged", "-S")) or not command.flags.isdisjoint(("--worktree", "-W"))


def _branch(command: Command) -> bool:
    deletes = not command.flags.isdisjoint(("-d", "--delete"))
    return "-D" in command.flags or (deletes and not command.flags.isdisjoint(("-f", "--force")))


GIT: tuple[DangerousCommand, ...] = (
    DangerousCommand(
        name="git-push-force",
        kind="force push",
        says="overwrites commits on the remote",
        programs=_GIT,
        verbs=("push",),
        unless=(*DRY, "-n"),
        flags=("-f", "--force", "--force-with-lease", "--force-if-includes", "--mirror"),
    ),
    DangerousCommand(
        name="git-push-plus",
        kind="force push",
        says="overwrites commits on the remote",
        programs=_GIT,
        verbs=("push",),
        unless=(*DRY, "-n"),
        test=_forced_ref,
    ),
    DangerousCommand(
        name="git-push-delete",
        kind="delete",
        says="deletes a branch or a tag on the remote",
        programs=_GIT,
        verbs=("push",),
        unless=(*DRY, "-n"),
        flags=("-d", "--delete", "--prune"),
    ),
    DangerousCommand(
        name="git-push-empty",
        kind="delete",
        says="deletes a branch or a tag on the remote",
        programs=_GIT,
        verbs=("push",),
        unless=(*DRY, "-n"),
        test=_deleted_ref,
    ),
    DangerousCommand(
        name="git-reset-hard",
        kind="discard",
        says="throws changes away",
        programs=_GIT,
        verbs=("reset",),
        flags=("--hard",),
    ),
    DangerousCommand(
        name="git-clean",
        kind="delete",
        says="deletes untracked files",
        programs=_GIT,
        verbs=("clean",),
        flags=("-f", "--force", "-i"),
        unless=(*DRY, "-n"),
    ),
    DangerousCommand(
        name="git-checkout-files",
        kind="discard",
        says="throws changes away",
        programs=_GIT,
        verbs=("checkout",),
        test=_discards,
    ),
    DangerousCommand(
        name="git-checkout-force",
        kind="discard",
        says="throws changes away",
        programs=_GIT,
        verbs=("checkout", "switch"),
        flags=("-f", "--force", "--discard-changes"),
    ),
    DangerousCommand(
        name="git-restore",
        kind="discard",
        says="throws changes away",
        programs=_GIT,
        verbs=("restore",),
        test=_restores,
    ),
    DangerousCommand(
        name="git-branch-delete",
        kind="delete",
        says="deletes a branch that may not be merged",
        programs=_GIT,
        verbs=("branch",),
        test=_branch,
    ),
    DangerousCommand(
        name="git-tag-delete",
        kind="delete",
        says="deletes a tag",
        programs=_GIT,
        verbs=("tag",),
        flags=("-d", "--delete"),
    ),
    DangerousCommand(
        name="git-drop",
        kind="delete",
        says="deletes what cannot be got back",
        programs=_GIT,
        verbs=(
            "stash drop",
            "stash clear",
            "reflog expire",
            "reflog delete",
            "prune",
            "worktree remove",
            "submodule deinit",
            "lfs prune",
        ),
        unless=(*DRY, "-n"),
    ),
    DangerousCommand(
        name="git-gc-prune",
        kind="delete",
        says="deletes unreachable commits",
        programs=_GIT,
        verbs=("gc",),
        flags=("--prune",),
    ),
    DangerousCommand(
        name="git-update-ref",
        kind="delete",
        says="deletes a reference",
        programs=_GIT,
        verbs=("update-ref",),
        flags=("-d", "--delete"),
    ),
    DangerousCommand(
        name="git-rm",
        kind="delete",
        says="deletes files",
        programs=_GIT,
        verbs=("rm",),
        unless=(*DRY, "-n", "--cached"),
    ),
    DangerousCommand(
        name="git-rewrite",
        kind="history",
        says="rewrites the whole history",
        programs=("git", "git-filter-repo", "bfg"),
        test=lambda command: command.program != "git" or command.lead.startswith(("filter-branch ", "filter-repo ")),
    ),
    DangerousCommand(
        name="gh-delete",
        kind="delete",
        says="deletes something on the forge",
        programs=("gh", "glab", "hub"),
        test=lambda command: (
            command.operands[1:2] in (("delete",), ("delete-asset",), ("remove",), ("archive",))
            or command.lead.startswith("delete ")
        ),
    ),
    DangerousCommand(
        name="svn",
        kind="discard",
        says="deletes or throws changes away",
        programs=("svn",),
        verbs=("delete", "del", "rm", "remove", "revert"),
    ),
    DangerousCommand(
        name="hg",
        kind="discard",
        says="deletes or throws changes away",
        programs=("hg",),
        verbs=("strip", "purge", "revert", "remove", "rm"),
    ),
)
"""Rows about git and its like."""
