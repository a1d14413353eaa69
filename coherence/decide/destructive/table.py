"""The table that is used unless a user gives another."""

from __future__ import annotations

from coherence.decide.destructive.danger import Danger
from coherence.decide.destructive.table_files import FILES
from coherence.decide.destructive.table_git import GIT
from coherence.decide.destructive.table_services import SERVICES
from coherence.decide.destructive.table_system import SYSTEM
from coherence.decide.destructive.table_tools import TOOLS

DEFAULT: tuple[Danger, ...] = (*FILES, *GIT, *SERVICES, *SYSTEM, *TOOLS)
"""Every row, in the order in which they are asked; drop one by its ``name``, add your own at either end."""
