"""Guarding: a change of configuration is noticed when it harms, and kept when it does not."""

from coherence.guard.collaborators import ConfigAdapter, Notice, Notifier, Strategy
from coherence.guard.guard import Guard
from coherence.guard.runner import Out
from coherence.guard.serving import current_patch

__all__ = ["ConfigAdapter", "Guard", "Notice", "Notifier", "Out", "Strategy", "current_patch"]
