"""Amounts of agents that a monitoring system polls: a fold of their records, of bounded size."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, OrderedDict
from collections.abc import Sequence

import coherence.core.events as events
from coherence.core.decisions import Decision
from coherence.core.readings import one_line
from coherence.core.validation import check_count
from coherence.export.otel import TOKEN_BUCKETS
from coherence.monitor.sinks import AgentRecord
from coherence.monitor.tick_result import TickResult
from coherence.policy.budgets import is_budget

MAX_AGENTS = 100
"""Agents that are known at a time unless told otherwise: those heard from last."""

MAX_NAMES = 100
"""Rules, metrics or limits that are told apart for one agent; more are counted together."""

MAX_LABEL = 200
"""Characters of a label's value."""

MAX_SESSIONS = 16
"""Sessions of one agent at a time whose active findings are known."""

OTHER = "_other"
"""Name of what is beyond a bound."""

CALL_SECONDS = (0.01, 0.05, 0.1, 0.5, 1.0, 5.0, 10.0, 30.0, 60.0, 300.0, 600.0)
"""Limits of the histogram of durations, in seconds."""

CALL_TOKENS = TOKEN_BUCKETS[3:11]
"""Limits of the histograms of tokens: 64 to 1,048,576."""


class Histogram:
    """Counts of values below some limits.

    Parameters
    ----------
    limits : sequence of float
        Upper limits in rising order; a value that equals one is below it.

    Examples
    --------
    >>> found = Histogram((1.0, 10.0))
    >>> for value in (1.0, 3.0, 30.0):
    ...     found.add(value)
    >>> found.buckets(), found.sum
    ([('1.0', 1), ('10.0', 2), ('+Inf', 3)], 34.0)
    """

    def __init__(self, limits: Sequence[float]) -> None:
        self._limits = tuple(limits)
        self._counts = [0] * (len(limits) + 1)
        self.sum = 0.0

    def __bool__(self) -> bool:
        return any(self._counts)

    def add(self, value: float) -> None:
        """Count a value."""
        self._counts[bisect_left(self._limits, value)] += 1
        self.sum += value

    def buckets(self) -> list[tuple[str, int]]:
        """Return each limit with the number of values up to it."""
        found, below = [], 0
        for limit, count in zip((*self._limits, None), self._counts, strict=True):
            below += count
            found.append(("+Inf" if limit is None else str(limit), below))
        return found


class AgentTotals:
    """Amounts of one agent over all its sessions, and its newest measurement."""

    def __init__(self) -> None:
        self.last_ts = 0.0
        self.result: TickResult | None = None
        """The newest result with a reading."""
        self.steps = self.calls = self.failures = self.refused = self.faults = self.unpriced = 0
        self.tokens: Counter[str] = Counter()
        self.cached = 0
        """Tokens that were read from a cache; they are among the input."""
        self.cost_usd = 0.0
        self.decisions: Counter[str] = Counter()
        self.findings: Counter[str] = Counter()
        """Rule -> times that it became active."""
        self.outcomes: Counter[str] = Counter()
        self.durations = Histogram(CALL_SECONDS)
        self.call_tokens = {"input": Histogram(CALL_TOKENS), "output": Histogram(CALL_TOKENS)}
        self._active: OrderedDict[str, frozenset[str]] = OrderedDict()
        """Session -> rules that were active at its newest measurement."""

    def add(self, record: AgentRecord) -> None:
        """Take in the next record of the agent."""
        event, self.last_ts = record.event, max(self.last_ts, record.ts)
        self.steps += events.ends_step(event)
        match event:
            case events.ToolResult(error=error, duration_s=duration):
                self.calls += 1
                self.failures += error
                if duration is not None:
                    self.durations.add(duration)
            case events.Usage():
                self._use(event)
            case events.Outcome():
                self.outcomes[{True: "success", False: "failure", None: "unknown"}[events.is_success(event)]] += 1
            case events.Fault():
                self.faults += 1
            case events.Ticked(tool_name=tool) if record.result is not None:
                self._decide(record.session, record.result, is_question=tool is not None)
            case _:
                pass

    def _use(self, event: events.Usage) -> None:
        for kind, count in (("input", event.input_tokens), ("output", event.output_tokens)):
            if count is not None:
                self.tokens[kind] += count
                self.call_tokens[kind].add(float(count))
        self.cached += event.cached_tokens or 0
        self.cost_usd += event.cost_usd or 0.0
        self.unpriced += event.cost_usd is None

    def _decide(self, session: str, result: TickResult, *, is_question: bool) -> None:
        decision = result.decision
        self.decisions[decision.kind] += 1
        self.refused += is_question and not decision
        active = frozenset(finding.rule for finding in decision.findings if finding.active)
        for rule in sorted(active - self._active.get(session, frozenset())):
            self.findings[bounded(self.findings, rule)] += 1
        if result.reading is not None:
            self.result = result
            self._active[session] = active
            self._active.move_to_end(session)
            if len(self._active) > MAX_SESSIONS:
                self._active.popitem(last=False)


class Totals:
    """Amounts of many agents, of those heard from last.

    Parameters
    ----------
    max_agents : int
        Agents at most, 1 to 10,000. One more replaces the agent that has been silent longest.
    """

    def __init__(self, max_agents: int = MAX_AGENTS) -> None:
        self.max_agents = check_count("max_agents", max_agents, least=1, most=10_000)
        self.forgotten = 0
        """Agents that were replaced."""
        self._agents: OrderedDict[str, AgentTotals] = OrderedDict()

    def add(self, record: AgentRecord) -> None:
        """Take in the next record of an agent."""
        name = label(record.agent)
        found = self._agents.get(name)
        if found is None:
            found = self._agents[name] = AgentTotals()
            if len(self._agents) > self.max_agents:
                self._agents.popitem(last=False)
                self.forgotten += 1
        self._agents.move_to_end(name)
        found.add(record)

    def agents(self) -> list[tuple[str, AgentTotals]]:
        """Return each agent's name, as a label, with its amounts."""
        return list(self._agents.items())


def budget_use(decision: Decision) -> dict[str, float]:
    """Return limit -> used share in [0, 1], of each limit that a decision tells; ``tree.`` is before a tree's.

    Examples
    --------
    >>> from coherence.core.config import Budget
    >>> from coherence.core.events import Spent
    >>> from coherence.policy.budgets import budget_findings
    >>> spent = Spent(calls=9)
    >>> own, tree = (budget_findings(Budget(calls=10), spent, rule=rule) for rule in ("budget", "tree_budget"))
    >>> budget_use(Decision(seq=1, kind="continue", findings=(*own, *tree)))
    {'calls': 0.9, 'tree.calls': 0.9}
    """
    budgets = [finding for finding in decision.findings if is_budget(finding.rule)]
    return {each.rule.replace("_budget", "", 1).removeprefix("budget."): each.score for each in budgets}


def bounded(known: Counter[str] | dict[str, float], name: str) -> str:
    """Return a name as a label's value: its own, or :data:`OTHER` if too many others are known already."""
    value = label(name)
    return value if value in known or len(known) < MAX_NAMES else OTHER


def label(text: str) -> str:
    """Return a text as a label's value: one line of printable characters, cut to :data:`MAX_LABEL`."""
    return one_line(text)[:MAX_LABEL]
