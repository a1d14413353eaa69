"""Settings of the sessions that the daemon follows, from a file of the user."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from coherence.core.config import MonitorConfig

LOGGER = logging.getLogger(__name__)


def config_path() -> Path:
    """Return the file of the settings, which may be missing.

    It is what ``COHERENCE_CONFIG`` names, else ``config.toml`` in the system's place for settings.
    """
    from platformdirs import user_config_path

    return Path(os.environ.get("COHERENCE_CONFIG") or user_config_path("coherence") / "config.toml").absolute()


def read_config(path: Path) -> MonitorConfig:
    """Return the settings of a file, the default ones if it is missing.

    Raises
    ------
    ValueError, TypeError
        As :meth:`coherence.core.config.MonitorConfig.load`; the message names the file and the key.
    """
    return MonitorConfig.load(path if path.exists() else None)


def usable_config(path: Path) -> MonitorConfig:
    """Return the settings of a file, the default ones if it cannot be read: a session goes on in any case."""
    try:
        return read_config(path)
    except (TypeError, ValueError) as error:
        LOGGER.error("the default settings are used: %s", error)
        return MonitorConfig()
