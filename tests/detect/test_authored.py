"""Acts that a clause tells of its author."""

import pytest

from coherence.detect.authored import acts_of, tokens_of


@pytest.mark.parametrize(
    ("clause", "spoken", "things"),
    [
        ("I've renewed the pass and, finally, sold the old bike", "en", [("pass",), ("old", "bike")]),
        ("You could renew the pass", "en", []),
        ("I did not renew the pass", "en", []),
        ("Put a layer of soil into the pot", "en", []),  # an instruction
        ("J'ai aussi commandé un bouquet", "fr", [("bouquet",)]),
        ("Außerdem habe ich den Zaun gestrichen", "de", [("zaun",)]),
    ],
)
def test_acts_of(clause: str, spoken: str, things: list[tuple[str, ...]]) -> None:
    assert [thing for act in acts_of(tokens_of(clause), spoken=spoken) for thing in act.things] == things
