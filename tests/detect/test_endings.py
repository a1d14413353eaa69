"""Endings of calls, by the words of their results."""

from __future__ import annotations

import pytest

from coherence.detect.endings import ending_of, fails_at_once, only_tries


@pytest.mark.parametrize(
    ("text", "ending"),
    [
        ("403 API rate limit exceeded. Retry after 1840s", "failed"),
        ("timeout: device lock.front_door did not respond within 10s", "failed"),
        ("session expired, please sign in", "failed"),
        ('{"erreur": "places insuffisantes"}', "failed"),
        ("解析失败:扫描件无文字层", "failed"),
        ('{"importados": 231, "rechazados": 19}', "partly"),
        ("28 fixed, 3 failed", "partly"),
        ('{"status": "pending_approval", "note": "second signatory required"}', "pending"),
        ('{"ok": true, "estado": "guardado, sin publicar"}', "pending"),
        ("hold placed, position 5 in queue", "pending"),
        ("Plan: 2 to add, 1 to change, 0 to destroy.", "tried out"),
        ('{"sent": 12, "failed": 0}', ""),
        ("6 mails sent, 0 bounced.", ""),
        ("queued as 4Zb1; delivered 3 s later", ""),
        ("200 OK", ""),
        ("error " * 200, ""),
    ],
)
def test_ending_of(text: str, ending: str) -> None:
    assert ending_of(text) == ending


def test_fails_at_once_and_only_tries() -> None:
    assert fails_at_once("解析失败:扫描件无文字层")
    assert not fails_at_once("Chapter 3: payment within 30 days.")
    assert only_tries("bash rsync --dry-run a b")
    assert not only_tries("bash rsync a b")
