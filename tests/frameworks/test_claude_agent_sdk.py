"""The Claude Agent SDK with the client that it ships, before a stub of the API: record, guidance, refusals, budgets."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from hosts.claude_client import client_environment
from hosts.messages_stub import MessagesStub, Scripts, Step, Text, Tool, Usage, results_of, texts_of

from coherence import CoherenceBlocked, Monitor
from coherence.core import events
from coherence.fleet.fleet import Fleet
from coherence.providers import HashingEmbedder
from frameworks.agents import CASES, GOAL, Case
from frameworks.agents import told as told_of
from frameworks.model_stub import PER_CALL

pytestmark = pytest.mark.frameworks

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "frameworks"

PROMPT = f"[[script:case]] {GOAL}"
SHOP = "mcp__shop__"
"""Beginning of the names that the client gives the tools of the test's server."""
# The API counts cached tokens apart, a record counts them in.
USAGE = Usage(
    {
        "input_tokens": PER_CALL["input"] - PER_CALL["cached"],
        "cache_read_input_tokens": PER_CALL["cached"],
        "output_tokens": PER_CALL["output"],
    }
)
ADDED = "hook additional context: "
"""Words with which the client shows the model what a hook has told."""


class Played(NamedTuple):
    """A run of the real client."""

    messages: list[Any]
    bodies: list[str]
    """Tools whose body ran."""
    turns: list[dict[str, Any]]
    """Return the requests that the model was sent."""
    blocked: CoherenceBlocked | None

    @property
    def result(self) -> Any:
        """The message that ends a run."""
        return self.messages[-1]


def play(case: Case | Scripts, home: Path, hooks: Any = None, *, client: bool = False) -> Played:
    """Run a case, or scripts, by ``query()`` or by ``ClaudeSDKClient``; without ``hooks`` nobody watches."""
    import claude_agent_sdk as sdk

    bodies: list[str] = []
    calls = iter([turn for turn in case.turns if turn.tool]) if isinstance(case, Case) else iter(())

    def body(name: str) -> Any:
        @sdk.tool(name, "A tool of the shop.", {})
        async def run(_given: Any) -> dict[str, Any]:
            bodies.append(name)
            turn = next(turn for turn in calls if turn.tool == name)
            return {"content": [{"type": "text", "text": turn.result}], "is_error": turn.error}

        return run

    async def run() -> Played:
        messages: list[Any] = []
        blocked = None
        shop = sdk.create_sdk_mcp_server(
            "shop", tools=[body(n) for n in ("read_file", "edit_file", "bash", "send_email")]
        )
        options = sdk.ClaudeAgentOptions(
            cwd=home,
            env={**client_environment(stub, home), "ENABLE_TOOL_SEARCH": "false"},  # else it adds hints to errors
            mcp_servers={"shop": shop},
            allowed_tools=["Bash", "Agent", "mcp__shop"],
        )
        if hooks is not None:
            options = hooks.options(options)

        async def asked() -> AsyncIterator[Any]:
            if not client:
                async for message in sdk.query(prompt=PROMPT, options=options):
                    yield message
                return
            async with sdk.ClaudeSDKClient(options) as session:
                await session.query(PROMPT)
                async for message in session.receive_response():
                    yield message

        try:
            async for message in hooks.messages(asked()) if hooks is not None else asked():
                messages.append(message)
        except CoherenceBlocked as error:
            blocked = error
        return Played(messages, bodies, stub.turns, blocked)

    with MessagesStub({"case": steps(case)} if isinstance(case, Case) else case) as stub:
        return asyncio.run(run())


def steps(case: Case) -> Sequence[Step]:
    """Return a case as the model's side has it."""
    return [
        (Text(turn.says), *((Tool(SHOP + turn.tool, turn.arguments),) if turn.tool else ()), USAGE)
        for turn in case.turns
    ]


