// Rows of the overview: one session each, children under their parents.

import { el } from "./dom.js";
import { bandOf, decision, light, outcome, spark, strip } from "./lights.js";
import { sessionPath } from "./shell.js";
import { cut, INDEX, many, percent, share, short, time, usd } from "./words.js";

/** Put each session under the newest one of its parent that began before it; the order stays that of the worst. */
export function tree(lines) {
  const of = new Map();
  for (const line of lines) of.set(line.agent, [...(of.get(line.agent) ?? []), line]);
  const parentOf = (line) => {
    if (line.parent === null || line.parent === line.agent) return null;
    const all = of.get(line.parent) ?? [];
    const before = all.filter((one) => one.started <= line.started);
    return (before.length ? before : all).reduce(
      (best, one) => (!best || one.started > best.started ? one : best),
      null,
    );
  };
  const under = new Map(),
    roots = new Set();
  const rootOf = (line) => {
    const seen = new Set();
    for (let at = line; ;) {
      seen.add(at);
      const parent = parentOf(at);
      if (!parent || seen.has(parent)) return at;
      at = parent;
    }
  };
  for (const line of lines) {
    const root = rootOf(line);
    roots.add(root);
    const parent = line === root ? null : parentOf(line);
    if (parent) under.set(parent, [...(under.get(parent) ?? []), line]);
  }
  const found = [];
  const put = (line, depth) => {
    found.push({ ...line, depth });
    for (const child of under.get(line) ?? []) put(child, depth + 1);
  };
  for (const root of roots) put(root, 0);
  return found;
}

/** Leave lines where they are shown: each as it is now, else as it was last, and new ones at the end. */
export function inPlace(shown, lines, keyOf) {
  const now = new Map(lines.map((line) => [keyOf(line), line])),
    had = new Set(shown.map(keyOf));
  return [
    ...shown.map((line) => now.get(keyOf(line)) ?? line),
    ...lines.filter((line) => !had.has(keyOf(line))),
  ];
}

/** Make the row of a session. */
export function sessionRow(line) {
  const says = line.cause || (line.band === "unknown" ? "not measured yet" : "");
  return el(
    "li",
    { class: `row card ${bandOf(line.band)} depth-${Math.min(line.depth, 4)}` },
    el(
      "div",
      { class: "row-light" },
      light(line.band),
      el("span", { class: "number", title: INDEX }, share(line.index)),
    ),
    el(
      "div",
      { class: "row-who" },
      el(
        "a",
        { class: "cover", href: sessionPath(line.agent, line.session), "data-row": true },
        el("b", {}, line.agent || "(no name)"),
        el("span", { class: "hidden" }, ", session "),
        el("span", { class: "session" }, line.session),
      ),
      el(
        "span",
        { class: "chips" },
        line.live && el("span", { class: "chip live" }, el("span", { class: "dot", "aria-hidden": "true" }), "running"),
        outcome(line.outcome),
        decision(line.decision),
        line.refused > 0 && el("span", { class: "chip bad" }, `⊘ ${many(line.refused, "call")} refused`),
        line.label && el("span", { class: "chip" }, line.label === "good" ? "✓ good" : "✗ bad"),
        line.parent && el("span", { class: "chip faint" }, `of ${cut(line.parent, 24)}`),
      ),
    ),
    el(
      "div",
      { class: "row-why" },
      says && el("p", { class: "cause" }, says),
      line.goal && el("p", { class: "goal" }, line.goal),
    ),
    el("div", { class: "row-course" }, strip(line.strip), spark(line.spark)),
    el(
      "div",
      { class: "row-facts" },
      el("span", {}, many(line.steps, "step")),
      el("span", {}, time(line.last_ts)),
      el("span", {}, line.tokens ? `${short(line.tokens)} tokens` : ""),
      el("span", {}, line.cost_usd === null ? "" : usd(line.cost_usd)),
      line.context !== null && el("span", { title: "fill of the context window" }, `context ${percent(line.context)}`),
    ),
  );
}
