"""The commands: each is known by name, and loaded when it is asked for."""

from __future__ import annotations

import subprocess
import sys

import click
from click.testing import CliRunner

from coherence.cli.main import COMMANDS, main

CONTEXT = click.Context(main, info_name="coherence")


def loaded(name: str) -> click.Command:
    command = main.get_command(CONTEXT, name)
    assert command is not None
    return command


def test_commands_name_each_command_as_it_calls_itself() -> None:
    assert main.list_commands(CONTEXT) == sorted(COMMANDS)
    assert [loaded(name).name for name in COMMANDS] == list(COMMANDS)


def test_main_loads_only_the_module_of_the_command_that_is_called() -> None:
    code = (
        "import sys\n"
        "from coherence.cli.main import main\n"
        "main(['sessions', '--help'], standalone_mode=False)\n"
        "rooms = {name for name in sys.modules if name.startswith('coherence.cli.')}\n"
        "print(sorted(rooms), {'numpy', 'sqlite3', 'msgspec', 'rich'} & set(sys.modules), file=sys.stderr)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr
    assert told.strip() == "['coherence.cli.main', 'coherence.cli.options', 'coherence.cli.sessions'] set()"


def test_main_an_unknown_command_is_bad_usage() -> None:
    result = CliRunner().invoke(main, ["scor"])
    assert result.exit_code == 2
    assert "No such command 'scor'" in result.stderr


def test_main_alone_lists_all_commands() -> None:
    assert all(f"  {name} " in CliRunner().invoke(main).output for name in COMMANDS)
