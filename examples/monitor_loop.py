"""An agent's own loop, watched: ask before each call, tell what came of it, stop when it says so.

The agent is a stand-in that keeps retrying a failing command; everything else is real. Run it twice: the second run
goes on where the first one stopped, with the agent's baselines and its latest failures.
"""

from coherence import Monitor

COMMANDS = ["git status", "ls src", "cat setup.cfg", *["pytest -q"] * 20]


def run(command: str) -> tuple[str, bool]:
    """Stand in for a shell."""
    if command.startswith("pytest"):
        return "ModuleNotFoundError: No module named 'yaml'", True
    return f"output of {command}", False


with Monitor(agent="builder", goal="Make the test suite pass", store="agent.db", budget={"calls": 50}) as m:
    for command in COMMANDS:
        allowed = m.check("Bash", {"command": command})
        if allowed.kind == "block":
            print("refused:", allowed.message)
            break
        call = m.tool_call("Bash", {"command": command})
        output, failed = run(command)
        m.tool_result(output, error=failed, call=call)
        m.usage(tokens_in=1_200, tokens_out=80, cost_usd=0.005)
        decision = m.decide()
        print(f"{command:<14} {decision.kind:<9} pressure {m.pressure:.2f}")
        if decision.kind in ("warn", "block"):
            print("stopped:", decision.message)
            break
    print("spent:", m.spent.calls, "calls,", f"{m.spent.cost_usd:.3f} dollars")
