"""The store that commands use where none is named; apart, so that what is quick need not load stores."""

from __future__ import annotations

import os
from pathlib import Path


def default_store() -> Path:
    """Return the store that commands use where none is named."""
    from platformdirs import user_data_path

    return Path(os.environ.get("COHERENCE_STORE") or user_data_path("coherence") / "coherence.db")
