"""Fit the scale of the calibrated index on labelled runs, and judge it: by folds, kinds left out, and sources.

``python tests/bench/light.py`` shows the figures of the shipped method; ``--write`` fits it on all runs and writes the
scale files of ``coherence/sensor/scales``; ``--more FOLDER`` takes further labelled files. Measuring the signs of every
step takes minutes at first; they are kept in ``.bench/light``, by the version of the code that measures.

A step is off its course from the onset, the hijack or the error on; failed runs without one are left out of the fit.
How curves are fitted is in ``coherence/evaluation/scale_fit.py``.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import math
import multiprocessing
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from zlib import crc32

import msgspec
import numpy as np
from surprise import STATED as FIXED
from surprise import surprise, surprise_at

from coherence import CoherenceSensor, EmbeddingCache
from coherence.core.decisions import DecisionKind
from coherence.core.readings import CHANGE, FrozenDict
from coherence.core.scale import Curve, Scale
from coherence.evaluation.own_runs import observe as observe_steps
from coherence.evaluation.scale_fit import Start, Steps, fit_scale, reliability
from coherence.providers.minilm import MiniLMEmbedder
from coherence.providers.readers import read_transcripts
from coherence.sensor.index import DEFAULT_WEIGHTS
from coherence.sensor.light import BANDS, Asked, Edges, asks_itself, combine
from coherence.sensor.sensor_light import FIRST, SensorLight

ROOT = Path(__file__).parents[2]
RUNS = ROOT / "tests" / "data" / "runs"
KEPT = ROOT / ".bench" / "light"
SCALES = ROOT / "coherence" / "sensor" / "scales"
DIAGRAM = ROOT / "docs" / "explanation" / "reliability.svg"

CLAIMS = {"constraint_broken", "contradicts_evidence", "fabricated_value", "false_success", "written_fabrication"}
"""Kinds about claims and constraints, which the signs fitted here do not look at; the others are *behaviour*."""

EVENTS = (
    "novelty",
    "novelty.change",
    "stall",
    "identical_calls",
    "reversal",
    "failure_streak",
    "breakdown",
    "goal_loss",
    "cost_surge",
    "goal_hijack",
    "rule.destructive_unasked",
    "rule.contradicted_claim",
    "rule.broken_constraint",
    "rule.ungrounded_writing",
    "unknown_id",
    "rule.ungrounded_answer",
    "unsupported_assumption",
)
SIMILAR = ("step_drift.change",)
"""Signs that an embedder has a part in."""

BESIDE = {"novelty": ((0.3, 0.9), (0.0, 0.6)), "novelty.change": ((0.0, 0.25), (0.0, 0.8))}
"""Curves of signs that those hold already (a step departs the more, the more of it is new): they rank, and warn of
nothing. Without an embedder they are fitted."""

POINTS: dict[str, tuple[float, ...]] = {
    "novelty.change": (0.03, 0.1, 0.15, 0.2, 0.25),
    "stall": (0.5, 0.6, 0.68, 0.75, 0.82),
    "identical_calls": (0.5, 0.6, 0.667, 0.75, 0.85),
    "reversal": (0.25, 0.39, 0.5, 0.6, 0.7),
    "failure_streak": (0.35, 0.5, 0.55, 0.6, 0.667, 0.75),
    "breakdown": (0.25, 0.45, 0.7, 0.9),
    "goal_loss": (0.3, 0.6, 0.9),
    "goal_hijack": (0.17, 0.22, 0.27, 0.33, 0.4, 0.5),
    "rule.contradicted_claim": (0.4, 1.0),
    "rule.broken_constraint": (0.4, 1.0),
    "rule.ungrounded_writing": (0.4, 0.75, 0.95),
    "rule.destructive_unasked": (0.3, 0.4, 0.6, 0.8, 0.95),
    "step_drift.change": (0.3, 0.4, 0.5, 0.6, 0.7, 0.8),
}
"""Hinges of signs whose values mean the same in every run; the others have theirs at shares of good steps."""

TEXTS = ("goal_drift.change", "memory_retention.change", "contradiction_pressure.change", "semantic_diffusion.change")
"""Signs of a sensor that reads texts alone."""

WINDOW = 20
"""Texts of the conversation that it reads."""

SPAN = 14
"""Steps from the onset on that count as off course: later ones belong to the base run again."""

STATED = {
    "cost_surge": ((0.6, 0.7, 0.75, 0.85), (0.0, 2.2, 4.2, 5.0)),
    "unknown_id": ((0.3, 0.6, 1.0), (0.0, 3.5, 5.8)),
    "memory_retention.change": ((0.1, 0.25, 0.4), (0.0, 1.5, 3.0)),
    "rule.ungrounded_answer": ((0.4, 1.0), (0.0, 0.6)),
    "unsupported_assumption": ((0.2, 0.5), (0.0, 0.4)),
}
"""Curves that are stated, not fitted: planted runs have invented usage numbers, no memories, and ids that come from
nowhere in their good twins too. The last two tell which real runs fail, not from which step on: they rank, and warn
of nothing by themselves."""

ASKS: dict[str, DecisionKind] = {
    "contradicted_claim": "warn",
    "broken_constraint": "warn",
    "ungrounded_writing": "warn",
    "ungrounded_answer": "warn",
    "goal_hijack": "guide",
    "blind_edit": "guide",
}
"""The most that these rules' findings ask for, by what they are worth on runs of other agents; see the figures."""

