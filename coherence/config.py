"""Settings that come from outside the code."""

from __future__ import annotations

import os


def disabled() -> bool:
    """Tell whether ``COHERENCE_DISABLED`` switches the package off (any value but empty, 0, false, no, off)."""
    return os.environ.get("COHERENCE_DISABLED", "").strip().lower() not in ("", "0", "false", "no", "off")
