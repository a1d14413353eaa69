"""Settings of files and the environment: order, sources, lines of what is wrong, what a project may ask of hooks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coherence.core.config import Budget, MonitorConfig
from coherence.core.settings import (
    ConfigError,
    Problem,
    effective,
    environment,
    load_for_hooks,
    load_settings,
    problems_of,
    project_file,
    read_layer,
    read_layers,
    user_file,
)

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Write:
    monkeypatch.setenv("COHERENCE_CONFIG", str(tmp_path / "user.toml"))
    (tmp_path / "shop" / ".git").mkdir(parents=True)
    (tmp_path / "shop" / "src").mkdir()

    def made(text: str, name: str = "shop/coherence.toml") -> Path:
        path = tmp_path / name
        path.write_text(text)
        return path

    return made


def test_user_file_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COHERENCE_CONFIG", raising=False)
    assert user_file().is_absolute() and user_file().name == "config.toml"
    monkeypatch.setenv("COHERENCE_CONFIG", "mine.toml")
    assert user_file() == Path.cwd() / "mine.toml"


def test_project_file_is_looked_for_up_to_the_root_of_the_repository(write: Write, tmp_path: Path) -> None:
    outside = write("", "coherence.toml")
    assert project_file(tmp_path / "shop/src") is None
    path = write("")
    assert project_file(tmp_path / "shop/src") == project_file(tmp_path / "shop") == path
    (tmp_path / "elsewhere").mkdir()
    assert project_file(tmp_path / "elsewhere") is None  # no repository: only the folder itself
    assert project_file(tmp_path) == outside


def test_load_settings_the_environment_counts_over_the_project_and_that_over_the_user(
    write: Write, tmp_path: Path
) -> None:
    write("window = 5\n[budget]\ncalls = 1\ntokens = 2\ncost_usd = 3.0\n", "user.toml")
    write("[budget]\ncalls = 10\ntokens = 20\n")
    config = load_settings(tmp_path / "shop/src", env={"COHERENCE__BUDGET__CALLS": "100"})
    assert config.budget == Budget(calls=100, tokens=20, cost_usd=3.0)
    assert config.window == 5
    assert load_settings(tmp_path, env={}).budget == Budget(calls=1, tokens=2, cost_usd=3.0)


def test_load_settings_deny_lists_are_added_up(write: Write, tmp_path: Path) -> None:
    write('[[forbid]]\ntool = "Bash"\n', "user.toml")
    write('[[forbid]]\ntool = "Write"\n')
    assert [each.tool for each in load_settings(tmp_path / "shop", env={}).forbid] == ["Bash", "Write"]


def test_load_settings_names_each_bad_setting_with_its_line(write: Write, tmp_path: Path) -> None:
    path = write('windw = 5\n\n[budget]\ncalls = 3\ncals = "x"\n\n[rules.loop]\nthreshold = "high"\n')
    with pytest.raises(ConfigError) as found:
        load_settings(tmp_path / "shop", env={"COHERENCE__TIMEOUT_S": "-1"})
    places = [(each.place, each.key) for each in found.value.problems]
    assert places == [
        (f"{path}:1", "windw"),
        (f"{path}:5", "budget.cals"),
        (f"{path}:7", "rules.loop"),
        ("COHERENCE__TIMEOUT_S", "timeout_s"),
    ]
    assert "did you mean window?" in str(found.value) and "did you mean calls?" in str(found.value)


@pytest.mark.parametrize(
    ("text", "place", "message"),
    [
        (b"window = \n", ":1", "not TOML"),
        (b"a = 1\na = 2\n", ":2", "not TOML"),
        (b"\xff\n", "", "not UTF-8 at byte 0"),
    ],
)
def test_read_layer_of_a_file_that_is_no_toml(tmp_path: Path, text: bytes, place: str, message: str) -> None:
    path = tmp_path / "coherence.toml"
    path.write_bytes(text)
    with pytest.raises(ConfigError, match=message) as found:
        read_layer(path)
    assert [each.place for each in found.value.problems] == [f"{path}{place}"]


def test_problems_of_settings_that_are_wrong_only_together(write: Write) -> None:
    path = write('weights = "classic"\nscale = "scale.json"\n')
    (problem,) = problems_of(read_layer(path))
    assert problem.place == f"{path}:2" and "scale.json" in problem.message  # there is no such file
    layer = read_layer(write('weights = "classic"\n'))
    assert problems_of(layer) == []


def test_effective_names_the_source_of_every_value(write: Write, tmp_path: Path) -> None:
    path = write('privacy = "no-text"\nbudget = {calls = 3}\n[prices."a.b"]\ninput = 1.0\noutput = 2.0\n')
    env = {"COHERENCE__BUDGET__TOKENS": "7", "COHERENCE__X": "1", "OTHER": "2"}
    with pytest.raises(ConfigError, match=r"^COHERENCE__X: x: there is no such setting"):
        effective(read_layers(tmp_path / "shop", env=env))
    del env["COHERENCE__X"]
    found = {each.key: (each.value, each.source) for each in effective(read_layers(tmp_path / "shop", env=env))}
    assert {key: value for key, value in found.items() if value[1] != "default"} == {
        "privacy": ("no-text", f"{path}:1"),
        "budget.calls": (3, f"{path}:2"),
        "budget.tokens": (7, "COHERENCE__BUDGET__TOKENS"),
        "prices.a.b.input": (1.0, f"{path}:4"),
        "prices.a.b.output": (2.0, f"{path}:5"),
    }
    assert found["window"] == (20, "default")


@pytest.mark.parametrize(
    ("text", "value"),
    [("3", 3), ("true", True), ("0.5", 0.5), ("no-text", "no-text"), ('"3"', "3"), ("[1, 2]", [1, 2]), ("", "")],
)
def test_environment_values_are_toml_or_else_texts(text: str, value: Any) -> None:
    assert environment({"COHERENCE__WINDOW": text, "COHERENCE__": "1"}).settings == {"window": value}


LOOSE = """
block = "destructive"
privacy = "full"
redact = false
refusals = 1
context_tokens = 9
[rules.loop]
enabled = false
[guidance]
enabled = false
[budget]
calls = 1000
tokens = 5
tool_calls = {Bash = 9, Read = 1}
[[forbid]]
tool = "Write"
"""


def test_load_for_hooks_a_project_can_only_make_them_stricter(write: Write, tmp_path: Path) -> None:
    own = (
        'block = "all"\nprivacy = "no-text"\n[budget]\ncalls = 10\ntool_calls = {Bash = 2}\n[[forbid]]\ntool = "Web"\n'
    )
    user = write(own, "user.toml")
    config, alone = load_for_hooks(user, write(LOOSE)), load_for_hooks(user, None)
    assert config.budget == Budget(calls=10, tokens=5, tool_calls={"Bash": 2, "Read": 1})
    assert [each.tool for each in config.forbid] == ["Web", "Write"]
    assert config.context_tokens == 9
    for name in {*MonitorConfig.__struct_fields__} - {"budget", "forbid", "context_tokens"}:
        assert getattr(config, name) == getattr(alone, name), name


def test_load_for_hooks_takes_what_is_stricter_in_a_project(write: Write, tmp_path: Path) -> None:
    user, project = write("redact = false\n", "user.toml"), write('redact = true\nprivacy = "no-text"\n')
    config = load_for_hooks(user, project)
    assert (config.redact, config.privacy, config.budget) == (True, "no-text", None)
    assert load_for_hooks(tmp_path / "missing.toml", None) == MonitorConfig()


@given(st.text(max_size=200) | st.sampled_from([LOOSE]))
def test_read_layer_any_text_is_read_or_refused_with_its_place(tmp_path_factory: Any, text: str) -> None:
    path = tmp_path_factory.mktemp("any") / "coherence.toml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    try:
        found = problems_of(read_layer(path))
    except ConfigError as error:
        found = list(error.problems)
    assert all(isinstance(each, Problem) and each.place.startswith(str(path)) for each in found)
