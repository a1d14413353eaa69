"""Commands of version control: commits, changes and branches that are lost."""

from __future__ import annotations

import re

from coherence.core.lazy import lazy_regex
from coherence.policy.danger.danger import Command

_BRANCHES = lazy_regex(
    r"(?:\+|HEAD:|\w+:|:)*(?:refs/heads/)?(main|master|trunk|develop|production|prod|stable|release(?:[/-].*)?)",
    re.IGNORECASE,
)
_FORCES = ("-f", "--force", "--force-with-lease", "--force-if-includes", "--mirror")
_DELETES = ("-d", "--delete")


def shared_branch(ref: str) -> str:
    """Return the branch that a word of a push names, if others work on it; else an empty text.

    Examples
    --------
    >>> [shared_branch(ref) for ref in ("HEAD:main", ":release/2", "feature/main")]
    ['main', 'release/2', '']
    """
    found = _BRANCHES.fullmatch(ref)
    return found[1].casefold() if found is not None else ""


def _refs(command: Command, sign: str) -> bool:
    return any(word.startswith(sign) and len(word) > 1 for word in command.operands[1:])


def overwrites_remote(command: Command) -> bool:
    """Return whether a push is forced."""
    return not command.flags.isdisjoint(_FORCES) or _refs(command, "+")


def overwrites_shared(command: Command) -> bool:
    """Return whether a push is forced, unless it looks first and names a branch of one's own."""
    careful = (
        command.flags.isdisjoint(("-f", "--force", "--mirror", "--prune"))
        and len(command.operands) > 2
        and not shared_branches(command)
    )
    forced = not command.flags.isdisjoint((*_FORCES, "--prune"))
    return (forced and not careful) or _refs(command, "+")


def pushed(command: Command) -> list[str]:
    """Return the branches that a push writes to; ``mirror`` for all of them."""
    if not command.flags.isdisjoint(("--mirror", "--all")):
        return ["mirror"]
    return [word.lstrip("+").rpartition(":")[2].removeprefix("refs/heads/").casefold() for word in command.operands[2:]]


def shared_branches(command: Command) -> list[str]:
    """Return the branches that a push names, if others work on them."""
    return list(filter(None, map(shared_branch, command.operands[1:])))


def deletes_remote(command: Command) -> bool:
    """Return whether a push deletes a branch or a tag."""
    return not command.flags.isdisjoint((*_DELETES, "--prune")) or _refs(command, ":")


def deletes_shared(command: Command) -> bool:
    """Return whether a push deletes a branch that others work on, or branches whose names come from elsewhere."""
    flagged = not command.flags.isdisjoint(_DELETES)
    unnamed = all(word.startswith(("$(", "{}", "`")) for word in command.operands[2:])
    return (flagged and unnamed) or ((flagged or _refs(command, ":")) and bool(shared_branches(command)))


def discards(command: Command) -> bool:
    """Return whether ``git checkout`` throws changes of files away."""
    if not command.flags.isdisjoint(("-b", "-B", "--orphan", "-t", "--track")):
        return False
    return (
        len(command.operands) > 2
        or "--" in command.args[:-1]
        or any(word == "." or word.startswith((":/", "./", "*")) for word in command.operands[1:])
    )


def restores(command: Command) -> bool:
    """Return whether ``git restore`` throws changes of files away."""
    # --staged alone leaves the files as they are
    return command.flags.isdisjoint(("--staged", "-S")) or not command.flags.isdisjoint(("--worktree", "-W"))


def deletes_branch(command: Command) -> bool:
    """Return whether ``git branch`` deletes one that may not be merged."""
    forced = not command.flags.isdisjoint(("-f", "--force"))
    return "-D" in command.flags or (forced and not command.flags.isdisjoint(_DELETES))


def deletes_on_forge(command: Command) -> bool:
    """Return whether a program of a forge deletes something there."""
    verb = "".join(command.operands[1:2])
    return verb in ("delete", "delete-asset", "remove", "archive") or command.lead.startswith("delete ")
