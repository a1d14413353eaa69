"""Properties: nothing raises, wrapping keeps a command destructive, quoting it as text makes it harmless."""

from __future__ import annotations

import re
import shlex

import pytest
from growth import spent
from hypothesis import given
from hypothesis import strategies as st
from property_sizes import examples

from coherence.policy.danger import shell
from coherence.policy.danger.classify import classify
from coherence.policy.danger.shell import parse, simple_commands

COMMANDS = st.sampled_from(
    ["rm -rf y", "git push -f", "kill -9 1", "chmod 777 x", "echo a > .env", "psql -c 'DROP TABLE t'", "dropdb 'a b'"]
)
WRAPPERS = (
    "cd x && {}",
    "ls; {}",
    "false || {}",
    "sudo sh -c {q}",
    "bash -lc {q}",
    "env A=1 bash -c {q}",
    "( {} )",
    "echo $( {} )",
    'echo "$( {} )"',
    "if true; then {}; fi",
    "{{ {}; }}",
    "! ( {} )",
    "eval {q}",
    "ssh host {q}",
    "timeout 5 bash -c {q} &",
    "bash <<'EOF'\n{}\nEOF",
    "cat <<'EOF' | sh\n{}\nEOF",
    "f() {{ {}; }}",
    "true &&\n{}\n",
    "docker exec c sh -c {q}",
    "find . -exec sh -c {q} ';'",
)
SHELL_PARTS = st.lists(
    st.sampled_from(
        [
            *"(){}[]<>|&;$`'\"\\#!*\n \0=-",
            "rm",
            "-rf",
            "$(",
            "<<EOF\n",
            "EOF\n",
            "bash -c",
            "sudo",
            "find",
            "-exec",
            "a=",
            "\ud800",
            "٣",
            ".env",
        ]
    ),
    max_size=40,
).map("".join)


@given(COMMANDS, st.lists(st.sampled_from(WRAPPERS), max_size=4))
@examples(300)
def test_properties_wrapping_keeps_it_destructive(command: str, wrappers: list[str]) -> None:
    for wrapper in wrappers:
        if "EOF" in command:  # a here-document ends at the first line that says so
            wrapper = "bash -c {q}"
        command = wrapper.format(command, q=shlex.quote(command))
    assert classify("Bash", {"command": command}) is not None


@given(
    COMMANDS,
    st.sampled_from(["echo {}", "grep -r {} .", "git commit -m {}", "ls # {}", "x={}; ls", "printf %s {} | wc"]),
)
def test_properties_quoting_makes_it_harmless(command: str, text: str) -> None:
    assert classify("Bash", {"command": text.format(shlex.quote(command))}) is None


@given(st.one_of(SHELL_PARTS, st.text()))
@examples(400)
def test_properties_nothing_raises_and_the_answer_is_the_same_again(script: str) -> None:
    found = classify("Bash", {"command": script})
    assert found == classify("Bash", {"command": script})
    if found is not None:
        assert len(found.part) <= 200
        found.what.encode("utf-8")
    classify("run_code", {"code": script, "query": script, "path": script, "method": script})
    classify(script, script.encode("utf-8", "surrogatepass"))


@given(
    st.recursive(
        st.none() | st.text(max_size=9), lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=9), inner)
    )
)
def test_properties_any_json_is_read(value: object) -> None:
    classify("Bash", value)
    classify("delete", value)


@given(st.lists(st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"])), min_size=1, max_size=5))
def test_properties_quoted_words_are_read_back(words: list[str]) -> None:
    (command,) = simple_commands("a " + shlex.join(words))
    assert (command.program, command.args) == ("a", tuple(words))


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit",
    [
        "a ",
        "ls && ",
        "(",
        "$(",
        "'",
        '"$(',
        "`",
        "{ ",
        "cat <<A\n",
        "a | ",
        "sudo ",
        "find . -exec ",
        "$X a;",
        ">a ",
        "\\",
        "bash -c ",
        "echo ls|sh;",
    ],
)
def test_properties_long_and_deep_texts_are_read_within_bounds(unit: str) -> None:
    classify("Bash", {"command": unit * (100_000 // len(unit))})
    deep = unit * 2_000
    assert classify("Bash", {"command": f"rm x\n{deep}"}) is not None


def test_properties_what_lies_deeper_than_the_limit_is_searched_for_dangerous_words() -> None:
    assert classify("Bash", {"command": "sudo " * 50 + "rm x"}) is not None
    assert classify("Bash", {"command": "sudo " * 50 + "ls x"}) is None


def test_properties_a_text_that_cannot_be_read_is_dangerous_only_if_it_names_danger() -> None:
    assert classify("Bash", {"command": "echo 'a; rm y"}) is not None
    assert classify("Bash", {"command": "echo 'a; ls y"}) is None


@pytest.mark.parametrize(
    "text", ["?{\U0007c78d\u00c4", "\u00bc{\U000ce1cf\x93", "{\u0130", "a{\u4e2d\u6587}", "${\U0001f642}"]
)
def test_properties_letters_outside_ascii_behind_a_brace_do_not_end_the_process(text: str) -> None:
    classify("Bash", {"command": text})
    assert classify("Bash", {"command": f"echo {text}; rm -rf \u4e2d\u6587"}) is not None


RECOVERS = ["|", "<[{(", "[a](", "a(b)", "(a|b)", "<<EOF\n", "E   assert 1 == 2\n", "case a in b) c;; "]
"""Behind these the parser reads to the end of the text again and again."""


@pytest.mark.parametrize("piece", RECOVERS)
def test_parse_gives_up_where_the_parser_would_take_quadratic_time(piece: str) -> None:
    assert parse((piece * (50_000 // len(piece))).encode()) is None


@pytest.mark.parametrize(
    "piece", ["ls -l | grep x > y; ", "for i in a; do echo $i; done\n", "a=1;", "$(", "{a,", "'", "é "]
)
def test_parse_reads_long_texts_of_other_shapes(piece: str) -> None:
    root = parse((piece * (50_000 // len(piece))).encode())
    assert root is not None
    assert root.end_byte > 0


@pytest.mark.slow
@pytest.mark.parametrize("piece", RECOVERS)
def test_parse_takes_linear_time(piece: str) -> None:
    text = piece * (100_000 // len(piece))
    assert spent(lambda given: parse(given.encode()), text, 9, enough=0.5) <= 0.5  # 0.05 s on a quiet machine


@given(
    st.lists(
        st.sampled_from([*"().:,@%+-=!~#;&|\n\t  ", "rm", "-rf", "/tmp/a", "time", "if", "then", "fi", "in", "1"]),
        max_size=12,
    ).map("".join)
)
@examples(3_000)
def test_simple_commands_of_plain_words_are_those_of_their_tree(script: str) -> None:
    at_once = list(simple_commands(script))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(shell, "_PLAIN_WORDS", re.compile(r"(?!)"))
        shell._remembered.cache_clear()
        assert list(simple_commands(script)) == at_once
    shell._remembered.cache_clear()