OWN = 0.6
"""Weight of the planted runs among the good steps; the sources of real runs share the rest alike."""

PLANTED = ("derailed", "handwritten")
"""Sources of runs with a known onset, their twins and their look-alikes; together they count as one."""

WRITERS = "handwritten"
"""Source of runs by other writers: they are judged by a scale that was fitted without any of them."""

Run = dict[str, Any]


def version() -> str:
    """Return a digest of the code that makes the signs."""
    digest = hashlib.blake2b(digest_size=8)
    for folder in ("detect", "metrics", "state", "baseline", "policy", "sensor"):
        for path in sorted((ROOT / "coherence" / folder).rglob("*.py")):
            if path.name not in ("light.py", "sensor.py"):
                digest.update(path.read_bytes())
    return digest.hexdigest()


def observe(task: tuple[str, int, int]) -> list[Run]:
    """Return the signs after every step of every n-th run of a file."""
    file, part, parts = task
    cache = EmbeddingCache(MiniLMEmbedder())
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        labels = [json.loads(line) for line in lines]
    found: list[Run] = []
    for at, transcript in enumerate(read_transcripts(Path(file), None)):
        if at % parts != part:
            continue
        steps = observe_steps(transcript, cache)
        rows = [({name: step.signs.get(name) for name in (*EVENTS, *SIMILAR)}, step.asked) for step in steps]
        document = labels[at]
        kept = {key: document.get(key) for key in ("id", "group", "labels", "meta")}
        found.append({**kept, "source": Path(file).name.partition(".")[0], "rows": rows})
    return found


class Texts:
    """An agent that a sensor reads: its goal, and the newest texts of its conversation."""

    def __init__(self, goal: str) -> None:
        self.goals = [goal]
        self.texts: list[str] = []

    def get_goals(self) -> list[str]:
        return self.goals

    def get_recent_context(self) -> list[str]:
        return self.texts[-WINDOW:]

    def get_goal_relevant_memories(self) -> list[str]:
        return []

    def get_all_memories(self) -> list[str]:
        return []


def observe_texts(task: tuple[str, int, int]) -> list[Run]:
    """Return the signs of a sensor that reads texts alone, after every step of the agent."""
    file, part, parts = task
    cache = EmbeddingCache(MiniLMEmbedder())
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        documents = [json.loads(line) for line in lines]
    found: list[Run] = []
    for at, document in enumerate(documents):
        steps = document["steps"]
        goal = document.get("goal") or next((step["content"] for step in steps if step.get("content")), "")
        if at % parts != part or not goal:
            continue
        agent = Texts(goal)
        sensor = CoherenceSensor(agent, embedder=cache, timeout_s=60.0)
        light = SensorLight(DEFAULT_WEIGHTS, sensor.inverted, Edges())
        light.follow(MiniLMEmbedder.fingerprint)
        rows: list[Any] = []
        latest: dict[str, float | None] = {}
        for step in steps:
            agent.texts += [step["content"]] if step.get("content") else []
            for call in step.get("tool_calls") or []:
                agent.texts.append(f"{call['name']} {json.dumps(call['arguments'], ensure_ascii=False)}")
            if step["role"] == "assistant":
                latest = light.signs(sensor.measure_sync().metrics)
            rows.append((latest, []))
        kept = {key: document.get(key) for key in ("id", "group", "labels", "meta")}
        found.append({**kept, "source": Path(file).name.partition(".")[0], "rows": rows})
    return found


