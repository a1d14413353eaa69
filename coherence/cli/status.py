"""Work of ``coherence status``, ``statusline`` and ``unblock``: what the daemon knows, and the end of a block."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import click

from coherence.cli.columns import aligned, cut, width
from coherence.cli.daemon import STATE
from coherence.cli.documents import print_document
from coherence.cli.options import json_option
from coherence.cli.table import shorten
from coherence.core.errors import CoherenceError
from coherence.core.readings import number_of, one_line, span

HEADS = ("agent", "light", "trend", "press", "decision", "steps", "calls", "errors")

EXTRA = {"cost_usd": ("cost", "${:.2f}"), "context_percent": ("ctx", "{:.0f}%")}
"""Field that is shown where it is known: head and form of its column."""


@click.command()
@STATE
@json_option()
def status(state: Path | None, as_json: bool) -> None:
    """Show how the agents stand that the daemon follows, sessions used last first.

    Subagents stand below the agent that started them, and the strongest reason below the agent. Exit status: 0 ok,
    also if no daemon runs, 1 the daemon does not answer.
    """
    found = _asked(state, "status")
    if as_json:
        print_document("coherence.status/1", found or {"pid": None, "build": None, "sessions": []})
    elif found is None:
        click.echo("no daemon runs; the next hook starts it")
    else:
        click.echo(f"daemon {found['pid']} follows {number_of(len(found['sessions']), 'session')}")
        for line in table_of(found["sessions"], width()):
            click.echo(line)


def table_of(sessions: list[dict[str, Any]], room: int) -> list[str]:
    """Return the lines of a table of agents.

    Parameters
    ----------
    sessions : list of dict
        From the daemon.
    room : int
        Columns of the terminal; names and reasons are cut.
    """
    if not sessions:
        return []
    trees = [_tree(session["agents"]) for session in sessions]
    agents = [agent for tree in trees for _, agent in tree]
    extra = [name for name in EXTRA if any(agent[name] is not None for agent in agents)]
    heads = (*HEADS[1:], *(EXTRA[name][0] for name in extra))
    rows = [heads, *(_cells(agent, extra) for agent in agents)]
    # numbers first: their columns say how much is left for names
    left = max(room - max(map(len, aligned(rows))) - 2, 12)
    names = [shorten(name, left) for tree in trees for name, _ in tree]
    head, *lines = aligned([(name, *row) for name, row in zip([HEADS[0], *names], rows, strict=True)])
    told, following = [head], iter(zip(lines, agents, strict=True))
    for session, tree in zip(sessions, trees, strict=True):
        told.append(cut(f"session {session['session']}, used {span(session['idle_s'])} ago", room))
        for line, agent in (next(following) for _ in tree):
            told.append(line)
            if agent["cause"]:
                told.append(f"    {cut(agent['cause'], room - 4)}")
            if agent["refusal"] is not None:
                told.append(f"    newest refusal: coherence explain {agent['refusal']}")
    return told


def _tree(agents: list[dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """Return each agent with its name below the one that started it, the main ones first."""
    known = {agent["agent"] for agent in agents}
    found: list[tuple[str, dict[str, Any]]] = []

    def add(parent: str | None, depth: int) -> None:
        for agent in agents:
            above = agent["parent"] if agent["parent"] in known else None
            if above == parent:
                name = agent["agent"] if parent is None else agent["agent"].removeprefix(f"{parent}/")
                found.append((f"{'  ' * (depth - 1)}└ {name}" if depth else name, agent))
                add(agent["agent"], depth + 1)

    add(None, 0)
    return found


def _cells(agent: dict[str, Any], extra: list[str]) -> tuple[str, ...]:
    index = agent["index"]
    cells = (
        "unknown" if index is None else f"{agent['band']} {index:.2f}",
        agent["trend"] or "–",
        f"{agent['pressure']:.2f}",
        agent["decision"],
        *(f"{agent[name]}" for name in ("steps", "calls", "errors")),
    )
    return (*cells, *("–" if agent[name] is None else EXTRA[name][1].format(agent[name]) for name in extra))


@click.command()
@STATE
@json_option("Print the figures as JSON.")
@click.option("--print-setting", is_flag=True, help="Print the setting that has Claude Code show this line.")
def statusline(state: Path | None, as_json: bool, print_setting: bool) -> None:
    """Print one line on a session, for the status line of Claude Code, whose JSON it reads from the standard input."""
    from coherence.integrations.claude_code import statusline as script
    from coherence.integrations.daemon.hook_command import state_folder

    folder = str((state or state_folder()).absolute())
    if print_setting:
        command = shlex.join([sys.executable, "-I", "-S", script.__file__, folder])
        click.echo(json.dumps({"statusLine": {"type": "command", "command": command}}, indent=2))
        return
    script.main([folder, "--json"] if as_json else [folder])


@click.command()
@STATE
@click.option("--session", metavar="S", help="Session whose block ends. Default: the one used last.")
@click.option("--agent", metavar="A", help="Only this agent. Default: those that are blocked.")
@click.argument("reason", default="")
def unblock(state: Path | None, session: str | None, agent: str | None, reason: str) -> None:
    """End a block: let the agent go on, and the call that was refused last run, with a warning.

    REASON is recorded. Exit status: 0 ok, 1 no daemon runs, or nothing is known of the session or agent.
    """
    from coherence.integrations.daemon.control import ended_in_words

    found = _asked(state, "unblock", session=session, agent=agent, reason=reason)
    if found is None:
        raise click.ClickException("no daemon runs; the next hook starts it")
    name = found["session"]
    for ended in found["agents"]:
        click.echo(one_line(f"session {name}, {ended_in_words(ended)}"))
    if not found["agents"]:
        click.echo(one_line(f"session {name}: no agent is blocked"))
    if found["refusals"]:
        click.echo(f"forgotten: {number_of(found['refusals'], 'refusal')} kept for hooks without a daemon")


def _asked(state: Path | None, do: str, **options: Any) -> dict[str, Any] | None:
    from coherence.integrations.daemon.folder import control
    from coherence.integrations.daemon.hook_command import state_folder

    try:
        return control((state or state_folder()).absolute(), do, **options)
    except CoherenceError as error:
        raise click.ClickException(one_line(str(error))) from error
