"""The table that is used unless a user gives another."""

from __future__ import annotations

from coherence.policy.danger.danger import Danger
from coherence.policy.danger.table_enforced import ENFORCED
from coherence.policy.danger.table_files import FILES
from coherence.policy.danger.table_git import GIT
from coherence.policy.danger.table_services import SERVICES
from coherence.policy.danger.table_system import SYSTEM
from coherence.policy.danger.table_tools import TOOLS

DEFAULT: tuple[Danger, ...] = (*FILES, *GIT, *SERVICES, *SYSTEM, *TOOLS, *ENFORCED)
"""Every row, in the order in which they are asked; drop one by its ``name``, add your own at either end.

Rows that are ``enforced`` refuse a call by themselves, unless somebody asks for exactly that."""