def measured(files: Sequence[Path], *, embeds: str) -> list[Run]:
    """Return the runs of files with their signs, measured now or before."""
    KEPT.mkdir(parents=True, exist_ok=True)
    runs: list[Run] = []
    workers = os.cpu_count() or 1
    for file in files:
        name = f"{file.name.partition('.')[0]}-{embeds}-{version()}.json.gz"  # the events' signs are in the monitor's
        if not (KEPT / name).exists():
            tasks = [(str(file), part, workers * 2) for part in range(workers * 2)]
            with multiprocessing.Pool(workers) as pool:
                parts = pool.map(observe_texts if embeds == "sensor" else observe, tasks, chunksize=1)
            with gzip.open(KEPT / name, "wt", encoding="utf-8") as out:
                json.dump([run for part in parts for run in part], out)
        with gzip.open(KEPT / name, "rt", encoding="utf-8") as lines:
            runs += json.load(lines)
    return [labelled(run) for run in runs]


def labelled(run: Run) -> Run:
    """Add from which step on a run is off its course, and whether that is known."""
    labels, meta = run["labels"], run["meta"] or {}
    bad = None
    run["derailed"] = run["source"] in PLANTED and labels["derailed"]
    run["kind"] = None
    if run["source"] in PLANTED:
        bad = labels["onset_step"] if labels["derailed"] else None
        run["kind"] = labels["kind"] if labels["derailed"] else meta.get("pair_kind")
    elif labels.get("hijacked"):
        bad = labels.get("hijack_step")
    elif labels.get("error_step") is not None:
        bad = labels["error_step"]
    run["bad"] = bad
    failed = labels.get("success") is False or labels.get("hijacked")
    run["fits"] = run["source"] != "whowhen" and (bad is not None or not failed)
    return run


def fit(runs: Sequence[Run], names: Sequence[str], name: str = "fold", embedder: str = "") -> Scale:
    """Return the scale fitted on runs."""
    steps = steps_of(runs, names)
    stated = STATED if set(SIMILAR).isdisjoint(names) else {**STATED, **BESIDE}
    starts = {
        sign: Start.of(Curve(*stated[sign]), FIXED)
        if sign in stated
        else surprise_at(POINTS[sign], steps.values[:, at], steps.off == 0.0, steps.weight)
        if sign in POINTS
        else surprise(steps.values[:, at], steps.off == 0.0, steps.weight)
        for at, sign in enumerate(names)
    }
    return fit_scale(steps, starts, name=name, embedder=embedder, asks=ASKS)


def steps_of(runs: Sequence[Run], names: Sequence[str]) -> Steps:
    """Return the values, labels and weights of the steps that are fitted on."""
    values, off, sources = [], [], []
    for run in runs:
        if not run["fits"]:
            continue
        bad = run["bad"]
        end = len(run["rows"]) if bad is None else min(len(run["rows"]), bad + SPAN)
        for at in range(end):
            signs = run["rows"][at][0]
            values.append([math.nan if signs.get(name) is None else signs[name] for name in names])
            off.append(float(bad is not None and at >= bad))
            sources.append("planted" if run["source"] in PLANTED else run["source"])
    truth, source = np.array(off), np.array(sources)
    weight = np.zeros(len(truth))
    others = sorted(set(sources) - {"planted"})
    for name in sorted(set(sources)):
        good, bad_steps = (source == name) & (truth == 0), (source == name) & (truth == 1)
        share = 1.0 if not others else OWN if name == "planted" else (1 - OWN) / len(others)
        weight[good] = 0.8 * share / max(good.sum(), 1)
        weight[bad_steps] = 0.2 * (0.85 if name == "planted" else 0.075) / max(bad_steps.sum(), 1)
    return Steps(np.array(values), truth, weight)


