"""Clients whose hooks the daemon answers."""

from __future__ import annotations

from coherence.integrations.claude_code.session import ClaudeCodeSession
from coherence.integrations.codex.session import CodexSession
from coherence.integrations.gemini.session import GeminiSession
from coherence.integrations.host_session import HostSession
from coherence.integrations.opencode.session import OpenCodeSession

HOSTS: dict[str, type[HostSession]] = {
    each.HOST: each for each in (ClaudeCodeSession, CodexSession, GeminiSession, OpenCodeSession)
}
"""Name of a client -> how a session of it is followed."""
