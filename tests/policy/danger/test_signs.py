"""Signs of shell text, counted before it is parsed."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from property_sizes import examples

from coherence.policy.danger.classify import classify, judge
from coherence.policy.danger.shell import MAX_SIGNS, simple_commands
from coherence.policy.danger.signs import count_signs, may_exceed


@pytest.mark.parametrize(
    ("script", "signs"),
    [
        ("ls -l src", 0),
        ("a | b && c > d; e", 5),
        ("echo 'a|b' \"c|d\" e\\|f", 1),  # one for the double quotes
        ('echo "$(a|b)"', 5),  # one, and $ ( | ) inside
        ("ls # a|b|c", 0),
        ("ls#a|b", 1),  # no comment
        ("cat <<E\na|b\nE\nls|wc", 3),  # << and the last pipe
        ("cat <<E\n$(a|b)\nE\n", 6),  # << and $ ( | ): the shell reads it
        ("cat <<'E'\n$(a|b)\nE\n", 2),
        ("cat <<-E\n\ta|b\n\tE\nls|wc", 3),
        ("cat <<E\na|b\n", 3),  # never closed, so nothing is skipped
        ("cat <<A <<B\n|\nA\n|\nB\n|", 5),
        ("cat <<E\na|b\nE", 2),
        ("wc <<<a|b", 4),
    ],
)
def test_count_signs_counts_what_the_shell_gives_a_meaning(script: str, signs: int) -> None:
    assert count_signs(script, 1_000) == signs


def test_count_signs_stops_above_the_most() -> None:
    assert count_signs("a| " * 1_000, 10) == 11


@given(st.text("a|&;()<>{}[]$`!'\"\\\n#- E", max_size=40), st.integers(0, 20))
@examples(2_000)
def test_may_exceed_tells_of_every_script_with_more_signs(script: str, most: int) -> None:
    assert may_exceed(script, most) or count_signs(script, most) <= most


@pytest.mark.parametrize("piece", ["a|", "[a](", "a(b)", "<<EOF", "$a)", "]`<}:", ";;-})"])
def test_simple_commands_does_not_parse_a_text_with_too_many_signs(piece: str) -> None:
    assert list(simple_commands(piece * (MAX_SIGNS + 1)))[-1].cut


def test_simple_commands_reads_a_text_with_too_many_signs_roughly() -> None:
    assert any(command.program == "rm" for command in simple_commands("a|" * MAX_SIGNS + "b; rm -rf /"))


def test_simple_commands_parses_long_files_in_here_documents() -> None:
    written = "| a | b |\n" * 1_000
    commands = list(simple_commands(f"cat > a.md <<'END'\n{written}END\nrm -rf b"))
    assert [command.program for command in commands if command.program] == ["cat", "rm"]
    assert not any(command.cut for command in commands)


def test_judge_scripts_of_a_call_share_their_signs() -> None:
    # each of the lines has 3 signs inside: together they are more than MAX_SIGNS
    line = "bash -c 'a|b|c)'\n"
    few, many = (judge("Bash", {"command": line * times}) for times in (3, MAX_SIGNS // 3 + 2))
    assert [match.kind for match in few.enforced] == []
    assert [match.kind for match in many.enforced] == ["unjudged"]


def test_judge_many_long_texts_do_not_hide_what_comes_after_them() -> None:
    long = "bash -c '" + "[a](" * MAX_SIGNS + "'\n"
    found = judge("Bash", {"command": long * 10 + "rm -rf /"})
    assert [match.kind for match in found.enforced] == ["unjudged", "wipe"]


def test_classify_a_text_with_too_many_signs_is_unjudged() -> None:
    found = classify("Bash", {"command": "[a](" * MAX_SIGNS})
    assert found is not None
    assert found.kind == "unjudged"


def test_judge_a_call_that_is_asked_about_twice_is_read_once() -> None:
    given = b'{"command": "rm -rf build"}'
    found = judge("Bash", given)
    assert judge("Bash", bytes(bytearray(given))) is found
    assert judge("Bash", b'{"command": "ls"}') is not found
    assert judge("Shell", given) is not found