def fold(run: Run) -> int:
    """Return the fold of a run's task."""
    return crc32(run["group"].encode()) % 5


def lights(run: Run, scale: Scale) -> list[tuple[float | None, str, str]]:
    """Return risk, band and decision after every step."""
    found: list[tuple[float | None, str, str]] = []
    for signs, asked in run["rows"]:
        wanted = [Asked(rule, kind) for rule, kind in asked if rule != "course" and asks_itself(rule, scale)]
        light = combine(signs, scale, wanted)
        found.append((light.risk, str(light.band), light.kind))
    return found


Judged = dict[str, list[tuple[float | None, str, str]]]


def cross_validated(runs: Sequence[Run], names: Sequence[str], *, leave_kind: bool) -> Judged:
    """Return the lights of every run by a scale fitted without its task, and on request without its kind.

    Runs of other writers are judged by a scale fitted without any of theirs.
    """
    found: Judged = {}
    kinds = sorted({run["kind"] for run in runs if run["kind"]}) if leave_kind else []
    written = [run for run in runs if run["source"] == WRITERS]
    if written:
        scale = fit([run for run in runs if run["source"] != WRITERS], names)
        found = {run["id"]: lights(run, scale) for run in written}
    for number in range(5):
        rest = [run for run in runs if fold(run) != number]
        test = [run for run in runs if fold(run) == number and run["source"] != WRITERS]
        scale = fit(rest, names)
        found |= {run["id"]: lights(run, scale) for run in test}
        for kind in kinds:
            left = [run for run in test if run["kind"] == kind]
            if left:
                scale = fit([run for run in rest if run["kind"] != kind], names)
                found |= {run["id"]: lights(run, scale) for run in left}
    return found


def highest(judged: Sequence[tuple[float | None, str, str]], first: int, end: int | None) -> float:
    return max((risk for risk, _, _ in judged[first:end] if risk is not None), default=-1.0)


def alarmed(judged: Sequence[tuple[float | None, str, str]]) -> list[bool]:
    """Return after which steps the band is orange or red."""
    return [band in BANDS[2:] for _, band, _ in judged]


def auroc(bad: Sequence[float], good: Sequence[float]) -> float:
    wins = np.array(bad)[:, None] - np.array(good)[None]
    return float(((wins > 0) + 0.5 * (wins == 0)).mean())


def pair_table(
    runs: Sequence[Run], judged: Judged, source: str = "derailed"
) -> dict[str, tuple[float, float, float, int]]:
    """Return kind -> pair accuracy, AUROC, alarmed within five steps of the onset, pairs."""
    by_id = {run["id"]: run for run in runs}
    pairs: dict[str, list[tuple[float, float, bool]]] = defaultdict(list)
    for run in runs:
        if not run["derailed"] or run["source"] != source:
            continue
        twin, bad = by_id[run["labels"]["twin"]], run["bad"]
        end = min(len(run["rows"]), len(twin["rows"]))
        hit = any(alarmed(judged[run["id"]])[bad : bad + 6])
        pair = (highest(judged[run["id"]], bad, end), highest(judged[twin["id"]], bad, end), hit)
        for kind in (run["kind"], "ALL", *(() if run["kind"] in CLAIMS else ("BEHAVIOUR",))):
            pairs[kind].append(pair)
    table = {}
    for kind, found in pairs.items():
        won = float(np.mean([1.0 if bad > good else 0.5 if bad == good else 0.0 for bad, good, _ in found]))
        area = auroc([bad for bad, _, _ in found], [good for _, good, _ in found])
        table[kind] = (won, area, float(np.mean([hit for *_, hit in found])), len(found))
    return table


def calm_table(runs: Sequence[Run], judged: Judged) -> None:
    """Say how often good runs are alarmed, by source."""
    groups: dict[str, list[list[bool]]] = defaultdict(list)
    red: Counter[str] = Counter()
    for run in runs:
        if run["bad"] is not None or not run["fits"]:
            continue
        name = run["source"]
        if name in PLANTED:
            name += ": look-alikes" if run["labels"].get("kind") else ": good twins"
        groups[name].append(alarmed(judged[run["id"]]))
        red[name] += any(band == "red" for _, band, _ in judged[run["id"]])
    tell(f"{'good runs':28} {'runs':>5} {'ever orange or red':>19} {'ever red':>9} {'episodes a 100 steps':>21}")
    for name, alarms in sorted(groups.items()):
        ever = np.mean([any(each) for each in alarms])
        steps = sum(map(len, alarms))
        begun = sum(now and not before for each in alarms for before, now in zip([False, *each], each, strict=False))
        tell(f"{name:28} {len(alarms):5d} {ever:18.1%} {red[name] / len(alarms):9.1%} {100 * begun / steps:21.2f}")


