"""The work behind ``coherence guard status``, ``history``, ``patches`` and ``export``."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import click
import msgspec

from coherence.cli.documents import print_document
from coherence.cli.guard_state import state_of
from coherence.cli.guard_tables import NAME, print_agent, print_agents, print_history, print_patch, print_patches
from coherence.cli.outputs import check_outputs
from coherence.cli.target import NAMED, guard_store, opened
from coherence.core.readings import excerpt, number_of, one_line
from coherence.guard.export import export_trail
from coherence.guard.ledger import ledger, read_history
from coherence.guard.traces import guarded_agents, read_decisions
from coherence.monitor.arguments import check_name
from coherence.store.store import Store


def known_agent(store: Store, agent: str) -> str:
    """Return an agent's name as the store has it; one that is not there becomes a usage error."""
    name = check_name("agent", agent) if agent.strip() else ""
    known = guarded_agents(store)
    if name not in known:
        more = f" and {len(known) - NAMED} more" if len(known) > NAMED else ""
        named = ", ".join(excerpt(one, NAME) for one in known[:NAMED]) + more if known else "none"
        called = f"no agent under guard is called {excerpt(agent, NAME)!r}; known: {named}"
        raise click.UsageError(one_line(f"{store.path}: {called}"))
    return name


def print_status(agent: str | None, *, store: Path | None, as_json: bool) -> int:
    """Print how agents stand; return the exit status."""
    with opened(guard_store(store)) as kept:
        names = guarded_agents(kept) if agent is None else [known_agent(kept, agent)]
        if not names:
            raise click.UsageError(one_line(f"{kept.path}: no agents under guard; name another store with --store"))
        states = [state_of(kept, name, time.time()) for name in names]
    if as_json:
        print_document("coherence.guard.status/1", msgspec.to_builtins(states if agent is None else states[0]))
    elif agent is not None:
        print_agent(states[0])
    else:
        print_agents(states)
    return int(any(state.failing for state in states))


def show_history(agent: str, *, store: Path | None, limit: int, slices: bool, as_json: bool) -> None:
    """Print the newest decisions on an agent's patches, oldest first."""
    with opened(guard_store(store)) as kept:
        agent = known_agent(kept, agent)
        found = read_history(kept, agent, limit, slices=slices)
    if as_json:
        print_document("coherence.guard.history/1", msgspec.to_builtins(found))
    elif found:
        print_history(found)
    else:
        sys.stdout.write("no decisions\n")


def show_patches(agent: str, number: int | None, *, store: Path | None, as_json: bool) -> None:
    """Print an agent's patches, or one with all that is known of it."""
    with opened(guard_store(store)) as kept:
        agent = known_agent(kept, agent)
        records = ledger(read_decisions(kept, agent, -1))
        if number is not None and number > len(records):
            raise click.UsageError(one_line(f"{kept.path}: {agent!r} has no patch {number}, but {len(records)}"))
    if as_json:
        plain = msgspec.to_builtins(records if number is None else records[number - 1])
        print_document("coherence.guard.patches/1", plain)
    elif number is not None:
        print_patch(agent, records[number - 1])
    elif records:
        print_patches(records)
    else:
        sys.stdout.write("no patches\n")


def export_to(agent: str, file: Path | None, store: Path | None) -> None:
    """Write an agent's calls and decisions as JSON lines to a new file, or to standard output."""
    path = guard_store(store)
    check_outputs({"FILE": file}, [], store=path)
    with opened(path) as kept:
        agent = known_agent(kept, agent)
        if file is not None:
            try:
                count = export_trail(kept, agent, file)
            except FileExistsError as error:
                raise click.UsageError(one_line(str(error))) from error
            except (OSError, ValueError) as error:
                raise click.UsageError(one_line(f"{file}: cannot be written: {error}")) from error
            click.echo(one_line(f"{number_of(count, 'line')}: {file}"), err=True)
            return
        try:
            export_trail(kept, agent, sys.stdout.buffer)
            sys.stdout.buffer.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            raise click.UsageError(f"standard output: cannot be written: {error.strerror or error}") from error
