"""The real Codex CLI, run headless against a stub of its API, away from this machine's own settings."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from hosts import npm_client
from hosts.npm_client import Done
from hosts.responses_stub import ResponsesStub

VERSION = "0.169.0"
PACKAGE = "@openai/codex"

WITHOUT_TRUST = "--dangerously-bypass-hook-trust"
"""Option by which it runs hooks that nobody has trusted."""


def installed(version: str = VERSION) -> Path:
    """Return the client, installed by npm on first use.

    Raises
    ------
    UnavailableError
        It cannot be had here.
    """
    return npm_client.installed(PACKAGE, version, "codex")


def run_codex(
    prompt: str,
    *,
    stub: ResponsesStub,
    folder: Path,
    env: Mapping[str, str],
    extra: Sequence[str] = (WITHOUT_TRUST,),
    version: str = VERSION,
) -> Done:
    """Run the client on one prompt, to its end.

    Parameters
    ----------
    prompt
        What the person asks; a marker in it picks the stub's script.
    folder
        The project that the client works in; it may edit and run everything there.
    env
        All that the client's environment has; HOME keeps its settings and sessions.
    extra
        More arguments for the client.
    """
    command = [str(installed(version)), "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"]
    provider = {"name": "stub", "base_url": stub.url, "wire_api": "responses", "env_key": "STUB_KEY"}
    for name, value in provider.items():
        command += ["-c", f"model_providers.stub.{name}={json.dumps(value)}"]
    command += ["-c", 'model_provider="stub"', "-m", "gpt-5-codex", *extra, prompt]
    return npm_client.run_client(command, folder=folder, env={**env, "STUB_KEY": "none"})
