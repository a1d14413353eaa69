"""Outcome risk: it is unknown, and a reading says why."""

from coherence import Monitor
from coherence.providers import HashingEmbedder


def test_outcome_risk_a_monitor_shows_it_as_unknown_and_says_why() -> None:
    with Monitor(embedder=HashingEmbedder(), config={"metrics": ["outcome_risk"], "tick": "manual"}) as monitor:
        monitor.message("user", "My booking is H9ZU1C and I need to change it.")
        monitor.message("assistant", "Done.")
        monitor.message("user", "Thanks")
        monitor.decide()
        assert monitor.latest is not None
        assert monitor.latest.metrics["outcome_risk"] is None
        assert "better than the number of steps" in monitor.latest.unknown["outcome_risk"]
