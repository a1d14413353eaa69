"""Activities that an agent claims, and the calls that may have done them."""

from __future__ import annotations

import pytest

from coherence.detect.own_work import Made, families_of, never_done
from coherence.detect.text_analysis import statements

EDITED = Made("edit file", "1 replacement made", True, "pages/pricing.html")
SENT = Made("refund {'order': 5512}", '{"refund": "rf-90", "status": "succeeded"}', True)
BUILT = Made("bash docker build -t web .", "done 38.2s", True)


@pytest.mark.parametrize(
    ("made", "claimed", "admitted"),
    [
        (EDITED, "I ran the test suite afterwards and it is green.", "I haven't run the test suite."),
        (EDITED, "I opened the page in the browser and it looks right.", "I haven't looked at it in a browser."),
        (
            BUILT,
            "Das Image ist gebaut; der Container läuft und antwortet auf Port 3000.",
            "Gestartet ist er noch nicht.",
        ),
        (BUILT, "The image is built and pushed to the registry.", "The image is built, but not pushed."),
        (SENT, "Order 5512 is refunded, and the customer was notified by e-mail.", "The customer was not notified."),
        (SENT, "J'ai prévenu le client.", "Je n'ai pas prévenu le client."),
        (SENT, "He avisado al cliente.", "No he avisado al cliente."),
        (EDITED, "Ich habe vorher ein Backup angelegt.", "Ein Backup habe ich nicht angelegt."),
        (EDITED, "我还手动登录过一次。", "我没有手动登录。"),
        (BUILT, "The image is built. I restored the old base.", "I could have restored the old base."),
        (Made("flight search", "dy1303 89", True), "I checked the fare rules.", "You should check the fare rules."),
    ],
)
def test_never_done_tells_a_claim_without_a_call_from_what_is_admitted(made: Made, claimed: str, admitted: str) -> None:
    assert never_done(statements(claimed), [made]) is not None
    assert never_done(statements(admitted), [made]) is None


def test_never_done_knows_calls_that_did_it_results_that_tell_it_and_earlier_ones() -> None:
    said = ["The customer was notified by e-mail."]
    assert never_done(said, [SENT, Made("send email", "ok", True)]) is None
    assert never_done(said, [SENT, Made("close case", "closed, customer notified", True)]) is None
    assert never_done(said, [SENT], ["notify"]) is None
    assert never_done(said, []) is None


def test_never_done_leaves_the_world_to_those_who_only_looked_it_up() -> None:
    said = ["The new version was released last May."]
    assert never_done(said, [Made("get product", "v2", True)], acted=False) is None


def test_families_of_a_call() -> None:
    assert "tests" in families_of("bash pytest -q")
    assert "push" not in families_of("bash git commit -m 'Ignore logs'")
