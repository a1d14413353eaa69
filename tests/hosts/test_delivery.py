"""The real client shows in its transcript what hooks say, and ``coherence doctor --delivery`` finds it there."""

from __future__ import annotations

import json
import subprocess

import pytest

from coherence.integrations.daemon.canary import plant
from hosts.hooked_claude import HookedClaude, told
from hosts.messages_stub import MessagesStub, Scripts, Text, Tool

pytestmark = pytest.mark.hosts

SCRIPTS: Scripts = {
    "greet": [[Text("Hello.")]],
    "look": [[Tool("Bash", {"command": "ls"})], [Text("There are notes.")]],
}


def delivery(host: HookedClaude) -> tuple[str, str]:
    """Return the status of the check, and what it found; other checks may fail here."""
    try:
        printed = host.coherence("doctor", "--delivery", "--json")
    except subprocess.CalledProcessError as error:
        printed = error.stdout
    (check,) = [check for check in json.loads(printed)["checks"] if check["name"] == "delivery"]
    return check["status"], check["found"]


def test_doctor_delivery_is_seen_in_the_transcript_of_the_next_session(host: HookedClaude) -> None:
    host.coherence("init", "--yes")
    host.wait_for_daemon()
    assert delivery(host)[0] == "WARN"
    with MessagesStub(SCRIPTS) as stub:
        assert host.run("[[script:greet]] Hello", stub).returncode == 0
        assert "coherence checks whether its hooks are heard" in told(stub)
    status, found = delivery(host)
    assert status == "OK" and found.startswith("delivered in session "), found


def test_doctor_delivery_is_seen_after_a_step(host: HookedClaude) -> None:
    host.coherence("init", "--yes")
    host.wait_for_daemon()
    plant(host.state)
    settings = host.home / ".claude" / "settings.json"
    hooks = json.loads(settings.read_text())
    del hooks["hooks"]["SessionStart"]
    settings.write_text(json.dumps(hooks))
    with MessagesStub(SCRIPTS) as stub:
        assert host.run("[[script:look]] Look", stub).returncode == 0
    status, found = delivery(host)
    assert status == "OK" and found.startswith("delivered in session "), found
