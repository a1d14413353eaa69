"""One tokeniser: masking, naming and the reading of lines and commands see the same tokens."""

from __future__ import annotations

import pytest

from coherence.lessons.masks import mask
from coherence.lessons.names import asked_names, kept_names, keys_of, refill
from coherence.lessons.normal import ErrorShape, Slot, normalise
from coherence.lessons.tokens import DOTTED, ENDPOINT, MARKED, Token, base_of, cut, has_extension, kind_of, names_in


def test_cut_gives_back_every_word_with_its_punctuation() -> None:
    assert list(cut("see (load() in 'my file'):")) == [
        Token("see", ""),
        Token("", " ("),
        Token("load", "", called=True),
        Token("in", " "),
        Token("my file", " ", quoted=True),
        Token("", "", "):"),
    ]


def test_cut_apostrophes_quote_nothing() -> None:
    assert not any(token.quoted for token in cut("it doesn't exist and can't be made"))


def test_cut_masking_and_naming_agree_that_apostrophes_quote_nothing() -> None:
    # "t find model" between two apostrophes was a quoted passage to naming, and its words were kept as names
    text = "ValueError: Can't find model 'en_core_web_md'. It doesn't seem to be a shortcut link."
    named = "ValueError: Cannot find model 'en_core_web_md'. It does not seem to be a shortcut link."
    assert kept_names(normalise(text), text) == kept_names(normalise(named), named)
    assert len(kept_names(normalise(text), text)) == 4  # one name, en_core_web_md, of 4 bytes


def test_names_in_lines_marked_names_are_those_that_do_not_stand_as_words() -> None:
    lines = ["cannot import name 'soft' from markupsafe", "in user_id of fooBar, port 8080"]
    assert names_in(lines, MARKED, 9) == ["soft", "user_id", "foobar", "8080"]
    assert names_in(["open about.html, not a.b.c"], DOTTED, 1) == ["about.html"]


@pytest.mark.parametrize("place", ["", ":3", ":3:5", ":3:5:", "(12)", "(12,5)"])
def test_base_of_a_file_is_the_same_with_and_without_line_and_column(place: str) -> None:
    path = f"/srv/src/Config.yml{place}"
    assert base_of(path) == "Config.yml" and has_extension(path) and kind_of(path) == "path"
    assert mask(f"cannot read '{path}'").text == "cannot read Config.yml"
    assert keys_of(ErrorShape("", "", "", (Slot("path", path),), b"", False, False)) == ("config.yml",)


@pytest.mark.parametrize(
    ("address", "host", "port"),
    [
        ("https://bob:pw@pypi.example.com:8443/simple?x=1", "pypi.example.com", "8443"),
        ("db:5432", "db", "5432"),
        ("[::1]:80", "[::1]", "80"),
        ("http://10.0.0.1/a:b", "10.0.0.1", None),
    ],
)
def test_endpoint_gives_the_host_and_port_of_an_address(address: str, host: str, port: str | None) -> None:
    found = ENDPOINT.match(address)
    assert found is not None and (found["host"], found["port"]) == (host, port)


def test_endpoint_a_path_behind_a_scheme_is_no_host() -> None:
    assert ENDPOINT.match("unix:///var/run/docker.sock") is None


def test_endpoint_a_fix_takes_over_the_host_of_a_url_with_a_user() -> None:
    # Before, the user was taken for the host, and the fix with the lesson's host was given for the other one.
    known = normalise("ConnectionError: cannot reach https://bob@mirror.example.com/simple")
    asked = normalise("ConnectionError: cannot reach https://bob@pypi.example.org/simple")
    assert refill("ping mirror.example.com", known, asked, "") == "ping pypi.example.org"


def test_names_in_frames_are_no_names_of_an_error() -> None:
    frame = "  /srv/shop/basket.rb:12:in `add_item'"
    error = "RuntimeError: the basket is full"
    asked = asked_names(normalise(f"{error}\n{frame}"), f"{error}\n{frame}")
    assert asked.weights == asked_names(normalise(error), error).weights
