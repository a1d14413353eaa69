"""``coherence doctor``: whether the hooks of clients do what they should, and what mends them."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import click

from coherence.cli.options import json_option
from coherence.cli.target import refuse_windows
from coherence.core.readings import one_line

if TYPE_CHECKING:
    from coherence.integrations.claude_code.diagnosis import Check


@click.command()
@click.option("--fix", is_flag=True, help="Mend what is safe to mend first, and say what was done.")
@click.option("--delivery", is_flag=True, help="Check that what hooks say reaches the agent, by a line in a session.")
@click.option(
    "--wait", "wait_s", metavar="S", type=click.FloatRange(0.0), help="Seconds to wait for that session. Default: 0."
)
@json_option()
def doctor(fix: bool, delivery: bool, wait_s: float | None, as_json: bool) -> None:
    """Check the hooks in the clients, the daemon and the store.

    A WARN is worth a look; a FAIL keeps the hooks from their work. --fix makes the state folder private, and removes
    what a daemon that was killed has left there. With --delivery, the next session is told one harmless line with a
    random word; when the command is run again, or while it waits, it looks for that word in the session's transcript.
    Exit status: 0 ok, 1 a FAIL is left, 2 bad usage.
    """
    refuse_windows()
    if wait_s is not None and not delivery:
        raise click.UsageError("--wait is for --delivery")
    from coherence.cli.store_path import default_store
    from coherence.integrations.claude_code.diagnosis import diagnose, mend
    from coherence.integrations.codex.diagnosis import diagnose_codex
    from coherence.integrations.daemon.hook_command import state_folder
    from coherence.integrations.gemini import settings as gemini
    from coherence.integrations.installed_hooks import diagnose_hooks
    from coherence.integrations.opencode import settings as opencode

    state = state_folder()
    mended = mend(state) if fix else []
    checks = [
        *diagnose(state, default_store().absolute(), delivery_s=(wait_s or 0.0) if delivery else None),
        *diagnose_codex(state),
        *diagnose_hooks("gemini", gemini, state),
        *diagnose_hooks("opencode", opencode, state),
    ]
    if as_json:
        from coherence.cli.documents import print_document

        rows = [{"name": c.name, "status": c.status, "found": c.found, "mend": c.mend} for c in checks]
        print_document("coherence.doctor/1", {"mended": mended, "checks": rows})
    else:
        _print(mended, checks)
    raise SystemExit(int(any(check.status == "FAIL" for check in checks)))


def _print(mended: list[str], checks: list[Check]) -> None:
    from coherence.cli.columns import width

    room = width()
    for text in mended:
        click.echo("\n".join(_folded("FIXED  ", text, room)))
    names = max(len(check.name) for check in checks)
    for check in checks:
        head = f"{check.status:<5}  {check.name:<{names}}  "
        click.echo("\n".join(_folded(head, check.found, room)))
        if check.mend:  # never folded: it is copied from here
            click.echo(f"{'':<{len(head)}}> {one_line(check.mend)}")
    counts = [f"{sum(check.status == status for check in checks)} {status}" for status in ("OK", "WARN", "FAIL")]
    click.echo(f"{len(checks)} checks: {', '.join(counts)}")


def _folded(head: str, text: str, room: int) -> list[str]:
    """Return a text as lines behind a head, below itself where it does not fit; paths are kept whole if they can be."""
    return textwrap.wrap(
        one_line(text),
        max(room, len(head) + 20),
        initial_indent=head,
        subsequent_indent=" " * len(head),
        break_on_hyphens=False,
    )
