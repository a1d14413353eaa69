"""Commands about processes, services and code that an interpreter is given."""

from __future__ import annotations

import re

from coherence.policy.danger.code import code_of, destroys
from coherence.policy.danger.danger import Command
from coherence.policy.danger.disclosure import code_sends_secret, recipients
from coherence.policy.danger.wipes import wiped_by_code


def signals(command: Command) -> bool:
    """Return whether a command sends a signal that may end a process."""
    return not re.search(r"(?:^| )-s (?:0|EXIT)(?: |$)", " ".join(command.args[:4]))


def ends_all(command: Command) -> bool:
    """Return whether ``kill`` is given every process, ``-1``."""
    return command.args[-1:] == ("-1",) and len(command.args) > 1


def is_fork_bomb(command: Command) -> bool:
    """Return whether a function calls itself twice and nothing else: ``:(){ :|:& };:``."""
    return bool(command.program) and command.stdin == f"\n$({command.program})" and not command.args


def stops(command: Command) -> bool:
    """Return whether ``service`` stops one."""
    return "stop" in command.operands[1:2]


def code_destroys(command: Command) -> bool:
    """Return whether an interpreter is given code that deletes."""
    return destroys(code_of(command))


def code_wipes(command: Command) -> list[str]:
    """Return what the code that an interpreter is given wipes whole."""
    code = code_of(command)
    return wiped_by_code(code) if code else []


def code_sends(command: Command) -> bool:
    """Return whether the code that an interpreter is given sends credentials away."""
    code = code_of(command)
    return bool(code) and code_sends_secret(code, command.holding)


def code_hosts(command: Command) -> list[str]:
    """Return the addresses in the code that an interpreter is given."""
    return list(recipients([code_of(command)]))[:4]
