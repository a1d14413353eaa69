"""Watch an agent of your own: two decorators on its tools and its model, one on the agent."""

from __future__ import annotations

import coherence

SCRIPT = iter(["I look for the notes.", "I tidy up.", "Done."])


@coherence.trace(kind="model")
def ask(messages: list[dict[str, str]]) -> str:
    """Stand in for a request to a model."""
    return next(SCRIPT)


@coherence.trace(kind="tool")
def bash(command: str) -> str:
    """Stand in for a shell."""
    return f"ran {command}"


@coherence.trace(agent="tidy", config={"tick": "manual"})
def tidy(task: str) -> None:
    """Work on a task with one harmless command and one that nobody asked for."""
    messages = [{"role": "user", "content": task}]
    for command in ("ls notes", "rm -rf /"):
        messages.append({"role": "assistant", "content": ask(messages)})
        try:
            messages.append({"role": "user", "content": bash(command)})
        except coherence.CoherenceBlocked as refused:
            print("refused:", refused)
    ask(messages)
    monitor = coherence.current_monitor()
    assert monitor is not None
    print(monitor.decide())


if __name__ == "__main__":
    tidy("List my notes.")
