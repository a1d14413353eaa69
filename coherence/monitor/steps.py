"""A recorded run, told step by step to whoever takes events of a host."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from coherence.monitor.host_events import HostEvents
from coherence.providers.transcript import Step, Transcript


def record_steps(
    monitor: HostEvents, transcript: Transcript, *, before_call: Callable[[str, Any], object] | None = None
) -> Iterator[int]:
    """Tell a monitor what happened in a run, and yield the number of each step after it.

    Before the first step it is told the system text, and before each step the memories that are there from then on.
    ``before_call`` is called as by :func:`record_step`.
    """
    if transcript.system.strip():
        monitor.message("system", transcript.system)
    open_calls: list[tuple[str, str]] = []
    for at, step in enumerate(transcript.steps):
        for since, text in transcript.memories:
            if since == at:
                monitor.memory(text)
        record_step(monitor, step, open_calls, before_call=before_call)
        yield at


def record_step(
    monitor: HostEvents,
    step: Step,
    open_calls: list[tuple[str, str]],
    *,
    before_call: Callable[[str, Any], object] | None = None,
) -> None:
    """Tell a monitor what happened at one step of a transcript.

    Parameters
    ----------
    monitor : HostEvents
        A monitor, as a rule.
    step : Step
        The step.
    open_calls : list
        Calls without a result, by id and tool; changed. Results come in the order of their calls.
    before_call : callable, optional
        Called with the tool and the arguments of each call before it is told, as a host asks before a call.
    """
    if step.role == "tool":
        # Not every format names the tool of a result; then results come in the order of the calls.
        call = next((pair for pair in open_calls if pair[1] == step.tool_name), open_calls[0] if open_calls else None)
        if call is not None:
            open_calls.remove(call)
        monitor.tool_result(
            step.content, error=step.is_error, call=call[0] if call is not None else "none", tool=step.tool_name
        )
    else:
        monitor.message(step.role, step.content)
        for made in step.tool_calls:
            if before_call is not None:
                before_call(made.name or "unknown", made.arguments)
            call_id = monitor.tool_call(made.name or "unknown", made.arguments, call=made.id)
            open_calls.append((call_id, made.name))
    usage = step.usage
    if usage is not None:
        monitor.usage(tokens_in=usage.tokens_in, tokens_out=usage.tokens_out, cost_usd=usage.cost_usd)
