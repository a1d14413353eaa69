"""Calls that the settings forbid: the deny list, held against a tool's name and everything in its arguments."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from coherence.core.decisions import DecisionKind, Finding
from coherence.core.forbidden_calls import ForbiddenCall
from coherence.core.validation import call_text
from coherence.detect.detector import read_arguments
from coherence.policy.danger.classify import commands_of
from coherence.policy.rules.finding_builders import found, shown_tool

RULE = "forbidden_call"
"""Name of the findings."""

MAX_SHELL = 20_000
"""Characters of a call up to which it is read as shell text too."""

MAX_VALUES = 10_000


def forbidding(tool: str, arguments: bytes, entries: Sequence[ForbiddenCall]) -> ForbiddenCall | None:
    r"""Return the first entry of a deny list that forbids a call.

    Looked at are every text of the arguments, all of them together as JSON, and each shell command as it runs, without
    its quotes.

    Examples
    --------
    >>> entry = ForbiddenCall(tool="Bash", matches="git push")
    >>> forbidding("Bash", b'{"command": "cd x && \\"git\\" push"}', [entry]) == entry
    True
    """
    named = [entry for entry in entries if entry.names(tool)]
    if not named:
        return None
    texts = list(_texts(tool, arguments))
    return next((entry for entry in named if any(entry.forbids(tool, text) for text in texts)), None)


def _texts(tool: str, arguments: bytes) -> Iterator[str]:
    decoded = read_arguments(arguments)
    yield call_text("", decoded)[1:-1]
    waiting: list[object] = [decoded]
    values: list[str] = []
    while waiting and len(values) < MAX_VALUES:
        item = waiting.pop()
        if isinstance(item, dict):
            waiting += reversed(item.values())
        elif isinstance(item, list):
            waiting += reversed(item[:MAX_VALUES])
        elif isinstance(item, str):
            values.append(item)
    yield "\n".join(values)
    if len(arguments) <= MAX_SHELL:
        for command in commands_of(tool, decoded):
            yield " ".join((command.program, *command.args))


def deny_finding(seq: int, tool: str, entry: ForbiddenCall, severity: DecisionKind) -> Finding:
    """Return the finding of a call that an entry forbids."""
    why = f"{shown_tool(tool)}(…) is on the deny list of the settings: forbid = {entry}"
    return found(RULE, 1.0, severity, why, "do it another way, or ask for the entry to be changed", [seq], 1.0)
