"""What is kept of an exception."""

from __future__ import annotations

from coherence.guard.troubles import describe


def test_of_a_long_exception_it_is_said_once_how_much_is_left_out() -> None:
    kept = describe(ValueError("x" * 10_000))
    assert kept.startswith("ValueError: xxx") and kept.count("left out") == 1
    assert "8,012 of 10,012 characters left out" in kept, "12 for the name; 1,000 stay at each end"
