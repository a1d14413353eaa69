// The head of a session's page: its light, the reason, the goal and its figures.

import { el } from "./dom.js";
import { decision, light, outcome } from "./lights.js";
import { about, sessionPath } from "./shell.js";
import { said } from "./step.js";
import { labels, MEANINGS } from "./told.js";
import { count, cut, INDEX, percent, PRESSURE, share, short, time, usd } from "./words.js";

/** Show a text in at most three lines, and a button for the rest if there is more; `state` keeps which it was. */
function clamped(text, state) {
  const words = el("p", { class: "cause big", dir: "auto" }, text);
  const more = el("button", {
    type: "button",
    class: "link small",
    hidden: !state.whole,
    click: () => put(!state.whole),
  });
  const put = (whole) => {
    state.whole = whole;
    words.classList.toggle("clamp", !whole);
    more.textContent = whole ? "less" : "more";
    more.setAttribute("aria-expanded", String(whole));
  };
  put(Boolean(state.whole));
  new ResizeObserver(() => {
    if (!state.whole) more.hidden = words.scrollHeight <= words.clientHeight + 1;
  }).observe(words);
  return el("div", {}, words, more);
}

/** Make the figures of a session. */
function figures(view) {
  const { line } = view;
  const calls = [
    count(view.calls),
    view.errors ? `${count(view.errors)} failed` : "",
    line.refused ? `${count(line.refused)} refused` : "",
  ];
  return el(
    "dl",
    { class: "figures" },
    [
      ["index", share(line.index), INDEX],
      ["pressure", share(line.pressure), PRESSURE],
      ["steps", count(line.steps)],
      ["tokens", line.tokens ? short(line.tokens) : "–"],
      ["cost", usd(line.cost_usd)],
      line.context !== null && ["context", percent(line.context)],
      ["calls", calls.filter(Boolean).join(", ")],
      ["started", time(line.started)],
      ["newest event", time(line.last_ts)],
      ["source", line.source || "–"],
      view.ended && ["ended", view.ended],
    ]
      .filter(Boolean)
      .map(([name, value, title]) => el("div", { title }, el("dt", {}, name), el("dd", {}, value))),
  );
}

/** Make the label of the run with its comment, and where changes are taken the buttons that set it. */
function runLabel({ line, comment: text }, acts) {
  const comment = text && el("q", { class: "comment", dir: "auto", title: text }, text);
  if (!about.write)
    return [
      line.label &&
        el(
          "span",
          { class: "chip", title: MEANINGS.run[line.label] },
          line.label === "good" ? "✓ labelled good" : "✗ labelled bad",
        ),
      comment,
    ];
  return [
    el("span", { class: "faint" }, "This run was "),
    labels(line.label, "this run", MEANINGS.run, acts.labelRun),
    comment,
    el(
      "button",
      { type: "button", class: "button small", click: acts.comment },
      comment ? "Edit the comment …" : "Label with a comment …",
    ),
  ];
}

/** Make the part of the page above the chart; `state` keeps what was opened in it. */
export function sessionHead(view, acts, state) {
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
      outcome(line.outcome),
      decision(line.decision),
    ),
    line.cause && clamped(view.cause || line.cause, state),
    el(
      "div",
      { class: "goals" },
      el("h2", { class: "small-head" }, (view.goals ?? []).length > 1 ? "Newest goal" : "Goal"),
      line.goal ? said((view.goals ?? []).at(-1) || line.goal) : el("p", { class: "none" }, "No goal was recorded."),
    ),
    figures(view),
    el(
      "p",
      { class: "acts" },
      runLabel(view, acts),
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
