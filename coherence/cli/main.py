"""``coherence``: its commands by name. Each is loaded when it is asked for."""

from __future__ import annotations

import io
import sys
from importlib import import_module

import click

import coherence

COMMANDS = {
    "audit": "sessions:audit",
    "blame": "runs:blame_run",
    "calibrate": "runs:calibrate",
    "calibration": "sessions:calibration",
    "collect": "collect:collect",
    "compare": "runs:compare",
    "config": "config:config",
    "daemon": "daemon:daemon",
    "demo": "runs:demo",
    "doctor": "doctor:doctor",
    "eval": "runs:evaluate",
    "eval-cases": "runs:eval_cases",
    "experiments": "sessions:experiments",
    "explain": "sessions:explain",
    "export": "sessions:export",
    "guard": "guard:guard",
    "init": "init:init",
    "label": "sessions:label",
    "lessons": "lessons:lessons",
    "log": "sessions:log",
    "mcp": "mcp:mcp",
    "metrics": "runs:metrics",
    "prometheus": "prometheus:prometheus",
    "purge": "sessions:purge",
    "replay": "sessions:replay",
    "report": "report:report",
    "schema": "runs:schema",
    "score": "runs:score",
    "send-scores": "send_scores:send_scores",
    "serve": "serve:serve",
    "sessions": "sessions:sessions",
    "status": "status:status",
    "statusline": "status:statusline",
    "unblock": "status:unblock",
    "watch": "watch:watch",
}
"""Name of a command: its module in this folder and its name there."""


class LazyGroup(click.Group):
    """Group of commands that are known by name, and loaded when they are asked for."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, loaded now, ``None`` if there is none of that name."""
        if cmd_name in COMMANDS:
            module, _, name = COMMANDS[cmd_name].partition(":")
            self.add_command(getattr(import_module(f"coherence.cli.{module}"), name))
        return super().get_command(ctx, cmd_name)


@click.group(
    cls=LazyGroup,
    commands=list(map(click.Command, COMMANDS)),
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(coherence.__version__, prog_name="coherence")
def main() -> None:
    """Interoception for LLM agents: report whether an agent is still on course."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # agents write what a terminal's encoding may not have
