"""Short names of rules."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from coherence.core.registry import shipped
from coherence.pytest_plugin.rule_names import SHORT, name_of, rules_meant

RULES = Path(__file__).resolve().parents[2] / "docs" / "reference" / "rules.md"
PAGE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "pytest.md"


def test_rules_meant_knows_every_rule_of_the_reference() -> None:
    table = RULES.read_text("utf-8").partition("\n## ")[0]
    rules = re.findall(r"`([\w.*]+)`", "".join(re.findall(r"^\| (.*?) \|", table, re.M)))
    assert len(rules) > 25
    names = {rule.partition(".")[0] for rule in rules}
    assert rules_meant(sorted(names)).keys() == names


def test_rules_meant_short_names_mean_rules_that_exist() -> None:
    own = {"budget", "tree_budget", "forbidden_call", "course", "scope_drift_warn", "goal_hijack", "ungrounded_outcome"}
    own |= {"harmful_call", "destructive_call", "destructive_unasked"}  # no plug-ins
    assert {rule for rules in SHORT.values() for rule in rules} <= own | set(shipped("rules"))


def test_rules_meant_the_page_lists_every_short_name() -> None:
    text = PAGE.read_text("utf-8")
    assert [
        name for name, rules in SHORT.items() if f"| `{name}` | {', '.join(f'`{r}`' for r in rules)}" not in text
    ] == []


@pytest.mark.parametrize(
    ("rule", "no", "name"),
    [
        ("budget.tokens", ["budget"], "budget"),
        ("tree_budget.tool_calls.search", ["budget"], "budget"),
        ("goal_hijack", ["loop"], None),
        ("goal_hijack", ["loop", "goal_hijack"], "goal_hijack"),
    ],
)
def test_name_of_a_finding(rule: str, no: list[str], name: str | None) -> None:
    assert name_of(rule, rules_meant(no)) == name
