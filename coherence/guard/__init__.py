"""Guarding: a change of configuration is noticed when it harms, and kept when it does not.

Public names are loaded on first use, so that a module of this package costs no more than it needs.
"""

from typing import TYPE_CHECKING

from coherence.core.lazy import lazy_names

if TYPE_CHECKING:
    from coherence.guard.bounds import Bound, Bounds
    from coherence.guard.collaborators import ConfigAdapter, Notifier, Strategy
    from coherence.guard.context import current_patch
    from coherence.guard.export import export_trail
    from coherence.guard.guard import Guard
    from coherence.guard.patch_events import Notice
    from coherence.guard.runner import Out
    from coherence.guard.status import Status
    from coherence.guard.traces import Past, Trace
    from coherence.guard.trigger import Override

_HOME = {
    "Bound": "coherence.guard.bounds",
    "Bounds": "coherence.guard.bounds",
    "ConfigAdapter": "coherence.guard.collaborators",
    "Guard": "coherence.guard.guard",
    "Notice": "coherence.guard.patch_events",
    "Notifier": "coherence.guard.collaborators",
    "Out": "coherence.guard.runner",
    "Override": "coherence.guard.trigger",
    "Past": "coherence.guard.traces",
    "Status": "coherence.guard.status",
    "Strategy": "coherence.guard.collaborators",
    "Trace": "coherence.guard.traces",
    "current_patch": "coherence.guard.context",
    "export_trail": "coherence.guard.export",
}

__all__ = [
    "Bound",
    "Bounds",
    "ConfigAdapter",
    "Guard",
    "Notice",
    "Notifier",
    "Out",
    "Override",
    "Past",
    "Status",
    "Strategy",
    "Trace",
    "current_patch",
    "export_trail",
]

__getattr__, __dir__ = lazy_names(__name__, _HOME)
