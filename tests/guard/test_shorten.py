"""Long texts: nothing of a secret stays at a cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.guard.safe_json import MAX_TEXT, SHORT, tagged
from coherence.guard.shorten import begun, shortened

TOKEN = "sk-ant-api03-" + "Ab3dE5fG7h" * 9
PEM = "\n".join(
    ["-----BEGIN RSA " + "PRIVATE KEY-----", *["Ab3dE5fG7hIj9Kl1" * 4] * 50, "-----END RSA " + "PRIVATE KEY-----"]
)


def pieces(secret: str) -> list[str]:
    """Return all parts of 12 characters that only the secret has."""
    return [secret[at : at + 12] for at in range(0, len(secret) - 12, 4)]


@pytest.mark.parametrize("secret", [TOKEN, PEM, f"password={'hunter22' * 8}"], ids=["token", "pem", "password"])
@pytest.mark.parametrize("most", [200, 2_000, MAX_TEXT])
def test_shortened_no_half_of_a_secret_stays_wherever_the_cut_falls(secret: str, most: int) -> None:
    value = secret.removeprefix("password=")
    for share in range(11):
        at = most // 2 - len(secret) * share // 10
        text = "a b " * 5_000 + "\n" + secret + "\n" + "c d " * 5_000
        for cut in (text[20_001 - max(at, 0) :], text[: 20_001 + len(secret) + max(at, 0)]):
            found = shortened(cut, most)
            assert not any(piece in found for piece in pieces(value))


@given(st.integers(0, 400), st.integers(2, 3_000))
def test_begun_what_moves_up_from_a_cut_shows_no_secret_either(count: int, most: int) -> None:
    text = f"{TOKEN} " * count
    for found in (shortened(text, max(most, 2)), begun(text, most)):
        if len(text) > most:
            assert "Ab3dE5fG7h" not in found


@given(st.text(max_size=300), st.integers(2, 100))
def test_shortened_short_texts_stay_and_long_ones_keep_both_ends(text: str, most: int) -> None:
    found = shortened(text, most)
    found.encode()
    if len(text) <= most:
        assert found == text
    else:
        assert f"{len(text):,} characters left out" in found


def test_shorten_keys_and_names_are_cut_without_halves_too() -> None:
    for before in range(0, SHORT, 7):
        assert "Ab3dE5fG7hAb" not in next(iter(tagged({"k" * before + " " + TOKEN + "k" * SHORT: 1})))


def test_shortened_the_work_is_bounded() -> None:
    assert len(shortened("a" * 100_000_000, 2_000)) < 2_100
    assert len(shortened("\x00\ud800" * 1_000_000, 2_000)) < 2_100
