"""Promises of the default configuration, over many simulated lives of many kinds, through the public monitor."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from coherence.core.config import Budget
from coherence.core.decisions import Mode
from coherence.core.protocols import Embedder
from coherence.monitor.monitor import Monitor
from coherence.providers import HashingEmbedder, MiniLMEmbedder

# Nouns only, and no word of a tool's name: what begins with a bare verb would be a command inside a result.
TOPICS = [
    "login session cookie token password user redirect form middleware handler browser account signin header expiry",
    "parser lexer grammar tree node recursion indent newline comment bracket expression operator literal visitor",
    "flight booking passenger airport luggage seat fare reservation lounge voucher policy itinerary departure arrival",
    "dialect index table row column join migration schema transaction latch cursor replica shard series tuple slice",
    "rain forecast temperature humidity wind station satellite gauge storm cloud front radar snow season climate coast",
]
LINKS = (
    "of in to and with for from on at is was then now next after before seeing checking opening fixing under near "
    "above behind beside through into or"
).split()
KINDS = "old new main first last other whole small large early late".split()
HEDGES = "maybe perhaps probably might could seems likely unsure".split()
TOOLS = ["Read", "Edit", "Bash", "Grep", "Write", "Glob", "WebFetch", "Query"]
ERRORS = ["ImportError: no module {}", "FileNotFoundError: {}.py", "Exit code 1: {} failed", "Error: boom", "timeout"]


class Life:
    """A simulated agent; its kind and everything it does follow from the seed."""

    def __init__(self, monitor: Monitor, seed: int, **fixed: Any) -> None:
        self.monitor = monitor
        self.rng = random.Random(seed)
        pick = self.rng.choice
        self.kind: dict[str, Any] = {
            "tools": self.rng.sample(TOOLS, pick([1, 1, 2, 5, 8])),
            "acts": pick([1.0, 1.0, 0.6, 0.0]),  # share of actions that call a tool; the others only say something
            "talks": pick([0.0, 0.3, 1.0]),  # share of calls with words beside them
            "usage": pick(["none", "tokens", "cost", "both", "both"]),
            "sigma": self.rng.uniform(0.1, 0.9),  # of the logarithm of tokens; 0.9 is a factor of 6 between quartiles
            "tokens": math.exp(self.rng.uniform(math.log(50), math.log(60_000))),
            "price": math.exp(self.rng.uniform(math.log(1e-7), math.log(3e-5))),
            "grows": pick([False, True]),  # the context, from call to call
            "errors": pick([0.0, 0.03, 0.12]),  # isolated ones
            "words": pick([(1, 6), (5, 30), (30, 200), (3, 400)]),
            "hedges": pick([0.0, 0.01, 0.05]),
            "forms": pick([["prose"], ["prose", "list"], ["prose", "code", "list", "json"]]),
            "turns": pick([None, "silently", "by the user"]),  # the topic, half-way
            "repeats": pick([0.0, 0.05, 0.1]),  # the last call, with the last result
            "goal": pick([True, True, False]),
        } | fixed
        self.topic = pick(TOPICS)
        self.since_error = 9
        self.context = 2_000.0
        self.last: tuple[str, dict[str, str], str] | None = None
        self.used: list[dict[str, float]] = []
        self.peak = 0.0
        if self.kind["goal"]:
            monitor.goal("Please fix the " + self.text(5, 12))

    def chance(self, what: str) -> bool:
        return bool(self.rng.random() < self.kind[what])

    def text(self, least: int, most: int) -> str:
        """Return so many words of the topic in an order that English has, and a number."""
        nouns, count = self.topic.split(), self.rng.randint(least, most)
        words: list[str] = [self.rng.choice(nouns)]
        while len(words) < count:
            hedge = [self.rng.choice(HEDGES)] if self.chance("hedges") else []
            kind = [self.rng.choice(KINDS)] if self.rng.random() < 0.5 else []
            words += [*hedge, self.rng.choice(LINKS), "the", *kind, self.rng.choice(nouns)]
        return " ".join([*words[:count], str(self.rng.randint(0, 9_999))])

    def say(self) -> None:
        body = self.text(*self.kind["words"])
        forms = {"prose": f"{body}.", "list": f"- {body}\n- {self.text(2, 5)}", "code": f"So:\n```\n{body}\n```"}
        forms["json"] = f'{{"say": "{body}"}}'
        self.monitor.message("assistant", forms[self.rng.choice(self.kind["forms"])])

    def use(self) -> None:
        if self.kind["usage"] == "none":
            return
        draw = math.exp(self.rng.gauss(0, self.kind["sigma"]))
        tokens_in, tokens_out = self.kind["tokens"] * draw, self.kind["tokens"] * draw / 10
        if self.kind["grows"]:
            self.context = self.context + self.rng.uniform(200, 3_000) if self.context < 100_000 else 10_000.0
            tokens_in, tokens_out = self.context, 400 * draw
        self.tell(tokens_in, tokens_out, (tokens_in + 5 * tokens_out) * self.kind["price"])

    def tell(self, tokens_in: float, tokens_out: float, cost: float) -> None:
        self.used.append({"tokens_in": tokens_in, "tokens_out": tokens_out, "cost": cost})
        usage = self.kind["usage"]
        self.monitor.usage(
            tokens_in=int(tokens_in) if usage != "cost" else None,
            tokens_out=int(tokens_out) if usage != "cost" else None,
            cost_usd=cost if usage != "tokens" else None,
        )
        self.peak = max(self.peak, self.monitor.pressure)

    def act(self, *, clean: bool = False) -> None:
        """Do something as it should be."""
        self.use()
        calls = clean or self.chance("acts")
        if not calls or self.chance("talks"):
            self.say()
        if calls:
            if self.last is not None and self.chance("repeats"):
                tool, arguments, result = self.last
                self.last = None
            else:
                tool, arguments = self.rng.choice(self.kind["tools"]), {"argument": self.text(1, 8)}
                result = self.text(*self.kind["words"])
                self.last = tool, arguments, result
            error = not clean and self.since_error >= 3 and self.chance("errors")
            self.since_error = 0 if error else self.since_error + 1
            call = self.monitor.tool_call(tool, arguments)
            self.monitor.tool_result(self.error() if error else result, error=error, call=call)
        self.peak = max(self.peak, self.monitor.pressure)

    def live(self, actions: int) -> None:
        for at in range(actions):
            if at == actions // 2 and self.kind["turns"]:
                self.topic = self.rng.choice([topic for topic in TOPICS if topic != self.topic])
                if self.kind["turns"] == "by the user":
                    self.monitor.message("user", "Now please do the " + self.text(5, 12))
            self.act()

    def error(self) -> str:
        return self.rng.choice(ERRORS).format(self.rng.choice(self.topic.split()))

    def fail(self, errors: int) -> list[float]:
        """Fail again and again, talking and spending in between; return the pressure after every event."""
        pressures = []
        same = self.rng.random() < 0.3
        for at in range(errors):
            if at:
                self.use()
                pressures.append(self.monitor.pressure)
                if self.rng.random() < 0.4:
                    self.monitor.message("assistant", "Hmm, maybe I should try again, " + self.text(3, 9))
                if self.rng.random() < 0.1:
                    self.monitor.message("user", "try something else")
            call = self.monitor.tool_call("Bash", {"command": "pytest" if same else self.text(1, 8)})
            pressures.append(self.monitor.pressure) if at else None
            self.monitor.tool_result("Error: boom" if same else self.error(), error=True, call=call)
            pressures.append(self.monitor.pressure)
        return pressures


def monitored(embedder: Embedder | None = None, weights: str = "default") -> Monitor:
    return Monitor(embedder=embedder or HashingEmbedder(), config={"weights": weights})


def check_healthy(seed: int, actions: int, embedder: Embedder | None = None) -> None:
    with monitored(embedder) as m:
        life = Life(m, seed)
        life.live(actions)
        assert life.peak < 0.25, (life.kind, m.decide().message)
        # The simulated answers are random words and a random number, so that some have nothing to do with what was
        # asked, nobody gave the number, and none says that the last call failed.
        active = {finding.rule for finding in m.decide().findings if finding.active}
        allowed = {"scope_drift_warn", "ungrounded_answer", "contradicted_claim"}
        if embedder is not None and life.kind["turns"] == "silently":
            allowed.add("course")  # by its meaning it has left what was asked, and nobody asked for that
        assert active <= allowed, (life.kind, m.decide().message)


def check_burst(seed: int, actions: int, errors: int, embedder: Embedder | None = None) -> None:
    with monitored(embedder) as m:
        life = Life(m, seed)
        life.live(actions)
        modes = []
        pressures = []
        for _ in range(errors):
            pressures += life.fail(1)
            modes.append(m.mode)
        assert modes.index(Mode.WARN) < 4
        assert modes.index(Mode.BLOCK) < 8
        assert pressures == sorted(pressures)
        assert m.decide().kind == "block"
        for _ in range(15):
            life.act(clean=True)
        assert m.mode == "observe", m.decide().message


@pytest.mark.parametrize(
    "block", [pytest.param(block, marks=pytest.mark.torture if block else pytest.mark.slow) for block in range(10)]
)
def test_three_hundred_healthy_lives_never_leave_observe(block: int) -> None:
    for seed in range(30 * block, 30 * block + 30):
        check_healthy(1_000 + seed, 200)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(8))
def test_a_healthy_life_never_leaves_observe_with_the_default_embedder(seed: int) -> None:
    check_healthy(seed, 60, MiniLMEmbedder())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("seed", "actions", "embedder"),
    [(seed, seed * 37 % 201, HashingEmbedder()) for seed in range(16)]
    + [(16, 0, HashingEmbedder()), (17, 200, HashingEmbedder())]
    + [(actions, actions, MiniLMEmbedder()) for actions in (0, 5, 40)],
)
def test_lives_a_failing_agent_warns_within_4_errors_and_blocks_within_8_after_any_healthy_life(
    seed: int, actions: int, embedder: Embedder
) -> None:
    check_burst(seed, actions, 10, embedder)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_pressure_never_falls_while_errors_go_on_whatever_lies_between(seed: int) -> None:
    with monitored() as m:
        life = Life(m, seed, usage="both", sigma=0.9)
        life.live(20)
        pressures = life.fail(30)
        assert pressures == sorted(pressures)


@pytest.mark.parametrize("actions", [0, 3, pytest.param(40, marks=pytest.mark.slow)])
@pytest.mark.parametrize("talks", [False, True])
def test_the_pressure_of_25_identical_successful_calls_guides_and_never_warns(actions: int, talks: bool) -> None:
    with monitored() as m:
        life = Life(m, actions)
        life.live(actions)
        modes = []
        for _ in range(25):
            if talks:
                m.message("assistant", "Let me look at the status again.")
            call = m.tool_call("Bash", {"command": "git status"})
            m.tool_result("clean", call=call)
            modes.append(m.mode)
        assert modes[-1] is Mode.GUIDE
        assert Mode.GUIDE in modes[:8]
        assert not {Mode.WARN, Mode.BLOCK} & set(modes)
        (pressure,) = (finding for finding in m.decide().findings if finding.rule == "pressure")
        assert "identical calls" in pressure.why


@pytest.mark.slow
@pytest.mark.parametrize(
    ("events", "weights"),
    [(10, "classic"), (10, "default"), (30, "default"), (100, "default")],
)
@pytest.mark.parametrize("grows", [False, True])
@pytest.mark.parametrize(
    ("usage", "spike"),
    [("tokens", "tokens"), ("cost", "cost"), ("both", "tokens"), ("both", "cost"), ("both", "tokens cost")],
)
def test_lives_a_hundredfold_spike_shows_at_its_first_event(
    events: int, weights: str, grows: bool, usage: str, spike: str
) -> None:
    for seed in range(3):
        with monitored(weights=weights) as m:
            life = Life(m, seed, usage=usage, grows=grows, sigma=0.5, acts=1.0, talks=0.0, words=(1, 6), turns=None)
            life.live(events)
            usual = {name: sum(use[name] for use in life.used) / events for name in life.used[0]}
            assert m.mode == "observe"
            life.tell(*(value * (100 if name.split("_")[0] in spike else 1) for name, value in usual.items()))
            assert m.mode != "observe", m.decide().message


def test_a_spike_shows_with_the_default_embedder_and_is_named() -> None:
    with monitored(MiniLMEmbedder()) as m:
        for at in range(10):
            m.usage(tokens_in=1_000 + at, cost_usd=0.01)
            m.tool_result(f"page {at}", tool="Read")
        m.usage(tokens_in=1_000, cost_usd=1.0)
        decision = m.decide()
    assert decision.kind == "guide"
    assert "cost" in decision.message


HOSTILE = [math.nan, *(pytest.param(each, marks=pytest.mark.slow) for each in (-1.0, 10**400, -math.inf, 1e308))]


@pytest.mark.parametrize("bad", HOSTILE, ids=["nan", "-1", "10**400", "-inf", "1e308"])
def test_no_number_that_is_told_wedges_a_mode(bad: float) -> None:
    with Monitor(embedder=HashingEmbedder(), budget=Budget(wall_s=1e9, calls=10_000)) as m:
        life = Life(m, 3, usage="both", sigma=0.3, acts=1.0)
        life.live(20)
        for _ in range(5):
            m.usage(tokens_in=bad, tokens_out=bad, cost_usd=bad)  # type: ignore[arg-type]
            m.tool_result("ok", duration_s=bad)
            m.feedback(bad)
        for _ in range(15):
            life.act(clean=True)
        assert m.mode == "observe", m.decide().message
        assert math.isfinite(m.pressure)
        life.fail(8)
        assert m.mode == "block"
