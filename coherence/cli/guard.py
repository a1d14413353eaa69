"""``coherence guard``: the status of guarded agents, the decisions on their patches, and acting by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

_STORE = click.option(
    "--store",
    type=click.Path(dir_okay=False, path_type=Path),
    help="The store's file. Default: $COHERENCE_STORE, else guard.db here, else the user's data folder.",
)
_JSON = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
_AGENT = click.argument("agent")
_WAIT = click.option(
    "--wait",
    "wait_s",
    metavar="SECONDS",
    type=click.FloatRange(0, 86_400),
    default=10.0,
    show_default=True,
    help="How long to wait for the process that has the adapter.",
)


def _why(default: str) -> Callable[[F], F]:
    return click.option("--why", metavar="TEXT", default=default, show_default=True, help="Why, as it is recorded.")


def _options(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Give a command these arguments and options, in this order."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


@click.group()
def guard() -> None:
    """Show the status of guarded agents and their patches, and act on patches by hand.

    Exit status: 0 ok, 1 something is wrong with an agent or was not done yet, 2 bad usage or an unusable file.
    """


@guard.command()
@click.argument("agent", required=False)
@_options(_STORE, _JSON)
def status(agent: str | None, **options: Any) -> None:
    """Show the status of all agents, or everything about one.

    Exit status: 0 ok, 1 a configuration could not be restored, or the one in force got worse in the last 24 hours,
    2 bad usage.
    """
    from coherence.cli.guard_views import print_status

    raise SystemExit(print_status(agent, **options))


@guard.command()
@_options(_AGENT, _STORE)
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True, help="Newest decisions.")
@click.option("--slices", is_flag=True, help="Show each slice of calls that a patch on trial serves, too.")
@_JSON
def history(agent: str, **options: Any) -> None:
    """Print the decisions on an agent's patches.

    One per line, oldest first, with its number in the trail and its local time.
    """
    from coherence.cli.guard_views import show_history

    show_history(agent, **options)


@guard.command()
@_AGENT
@click.argument("number", required=False, type=click.IntRange(1, 2**53))
@_options(_STORE, _JSON)
def patches(agent: str, number: int | None, **options: Any) -> None:
    """List an agent's patches, or show one.

    The table says what became of each and why; NUMBER shows everything about one.
    """
    from coherence.cli.guard_views import show_patches

    show_patches(agent, number, **options)


@guard.command("export")
@_AGENT
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@_STORE
def export_command(agent: str, file: Path | None, store: Path | None) -> None:
    """Write an agent's trail as JSON lines.

    Calls and decisions in their order, to a new FILE or to standard output.
    """
    from coherence.cli.guard_views import export_to

    export_to(agent, file, store)


@guard.command()
@_options(_AGENT, _STORE, _why("a person asked"), _WAIT)
@click.option(
    "--adapter",
    metavar="MODULE:NAME",
    help="Restore here, by this adapter: an object, or what is called without arguments to get one.",
)
@click.option("--yes", is_flag=True, help="Do not ask.")
def rollback(agent: str, **options: Any) -> None:
    """Roll back a patch, on trial or confirmed.

    The configuration before it is restored. Without --adapter, a process that has the adapter is asked to. Exit
    status: 0 it is restored, 1 not yet, 2 bad usage or nothing to roll back.
    """
    from coherence.cli.guard_requests import roll_back

    raise SystemExit(roll_back(agent, **options))


@guard.command()
@_options(_AGENT, _STORE, _why("a person approved"), _WAIT)
def approve(agent: str, **options: Any) -> None:
    """Put the waiting patch on trial.

    A process that has the adapter applies it. Exit status: 0 it is on trial, 1 not yet or not applied, 2 bad usage or
    nothing waits.
    """
    from coherence.cli.guard_requests import approve_patch

    raise SystemExit(approve_patch(agent, **options))


@guard.command()
@_AGENT
@click.argument("patch")
@_options(_STORE, _why("a person proposed it"), _WAIT)
def propose(agent: str, patch: str, **options: Any) -> None:
    """Put a patch of your own on trial.

    PATCH is a JSON object, or @ and the name of a file with one. A process that has the adapter applies it if its
    bounds allow it. Exit status: 0 it is on trial, 1 not yet, not applied, or another one is on trial, 2 bad usage.
    """
    from coherence.cli.guard_requests import propose_patch

    raise SystemExit(propose_patch(agent, patch, **options))


@guard.command()
@_options(_AGENT, _STORE, _why("a person declined"))
def decline(agent: str, **options: Any) -> None:
    """Decline the waiting patch.

    Exit status: 0 it is declined, 2 bad usage or nothing waits.
    """
    from coherence.cli.guard_requests import decline_patch

    raise SystemExit(decline_patch(agent, **options))


@guard.command()
@click.argument("agent", required=False)
@_options(_STORE, _JSON)
def verify(agent: str | None, **options: Any) -> None:
    """Check that nothing was changed, and derive each rollback again from the calls before it.

    Exit status: 0 the store is as it was written and each rollback was derived or made by hand, 1 something is wrong
    or cannot be known, 2 bad usage or an unusable file.
    """
    from coherence.cli.guard_views import print_verdict

    raise SystemExit(print_verdict(agent, **options))