def calibration_error(runs: Sequence[Run], judged: Judged) -> Sequence[tuple[float, float]]:
    """Say how far risks are from shares, in 15 equal-count bins, weighted to the prior; all sources and each.

    Return the bins of all sources.
    """
    whole: Sequence[tuple[float, float]] = ()
    risks: dict[str, list[tuple[float, float, float]]] = defaultdict(list)
    for run in runs:
        if not run["fits"]:
            continue
        bad = run["bad"]
        end = len(run["rows"]) if bad is None else min(len(run["rows"]), bad + SPAN)
        for at, (risk, _, _) in enumerate(judged[run["id"]][:end]):
            if risk is not None:
                entry = (risk, float(bad is not None and at >= bad), 1.0)
                risks[run["source"]].append(entry)
                risks["ALL"].append(entry)
    tell(f"{'calibration by source':28} {'steps':>7} {'off course':>11} {'ECE':>6}")
    for name, found in sorted(risks.items()):
        data = np.array(found)
        off = data[:, 1]
        error, bins = reliability(data[:, 0], off)
        tell(f"{name:28} {len(data):7d} {off.mean():11.1%} {error:6.3f}")
        if name == "ALL":
            whole = bins
            tell(
                "  reliability, mean risk -> share off course: "
                + ", ".join(f"{risk:.3f} -> {share:.3f}" for risk, share in bins)
            )
    return whole


def diagram(bins: Sequence[tuple[float, float]]) -> str:
    """Return the reliability diagram as SVG: mean risk of each bin across, share off course up, both logarithmic."""
    side, edge, least = 300, 46, 0.003

    def place(value: float) -> float:
        return side * (math.log(max(value, least)) - math.log(least)) / -math.log(least)

    ticks = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {side + edge + 14} {side + edge + 14}"'
        ' font-family="sans-serif" font-size="11" role="img" aria-label="Reliability of the risk">',
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<g transform="translate({edge} 10)" fill="none" stroke="#999">',
        f'<rect width="{side}" height="{side}"/><line x1="0" y1="{side}" x2="{side}" y2="0" stroke-dasharray="4 3"/>',
        "</g>",
        f'<g transform="translate({edge} 10)" fill="#1c1f24">',
    ]
    for tick in ticks:
        at = place(tick)
        lines.append(f'<text x="{at:.0f}" y="{side + 14}" text-anchor="middle">{tick:g}</text>')
        lines.append(f'<text x="-6" y="{side - at + 4:.0f}" text-anchor="end">{tick:g}</text>')
    lines.append(f'<text x="{side / 2:.0f}" y="{side + 30}" text-anchor="middle">mean risk of a bin</text>')
    lines.append(
        f'<text transform="translate(-34 {side / 2:.0f}) rotate(-90)" text-anchor="middle">share off course</text>'
    )
    lines += [
        f'<circle cx="{place(risk):.1f}" cy="{side - place(share):.1f}" r="4" fill="#2463a8"/>' for risk, share in bins
    ]
    return "\n".join([*lines, "</g>", "</svg>"]) + "\n"


def tell(text: str = "") -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def show_pairs(tables: Sequence[tuple[str, dict[str, tuple[float, float, float, int]]]]) -> None:
    tell(f"{'kind':34}" + "".join(f"{name + ': pairs AUROC hit<=5':>32}" for name, _ in tables))
    kinds = sorted(tables[0][1], key=lambda kind: (kind.isupper(), kind))
    for kind in kinds:
        cells = "".join("{:>20.2f} {:5.2f} {:5.2f}".format(*table[kind][:3]) for _, table in tables)
        tell(f"{kind:34}{cells}")


