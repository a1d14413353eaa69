"""Results of calls, from what the tools of Gemini CLI return."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from coherence.integrations.gemini.transcript import texts_in
from coherence.integrations.host_session import text_of

_WRAPPED = re.compile(r"\A<untrusted_context>\n(?:Output: )?(.*?)\n?</untrusted_context>\Z", re.DOTALL)
_PROCESS = re.compile(r"\n(?:Background PIDs|Process Group PGID): [\d, ]+(?=\n|\Z)")
"""Numbers of processes, by which equal results would differ."""

_FAILED = re.compile(
    r"\nExit Code: -?\d+(?:\nSignal: \w+)?\Z|\nSignal: \w+\Z"
    r"|\ACommand was (?:automatically cancelled|cancelled by user) "
)
"""End or beginning of what a shell command that has failed, or was cut short, has put out."""

_REPEATED = "Here is the updated code:\n"
"""Words before the file as it is now, which repeats the call."""

SHELL = "run_shell_command"


class Result(NamedTuple):
    """Outcome of a call."""

    text: str
    error: bool


def result_of(tool: str, response: Any) -> Result:
    r"""Return the result of a call as the model gets to see it, without what the client wraps around it.

    Examples
    --------
    >>> told = "<untrusted_context>\nOutput: no tests ran\nExit Code: 5\nProcess Group PGID: 7\n</untrusted_context>"
    >>> result_of("run_shell_command", {"llmContent": told})
    Result(text='no tests ran\nExit Code: 5', error=True)
    >>> result_of("read_file", {"llmContent": "Could not read it.", "error": {"message": "File not found: a.txt"}})
    Result(text='File not found: a.txt', error=True)
    """
    if not isinstance(response, Mapping):
        return Result("\n".join(texts_in(response)), error=False)
    text = _bare("\n".join(texts_in(response.get("llmContent"))))
    if fault := error_of(response):
        return Result(fault, error=True)
    if tool == SHELL:
        return Result(text, error=_FAILED.search(text) is not None)
    head, found, _ = text.partition(_REPEATED)
    return Result(head.rstrip() if found else text, error=False)


def error_of(response: Any) -> str:
    """Return the words by which the model is told that a call has failed, empty if it has not."""
    fault = response.get("error") if isinstance(response, Mapping) else None
    if isinstance(fault, Mapping):
        return text_of(fault, "message") or "the call failed"
    return ""


def _bare(text: str) -> str:
    wrapped = _WRAPPED.match(text.strip())
    return _PROCESS.sub("", wrapped[1] if wrapped else text)
