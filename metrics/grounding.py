"""Grounding: how much of what the agent states was given to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from coherence.core.readings import Evidence, excerpt
from coherence.detect.extractors import BUILT_IN, DEFAULT
from coherence.detect.grounding import Grounds, describe_flaw, judge
from coherence.detect.sources import Given, open_values, take_source
from coherence.state.reducer import AgentState


@dataclass(frozen=True)
class Grounding:
    """The share of checkable values in the newest message or call that occur in what the agent was given before it.

    Ids, addresses, paths and quotations weigh 3, dates and names in code 2, numbers, amounts and times 1. A value is
    grounded if it occurs, in any of its forms, in a goal, a message of the user or the system, a memory, a tool's
    result, or the arguments of the agent's own successful calls; a number also if it is rounded from one, or one
    simple step from two that stand near each other. A right id in another version is not grounded. An address that no
    call opened counts a quarter as ungrounded. Of a call only ids and addresses are checked. What may have been dropped
    from memory is left out, see :mod:`coherence.detect.sources`.

    Range [0, 1], not inverted: 1 = everything is grounded. ``None`` where there is nothing to check, and for a
    provider that is no monitor's state: it does not tell statements from results (see :func:`compute_grounding`).
    It compares values, not sentences: a false sentence without any value in it goes unseen.

    Parameters
    ----------
    state : AgentState
        The agent. Which extractors look for values is its ``config.grounding.extractors``.

    Examples
    --------
    >>> from coherence.core.events import Goal, Message, ToolResult
    >>> state = AgentState()
    >>> state.fold(1, 0.0, Goal("Which version of Mistral 7B is the newest?"))
    >>> state.fold(2, 1.0, ToolResult("arXiv:2310.06825v2 Mistral 7B, 12 Oct 2023", tool_name="fetch"))
    >>> state.fold(3, 2.0, Message("assistant", "Mistral 7B is 2310.06825v3, of October 12, 2023."))
    >>> metric = Grounding(state)
    >>> metric.compute()
    0.4
    >>> print(metric.explain())
    “2310.06825v3” the sources have 2310.06825v2 (event 2)
    """

    state: AgentState
    name = "grounding"
    inverted = False
    in_place = True
    why_unknown = "the newest message or call states nothing that can be checked"

    def compute(self) -> float | None:
        """Return the share."""
        newest = self._newest()
        return None if newest is None else newest.value

    def explain(self) -> Evidence | None:
        """Name the gravest value that is not grounded, and what the sources have instead."""
        newest = self._newest()
        if newest is None or not newest.flaws:
            return None
        flaw = newest.flaws[0]
        items = tuple(at for at, item in enumerate(self.state.context) if item.seq == flaw.seq > 0)
        return Evidence(describe_flaw(flaw), "context", items, (excerpt(flaw.text),))

    def _newest(self) -> Grounds | None:
        return self.state.grounding.data.newest if isinstance(self.state, AgentState) else None


def compute_grounding(
    answer: str,
    sources: Sequence[str],
    memories: Sequence[str] = (),
    *,
    goals: Sequence[str] = (),
    extractors: Sequence[str] = DEFAULT,
) -> Grounds:
    """Return how far an answer is grounded in given texts: :class:`Grounding` for who has no monitor.

    Parameters
    ----------
    answer : str
        What is judged.
    sources : sequence of str
        What was looked up, oldest first; their addresses and ids count as opened. Without any, ``looked_up`` is false.
    memories, goals : sequence of str
        What else the agent knew.
    extractors : sequence of str
        Names of extractors of this package, see :data:`~coherence.detect.extractors.BUILT_IN`.

    Returns
    -------
    Grounds
        Its ``value`` is in [0, 1], 1 = all of it, ``None`` = nothing to check; ``flaws`` name what is not grounded,
        with the number of the source (1 = the first) that has something like it.

    Raises
    ------
    TypeError
        For an answer that is no text, or sources, memories, goals or extractors that are no sequence of texts.
    ValueError
        For an extractor that does not exist.

    Examples
    --------
    >>> found = compute_grounding("It costs $1,290.00 and weighs 1.5 kg.", ["price: 1200 USD, weight 1500 g"])
    >>> found.value, [(flaw.text, flaw.near) for flaw in found.flaws]
    (0.5, [('$1,290.00', '1200 USD')])
    """
    if not isinstance(answer, str):
        raise TypeError(f"answer must be a str, got {type(answer).__name__}")
    given_texts = {"sources": sources, "memories": memories, "goals": goals, "extractors": extractors}
    for label, each in given_texts.items():
        if isinstance(each, str) or not isinstance(each, Sequence) or not all(isinstance(text, str) for text in each):
            raise TypeError(f"{label} must be a sequence of str, got {each!r:.60}")
    unknown = [name for name in extractors if name not in BUILT_IN]
    if unknown:
        raise ValueError(f"no extractor is named {unknown[0]!r}; there are {', '.join(BUILT_IN)}")
    chosen = [BUILT_IN[name] for name in extractors]
    given = Given()
    for texts, first in ((goals, False), (memories, False), (sources, True)):
        for number, text in enumerate(texts, 1):
            open_values(given, number, take_source(given, number if first else 0, text, chosen))
    return judge(given, answer, chosen, looked_up=bool(sources))