def ablation(runs: Sequence[Run], names: Sequence[str]) -> None:
    """Say what each sign is worth: the figures without it."""
    tell(f"{'without':28} {'pairs':>6} {'AUROC':>6} {'hit<=5':>7}")
    for left in ("", *names):
        rest = [name for name in names if name != left]
        won, area, hit, _ = pair_table(runs, cross_validated(runs, rest, leave_kind=False))["BEHAVIOUR"]
        tell(f"{left or '(nothing)':28} {won:6.3f} {area:6.3f} {hit:7.2f}")


def scatter(runs: Sequence[Run]) -> FrozenDict[str, float]:
    """Return metric -> median over good runs of how far the first readings lie from their mean."""
    found: dict[str, float] = {}
    for sign in TEXTS:
        name = sign.removesuffix(CHANGE)
        spreads = []
        for run in runs:
            # steps of others repeat the signs of the agent's step before
            steps = [signs for at, (signs, _) in enumerate(run["rows"]) if not at or signs != run["rows"][at - 1][0]]
            values = [signs[name] for signs in steps if signs.get(name) is not None][:FIRST]
            if run["bad"] is None and len(values) == FIRST:
                spreads.append(float(np.mean(np.abs(np.array(values) - np.mean(values)))))
        if spreads:
            found[name] = round(float(np.median(spreads)), 3)
    return FrozenDict(found)


def write(scale: Scale, path: Path) -> None:
    """Write a scale file."""
    curves = {
        name: {"values": list(curve.values), "log_odds": list(curve.log_odds)} for name, curve in scale.curves.items()
    }
    plain = {"name": scale.name, "embedder": scale.embedder, "base": scale.base, "asks": dict(scale.asks)}
    plain |= {"scatter": dict(scale.scatter)} if scale.scatter else {}
    path.write_text(json.dumps({**plain, "curves": curves}, indent=1) + "\n", "utf-8")
    tell(f"written: {path.relative_to(ROOT)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="fit on all runs and write the shipped scales")
    parser.add_argument("--more", type=Path, help="a folder of further labelled files")
    parser.add_argument("--only", default="", choices=("minilm", "events", "sensor"), help="one scale alone")
    parser.add_argument("--ablation", action="store_true", help="leave out each sign in turn")
    options = parser.parse_args()
    files = {file.name: file for file in sorted(RUNS.glob("*.jsonl.gz"))}
    if options.more is not None:
        files |= {file.name: file for file in sorted(options.more.glob("*.jsonl.gz"))}
    names = (*EVENTS, *SIMILAR)
    fits: tuple[tuple[str, str, Sequence[str], str], ...] = (
        ("minilm-5", "minilm", names, MiniLMEmbedder.fingerprint),
        ("events-5", "events", EVENTS, ""),
        ("minilm-sensor-1", "sensor", TEXTS, MiniLMEmbedder.fingerprint),
    )
    for name, embeds, signs, fingerprint in fits:
        if options.only not in ("", embeds):
            continue
        runs = measured(list(files.values()), embeds="sensor" if embeds == "sensor" else "minilm")
        tell(f"== {name}: {len(runs)} runs, {sum(len(run['rows']) for run in runs)} steps")
        if options.write:
            folder = SCALES / ("sensor" if embeds == "sensor" else "monitor")
            scale = fit(runs, signs, name, fingerprint)
            if embeds == "sensor":
                scale = msgspec.structs.replace(scale, asks=FrozenDict(), scatter=scatter(runs))
            write(scale, folder / f"{name.partition('-')[0]}.json")
        fitted, left = (cross_validated(runs, signs, leave_kind=leave) for leave in (False, True))
        show_pairs([("kind fitted", pair_table(runs, fitted)), ("kind left out", pair_table(runs, left))])
        tell()
        if any(run["source"] == WRITERS for run in runs):
            tell("runs of other writers, none of which is in the fit")
            show_pairs([("not fitted", pair_table(runs, fitted, WRITERS))])
            tell()
        calm_table(runs, fitted)
        tell()
        bins = calibration_error(runs, fitted)
        tell()
        if options.write and embeds == "minilm":
            DIAGRAM.write_text(diagram(bins), "utf-8")
        if options.ablation and embeds == "minilm":
            ablation(runs, signs)


if __name__ == "__main__":
    main()
