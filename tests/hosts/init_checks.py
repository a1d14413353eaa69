"""What ``coherence init`` is to achieve in every client, whichever way its hooks take.

Each check is given a home in which nothing is put in yet, and a function that runs the client on a prompt. The scripts
of its stub have the names ``delete``: a listing, a deletion, "Done."; and ``loop``: equal calls that fail.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from hosts.hooked_home import HookedHome
from hosts.npm_client import Done

Ask: TypeAlias = Callable[[str], Done]

DELETE = "[[script:delete]] Tell me what is in this folder."
LOOP = "[[script:loop]] Run missing.py."


def check_deletion(home: HookedHome, ask: Ask, *, hooked: bool) -> None:
    """Check that what nobody asked to delete stays with hooks, and goes without."""
    victim = home.project / "victim"
    victim.mkdir()
    if hooked:
        home.init()
        home.start_daemon()
    assert ask(DELETE).returncode == 0
    assert victim.exists() == hooked
    if hooked:
        kinds = home.kinds()[home.host]
        assert kinds.count("tool_call") == kinds.count("tool_result") == 1  # ls
        assert [said.content for said in home.messages()] == [DELETE, "I look.", "Done."]


def check_first_session(home: HookedHome, ask: Ask, *, calls: int) -> None:
    """Check that a session is recorded whose hooks have started the daemon."""
    home.init()
    assert ask(LOOP).returncode == 0
    home.wait_for_daemon()
    kinds = home.kinds()[home.host]
    assert kinds.count("tool_call") == kinds.count("tool_result") == calls


def check_gone_package(home: HookedHome, ask: Ask, path: Path) -> None:
    """Check that hooks whose Python is gone stop no work; ``path`` is the file that they are in."""
    home.init()
    path.write_text(path.read_text().replace(sys.executable, "/gone/python"))
    done = ask(DELETE)
    assert done.returncode == 0
    assert done.stdout.strip().endswith("Done.")
    assert not (home.project / "notes.txt").exists()  # the script's deletion was made


def check_removal(home: HookedHome, ask: Ask) -> None:
    """Check that hooks which are taken out leave the home as it was, and nothing that runs."""
    before = home.files()
    home.init()
    assert home.files() != before
    home.init("--remove")
    assert home.files() == before
    assert ask(LOOP).returncode == 0
    assert not home.state.exists()
