"""Settings of the sessions that the daemon follows."""

from __future__ import annotations

import logging
from pathlib import Path

from coherence.core.config import MonitorConfig
from coherence.core.settings import load_for_hooks, project_file, user_file

LOGGER = logging.getLogger(__name__)


def usable_config(folder: Path | None) -> MonitorConfig:
    """Return the settings of a session: a session goes on in any case.

    Parameters
    ----------
    folder : Path or None
        Folder in which the agent works. If its project's file cannot be used, only the user's own counts; if that
        cannot be used either, the default settings do.
    """
    project = project_file(folder) if folder is not None else None
    for each in dict.fromkeys((project, None)):
        try:
            return load_for_hooks(user_file(), each)
        except ValueError as error:
            LOGGER.error("settings are left out: %s", error)
    return MonitorConfig()