def by_hand(case: Case, fleet: Fleet, result: Any) -> Monitor:
    """Tell a monitor the run, and measure where a session of the client does."""
    model = next(iter(result.model_usage))
    m = fleet.agent("shop", goal=GOAL, source="hook")
    m.message("user", PROMPT)
    m.tick()
    for at, turn in enumerate(case.turns):
        if case.budget is not None and not m.decide():
            break
        m.message("assistant", turn.says, model=model)
        allowed = bool(m.check(SHOP + turn.tool, turn.arguments)) if turn.tool else True
        if turn.tool and allowed:
            m.tool_call(SHOP + turn.tool, turn.arguments, call=f"c{at}")
        m.usage(
            tokens_in=PER_CALL["input"], tokens_out=PER_CALL["output"], tokens_cached=PER_CALL["cached"], model=model
        )
        m.tick()
        if turn.tool and allowed:
            named = SHOP + turn.tool if turn.error else None  # only the hook about a failure tells the tool
            m.tool_result(turn.result, error=turn.error, call=f"c{at}", tool=named)
            m.tick()
    m.usage(cost_usd=result.total_cost_usd)
    return m


def told(monitor: Monitor) -> Any:
    """Return events, the decision and the light; how long a tool took is the client's to tell."""
    seen, _, light = told_of(monitor, [])
    for event in seen:
        event.pop("coherence.duration_s", None)  # type: ignore[attr-defined]
    decision = monitor.decide()
    return seen, [(found.rule, found.score) for found in decision.findings], light


def hooks_of(**options: Any) -> Any:
    from coherence.frameworks.claude_agent_sdk import CoherenceHooks

    return CoherenceHooks(**options)


def fleet_of(case: Case) -> Fleet:
    return Fleet(embedder=HashingEmbedder(), config={"tick": "manual", **case.config}, budget=case.budget)


