"""Secrets of 211 made-up kinds are found in the forms in which they are met, and 200 look-alikes are left alone."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from growth import check_growth

from coherence.core.events import Message, ToolResult
from coherence.core.redact import Redactor, redact
from coherence.core.secret_shapes import end_of_rest, head_of, kinds, open_at_end
from core.secrets_corpus import FORMS, NAMES, Secret, is_left, look_alikes, secrets, split

LEAST_FOUND = 0.97
GITLAB, BODY = "glpat-", "a1B2c3D4e5F6g7H8i9J0"
TOKEN = GITLAB + BODY


def missed(form: str, rounds: int) -> tuple[list[str], int]:
    chance = random.Random(form)
    every = [(secret, FORMS[form](secret.text, chance)) for secret in secrets(1, rounds)]
    return sorted(secret.name for secret, text in every if is_left(secret, redact(text))), len(every)


def missed_when_split(rounds: int) -> tuple[list[str], int]:
    chance = random.Random(5)
    names, count = [], 0
    for secret in secrets(1, rounds):
        redactor, shown = Redactor(hide_secrets=True), ""
        for part in split(secret.text, chance):
            event = redactor.prepare(Message("assistant", part))
            assert isinstance(event, Message)
            shown += event.content
        count += 1
        if is_left(secret, shown):
            names.append(secret.name)
    return names, count


def test_corpus_holds_150_kinds_and_each_body_can_be_seen() -> None:
    assert len(set(NAMES)) == len(NAMES) >= 150
    for form, make in FORMS.items():
        for secret in secrets(2):
            assert is_left(secret, make(secret.text, random.Random(1))), (form, secret.name)


@pytest.mark.parametrize("form", FORMS)
def test_find_shapes_of_all_kinds_97_of_100_are_found_in_each_form(form: str) -> None:
    names, count = missed(form, rounds=1)
    assert len(names) <= (1 - LEAST_FOUND) * count, names


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_find_shapes_of_many_secrets_97_of_100_are_found_in_each_form(form: str) -> None:
    names, count = missed(form, rounds=20)
    assert len(names) <= (1 - LEAST_FOUND) * count, names


@pytest.mark.parametrize("rounds", [1, pytest.param(20, marks=pytest.mark.slow)])
def test_redactor_of_secrets_that_two_texts_share_97_of_100_are_found(rounds: int) -> None:
    names, count = missed_when_split(rounds)
    assert len(names) <= (1 - LEAST_FOUND) * count, names


@pytest.mark.parametrize("seed", range(3))
def test_find_shapes_of_200_look_alikes_at_most_2_of_100_are_changed(seed: int) -> None:
    texts = look_alikes(seed)
    assert len(texts) == 200
    changed = [text for text in texts if redact(text) is not text]
    assert len(changed) <= 0.02 * len(texts), changed


def test_kinds_are_those_of_150_vendors_and_more_and_none_is_named_twice() -> None:
    assert len(kinds()) >= 150
    assert all(re.fullmatch(r"[a-z0-9-]+", kind) for kind in kinds())


def test_kinds_and_their_prefixes_are_those_of_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs/reference/secrets.md").read_text("utf-8")
    rows = re.findall(r"^\| `([a-z0-9-]+)` \| (.+) \|$", page, re.MULTILINE)
    assert {kind: tuple(re.findall("`(.+?)`", prefixes)) for kind, prefixes in rows} == {
        kind: tuple(dict.fromkeys(prefixes)) for kind, prefixes in kinds().items()
    }
    assert f"[{len(rows)} kinds]" in (Path(__file__).parents[2] / "docs/how-to/data.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"\x1b[32m{TOKEN}\x1b[0m.", "\x1b[32m[redacted:gitlab-token]\x1b[0m."),
        (f"token\x1b[32m{TOKEN}\x1b[0m.", "token\x1b[32m[redacted:gitlab-token]\x1b[0m."),
        (f"[32m{TOKEN}[0m", "[32m[redacted:gitlab-token][0m"),
        (f"{GITLAB}a1B2\x1b[1mc3D4e5F6g7H8i9J0\x1b[0m", "[redacted:gitlab-token]\x1b[0m"),
        ("password=\x1b[31mhunter2!x\x1b[0m", "password=\x1b[31m[redacted:password]\x1b[0m"),
        (f"\x1b]8;;http://h?k={TOKEN}\x07link", "\x1b]8;;http://h?k=[redacted:gitlab-token]\x07link"),
        (f'"\\u001b[31m{TOKEN}\\u001b[0m"', '"\\u001b[31m[redacted:gitlab-token]\\u001b[0m"'),
        (f"k%3D{TOKEN}%26x", "k%3D[redacted:gitlab-token]%26x"),
        ("password%3Dhunter2%21x%26a=1", "password%3D[redacted:password]%26a=1"),
        ("k=whsec_a1B2c3D4e5F6%2Fg7H8i9J0k1L2m3N4", "k=[redacted:stripe-key]"),
        (f"see {GITLAB}a1B2c3\n    D4e5F6g7H8i9J0k1L2 and", "see [redacted:gitlab-token] and"),
        (f"| see {GITLAB}a1B2c3 |\n| D4e5F6g7H8i9J0k1L2 |", "| see [redacted:gitlab-token] |"),
        (f'"see {GITLAB}a1B2c3\\n  D4e5F6g7H8i9J0k1L2"', '"see [redacted:gitlab-token]"'),
        (f"see glp\nat-{BODY} and", "see [redacted:gitlab-token] and"),
        (f"{TOKEN}\n" * 3, "[redacted:gitlab-token]\n" * 3),
        (f"{TOKEN}\nNext line", "[redacted:gitlab-token]\nNext line"),
        (f"A={TOKEN}\nTHE_NAME_OF_ANOTHER=1", "A=[redacted:gitlab-token]\nTHE_NAME_OF_ANOTHER=1"),
        (f"__{TOKEN}", "__[redacted:gitlab-token]"),
    ],
)
def test_find_shapes_what_hides_a_secret_is_seen_through_and_the_rest_stays(text: str, expected: str) -> None:
    assert redact(text) == expected
    assert redact(expected) is expected


@pytest.mark.parametrize(
    "text",
    [
        f"{GITLAB}{'x' * 20}",
        f"{GITLAB}your_token_goes_here_please",
        f"{GITLAB}a1B2\n\nD4e5F6g7H8i9J0k1L2",
        "see test_the_reader_keeps_all_lines\n    test_the_reader_keeps_the_order_of_the_lines",
        "re_match_and_replace_everything_here, sk-learn-contrib, key-value-store-of-the-server",
        "s.someMethodNameOfTwentyFour()",
        "%PATH%:/usr/local/share/applications",
    ],
)
def test_find_shapes_what_only_begins_like_a_secret_stays(text: str) -> None:
    assert redact(text) is text


def said(redactor: Redactor, *texts: str) -> list[str]:
    events = [redactor.prepare(Message("assistant", text)) for text in texts]
    return [event.content for event in events if isinstance(event, Message)]


@pytest.mark.parametrize("cut", range(2, len(TOKEN)))
def test_redactor_a_secret_is_cut_anywhere_and_at_most_seven_of_its_characters_are_left(cut: int) -> None:
    first, second = said(Redactor(hide_secrets=True), f"the key {TOKEN[:cut]}", f"{TOKEN[cut:]} is new")
    assert second.endswith(" is new") and first.startswith("the key ")
    assert not any(BODY[at : at + 8] in first + second for at in range(len(BODY) - 7))


def test_redactor_a_secret_in_three_texts_is_found_in_all() -> None:
    texts = said(Redactor(hide_secrets=True), f"key {GITLAB}a1B2c3D4", "e5F6g7H8i9J0", "k1L2m3N4 end")
    assert texts == ["key [redacted:gitlab-token]", "[redacted:gitlab-token]", "[redacted:gitlab-token] end"]


def test_redactor_what_others_say_meanwhile_is_no_part_of_it() -> None:
    redactor = Redactor(hide_secrets=True)
    first = redactor.prepare(Message("assistant", f"key {GITLAB}a1B2c3D4"))
    other = [redactor.prepare(ToolResult("e5F6g7H8i9J0k1 ok")), redactor.prepare(Message("user", "e5F6g7H8i9J0k1 ok"))]
    rest = redactor.prepare(Message("assistant", "e5F6g7H8i9J0k1 ok"))
    assert [first, rest] == [
        Message("assistant", "key [redacted:gitlab-token]"),
        Message("assistant", "[redacted:gitlab-token] ok"),
    ]
    assert other == [ToolResult("e5F6g7H8i9J0k1 ok"), Message("user", "e5F6g7H8i9J0k1 ok")]


@pytest.mark.parametrize("second", ["Hello there", "3 tests failed", "and more words", "", "2026-01-01 done"])
def test_redactor_a_secret_that_is_whole_takes_nothing_from_the_next_text(second: str) -> None:
    assert said(Redactor(hide_secrets=True), f"key {TOKEN}", second) == ["key [redacted:gitlab-token]", second]


def test_redactor_without_redaction_nothing_is_changed() -> None:
    texts = [f"key {TOKEN[:12]}", TOKEN[12:]]
    assert said(Redactor(hide_secrets=False), *texts) == texts


def test_open_at_end_and_its_kin_know_what_a_prefix_gives_away() -> None:
    assert [open_at_end(text) for text in (f"x={TOKEN[:9]}", "see gl", "see it", "", "a whsec_ab+cd")] == [
        TOKEN[:9],
        "gl",
        "",
        "",
        "whsec_ab+cd",
    ]
    assert [head_of(TOKEN[:at]) for at in (6, 13, 14)] == [None, None, (0, "gitlab-token")]  # 8 characters of a body
    assert end_of_rest(TOKEN[:9], TOKEN[9:] + ", ok") == (len(TOKEN) - 9, "gitlab-token")
    assert end_of_rest(TOKEN[:9], "no, ok") is None


@pytest.mark.slow
def test_find_shapes_costs_time_in_proportion_to_the_text() -> None:
    token = Secret("", TOKEN, BODY).text
    pieces = [
        token + "\n",
        token[:-6] + "\n",
        GITLAB + "aaaaaaaaaaaaaaa\n",
        "sk-ant-api03-aaaaaaaaaaaaaaaa.\n",
        "a" * 16 + ".",
        "a" * 16 + "/",
        "a" * 16 + "+" + "b" * 16 + "~",
        "eyJaaaaaaaaaaaaa.",
        "\\naaaaaaaaaaaaaaaaa",
        "ghp_\n" + "a" * 20,
        "AAAAAAAAAAAAAAAAAAAAA%2F",
        "-" * 20 + "a",
        ":AA" + "a" * 20,
        "1/1234567890123456:",
        "whsec_" + "a" * 15 + "+",
    ]
    check_growth(redact, pieces)
