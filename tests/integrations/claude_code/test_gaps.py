"""Gaps that hooks have left, as ``coherence doctor`` tells of them."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from coherence import Monitor
from coherence.integrations.claude_code import diagnosis
from coherence.integrations.claude_code.diagnosis import Check
from coherence.integrations.claude_code.gaps import RECENT_S, find_gaps
from coherence.integrations.host_session import ABSENT, UNTOLD
from coherence.store.store import Store


def record(store: Path, session: str, *faults: tuple[str, str], **options: Any) -> None:
    with Monitor(agent="claude-code", store=store, session=session, embedder=False, source="hook", **options) as m:
        m.message("user", "List the files.")
        for where, message in faults:
            m.fault(where, message)


def test_find_gaps_counts_those_of_hooks_and_names_the_newest(tmp_path: Path) -> None:
    path = tmp_path / "store.db"
    record(path, "s1", (ABSENT, "no daemon answered"), ("model", "overloaded"))
    record(path, "s2", (UNTOLD, "1 call was told by no hook"), (UNTOLD, "2 calls were told by no hook"))
    record(path, "s3")
    (check,) = [each for each in diagnosis.diagnose(tmp_path / "state", path) if each.name == "gaps"]
    assert check == Check(
        "gaps",
        "WARN",
        "3 in 2 sessions of the last week, by daemon and hooks; the newest: 2 calls were told by no hook",
        "coherence log claude-code/s2 --kind fault",
    )


def test_find_gaps_old_ones_and_those_of_others_are_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "store.db"
    record(path, "s1", ("record", "bad argument"))
    with Store(path) as store:
        assert find_gaps(store.fetch) == ("", "")
        record(path, "s2", (UNTOLD, "1 call was told by no hook"))
        assert find_gaps(store.fetch)[1] == "coherence log claude-code/s2 --kind fault"
        now = time.time()
        monkeypatch.setattr(time, "time", lambda: now + RECENT_S)
        assert find_gaps(store.fetch) == ("", "")