@pytest.mark.parametrize("client", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_hooks_record_what_a_monitor_is_told_by_hand(tmp_path: Path, name: str, client: bool) -> None:
    case = CASES[name]
    with fleet_of(case) as fleet, fleet_of(case) as hand:
        played = play(case, tmp_path, hooks_of(agent="shop", goal=GOAL, fleet=fleet), client=client)
        assert (played.blocked is not None) == (name == "over budget")
        assert [monitor.agent for monitor in fleet] == ["shop"]
        assert told(fleet.agent("shop")) == told(by_hand(case, hand, played.result))


def loop() -> Scripts:
    fails: Step = [Tool("Bash", {"command": "python3 missing.py"})]
    return {"case": [*[fails] * 4, [Text("It does not work.")]]}


@pytest.mark.parametrize("guide", [False, True])
def test_guide_puts_the_hint_into_the_next_request(tmp_path: Path, guide: bool) -> None:
    with hooks_of(guide=guide) as hooks:
        played = play(loop(), tmp_path, hooks)
        said = [text for text in texts_of(played.turns[-1]) if ADDED in text]
        firings = [record.event.firing for record in hooks.monitor.events() if isinstance(record.event, events.Message)]
    assert any("Bash returned the same error 2 times" in text for text in said) == guide
    assert any(firings) == guide  # guidance counts as given once the transcript shows it


def test_options_without_guide_ask_the_model_what_it_is_asked_without_them(tmp_path: Path) -> None:
    with hooks_of() as hooks:
        watched = play(CASES["good"], tmp_path, hooks).turns
    alone = play(CASES["good"], tmp_path).turns
    assert len(watched) == 12
    assert [texts_of(turn) for turn in watched] == [texts_of(turn) for turn in alone]


@pytest.mark.parametrize("watched", [False, True])
def test_hooks_refuse_a_call_whose_tool_does_not_run(tmp_path: Path, watched: bool) -> None:
    case = CASES["injected"]
    with fleet_of(case) as fleet:
        hooks = hooks_of(agent="shop", goal=GOAL, fleet=fleet) if watched else None
        played = play(case, tmp_path, hooks)
    assert ("send_email" in played.bodies) == (not watched)
    reason = str(results_of(played.turns[-1])[-1])
    assert ("coherence refused this call" in reason) == watched
    assert played.result.result == "Done."  # the agent goes on


def test_messages_raise_for_a_used_up_budget_after_the_last_message(tmp_path: Path) -> None:
    with hooks_of(budget={"calls": 3}) as hooks:
        played = play(loop(), tmp_path, hooks)
        cost = hooks.monitor.state.spent.cost_usd
    assert played.blocked is not None
    assert "3 of 3 calls are used" in str(played.blocked)
    assert type(played.result).__name__ == "ResultMessage"
    assert len(played.turns) == 3  # of the 5 requests of the script
    assert cost == played.result.total_cost_usd > 0


def test_hooks_watch_a_subagent_whose_pressure_reaches_its_parent(tmp_path: Path) -> None:
    asked = {"description": "count", "prompt": "[[script:child]] count", "subagent_type": "general-purpose"}
    scripts: Scripts = {
        "case": [[Tool("Agent", {**asked, "run_in_background": False})], [Text("There are 7.")]],
        "child": [[Text("I count."), Tool("Bash", {"command": "ls | wc -l"})], [Text("There are 7 files.")]],
    }
    with hooks_of(goal=GOAL) as hooks:
        play(scripts, tmp_path, hooks)
        main, child = hooks.agents.fleet
        (edge,) = hooks.agents.fleet.trust.edges()
    assert (edge.source, edge.target) == (child.agent, main.agent)
    assert child.agent.startswith("claude-code/general-purpose-")
    said = [record.event.content for record in child.events() if isinstance(record.event, events.Message)]
    assert "I count." in said
    assert child.counters.calls == 1


def test_hooks_that_fail_leave_the_run_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from coherence.integrations.claude_code.session import ClaudeCodeSession

    def fails(*_: object, **__: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(ClaudeCodeSession, "handle", fails)
    with hooks_of() as hooks:
        played = play(CASES["good"], tmp_path, hooks)
        faults = [record.event for record in hooks.monitor.events() if type(record.event) is events.Fault]
    assert played.result.result == CASES["good"].turns[-1].says
    assert len(played.bodies) == 11  # each turn but the last has a call
    assert "broken" in str(faults[0])


def test_options_leave_the_given_ones_as_they_are() -> None:
    from claude_agent_sdk import ClaudeAgentOptions, HookMatcher

    mine = HookMatcher(matcher="Bash")
    given = ClaudeAgentOptions(hooks={"PreToolUse": [mine]})
    with hooks_of() as hooks:
        options = hooks.options(given)
    assert options.hooks["PreToolUse"][0] is mine
    assert len(options.hooks["PreToolUse"]) == 2
    assert given.hooks == {"PreToolUse": [mine]}


def test_hooks_need_a_fleet() -> None:
    with Monitor(embedder=False) as monitor, pytest.raises(ValueError, match="pass fleet= for a fleet"):
        hooks_of(monitor=monitor)


def test_agents_import_no_framework() -> None:
    seen = "import sys, coherence.frameworks.agents; print('claude_agent_sdk' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", seen], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_claude_agent_sdk_example_runs(tmp_path: Path) -> None:
    scripts: Scripts = {"case": [[Tool("Bash", {"command": "find . -delete"})], [Text("I leave it as it is.")]]}
    with MessagesStub(scripts) as stub:
        env = {**client_environment(stub, tmp_path), "PYTHONPATH": str(EXAMPLES.parents[1])}
        command = [sys.executable, str(EXAMPLES / "claude_agent.py"), PROMPT]
        done = subprocess.run(command, env=env, cwd=tmp_path, capture_output=True, text=True)
        reason = str(results_of(stub.turns[-1])[-1])
    assert done.returncode == 0, done.stderr
    assert "result: I leave it as it is." in done.stdout
    assert "coherence refused this call" in reason


@pytest.mark.parametrize("stored", [False, True])
def test_hooks_go_on_with_the_same_monitor_in_the_next_query(tmp_path: Path, stored: bool) -> None:
    store = tmp_path / "runs.db" if stored else None
    with hooks_of(goal=GOAL, store=store) as hooks:
        costs = [play(loop(), tmp_path, hooks).result.total_cost_usd for _ in range(2)]
        seen = [record.event for record in hooks.monitor.events(500)]
        spent = hooks.monitor.state.spent.cost_usd
    prompts = [each.content for each in seen if isinstance(each, events.Message) and each.role == "user"]
    assert prompts == [PROMPT, PROMPT]
    calls = [each.call_id for each in seen if isinstance(each, events.ToolCall)]
    assert len(calls) == len(set(calls)) == 8  # four a query
    assert len([each for each in seen if isinstance(each, events.ToolResult)]) == 8
    assert spent == pytest.approx(sum(costs))
