// The head of a session's page: its light, the reason, the goal and its figures.

import { el } from "./dom.js";
import { decision, light } from "./lights.js";
import { about, sessionPath } from "./shell.js";
import { said } from "./step.js";
import { labels } from "./told.js";
import { count, cut, percent, share, short, time, usd } from "./words.js";

/** Make the part of the page above the chart. */
export function sessionHead(view, acts) {
  const { line } = view;
  return [
    el(
      "p",
      { class: "crumbs" },
      el("a", { href: "/" }, "Sessions"),
      " / ",
      line.parent && [el("a", { href: `/?agent=${encodeURIComponent(line.parent)}` }, line.parent), " / "],
      line.agent,
    ),
    el(
      "div",
      { class: "title" },
      light(line.band),
      el("h1", {}, line.agent || "(no name)", " ", el("span", { class: "session" }, line.session)),
      line.live && el("span", { class: "chip live" }, el("span", { class: "dot", "aria-hidden": "true" }), "running"),
      decision(line.decision),
    ),
    line.cause && el("p", { class: "cause big" }, line.cause),
    el(
      "div",
      { class: "goals" },
      el("h2", { class: "small-head" }, (view.goals ?? []).length > 1 ? "Newest goal" : "Goal"),
      line.goal ? said((view.goals ?? []).at(-1) || line.goal) : el("p", { class: "none" }, "No goal was recorded."),
    ),
    el(
      "dl",
      { class: "figures" },
      [
        ["index", share(line.index)],
        ["pressure", share(line.pressure)],
        ["steps", count(line.steps)],
        ["tokens", line.tokens ? short(line.tokens) : "–"],
        ["cost", usd(line.cost_usd)],
        line.context !== null && ["context", percent(line.context)],
        view.calls !== undefined && [
          "calls",
          `${count(view.calls)}${view.errors ? `, ${count(view.errors)} failed` : ""}`,
        ],
        ["started", time(line.started)],
        ["newest event", time(line.last_ts)],
        ["source", line.source || "–"],
        view.ended && ["ended", view.ended],
      ]
        .filter(Boolean)
        .map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value))),
    ),
    el(
      "p",
      { class: "acts" },
      about.write
        ? [
            el("span", { class: "faint" }, "This run was "),
            labels(line.label, "this run", acts.labelRun),
            el("button", { type: "button", class: "button small", click: acts.comment }, "Label with a comment …"),
          ]
        : line.label && el("span", { class: "chip" }, line.label === "good" ? "✓ labelled good" : "✗ labelled bad"),
      el(
        "a",
        {
          class: "button small",
          href: `/compare?a=${encodeURIComponent(line.agent)}&b=${encodeURIComponent(line.session)}`,
        },
        "Compare with …",
      ),
      (view.subagents ?? []).map(([agent, session]) =>
        el("a", { class: "button small", href: sessionPath(agent, session) }, `└ ${cut(agent, 30)}`),
      ),
    ),
  ];
}
