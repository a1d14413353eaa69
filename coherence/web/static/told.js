// What an agent was told, what was refused, and whether it helped.

import { el } from "./dom.js";
import { about } from "./shell.js";
import { time } from "./words.js";

const outcome = (helped) =>
  helped === true
    ? el("span", { class: "chip good" }, "✓ helped")
    : helped === false
      ? el("span", { class: "chip bad" }, "✗ did not help")
      : el("span", { class: "chip faint" }, "… not known yet");

/** Make the buttons that say whether something was right; pressed again, a label is taken back. */
export function labels(label, what, send) {
  if (!about.write) return label ? el("span", { class: "chip" }, label === "good" ? "✓ good" : "✗ bad") : null;
  const button = (value, sign) =>
    el(
      "button",
      {
        type: "button",
        class: "toggle small",
        "aria-pressed": String(label === value),
        "aria-label": `${value}: ${what}`,
        click: () => send(label === value ? null : value),
      },
      `${sign} ${value}`,
    );
  return el("span", { class: "labels" }, button("good", "✓"), button("bad", "✗"));
}

/** Make the first line of what was told: its sign and name, its state, and its step and time at the end. */
function head(sign, name, state, one, acts) {
  return el(
    "p",
    { class: "told-head" },
    el("span", { class: "sign", "aria-hidden": "true" }, sign),
    el("b", {}, name),
    state,
    el(
      "span",
      { class: "faint end" },
      acts?.step && [
        el("button", { type: "button", class: "link", click: () => acts.step(one.seq) }, `#${one.seq}`),
        " · ",
      ],
      time(one.ts),
    ),
  );
}

/** Show guidance that fired; `acts.step` opens its step, `acts.label` labels it. */
export function firing(one, acts) {
  const state = one.delivered
    ? outcome(one.helped)
    : el("span", { class: "chip faint" }, one.arm === "control" ? "withheld, to compare" : "not delivered");
  return el(
    "li",
    { class: "told-item", "data-key": one.id },
    head("✎", one.pattern, state, one, acts),
    one.text && el("blockquote", { dir: "auto" }, one.text),
    el(
      "p",
      { class: "effect" },
      one.effect,
      " ",
      acts?.label && labels(one.label, `guidance ${one.pattern}`, (label) => acts.label(one.id, label)),
    ),
  );
}

/** Show a refusal. */
export function refusal(one, acts) {
  return el(
    "li",
    { class: "told-item refused", "data-key": one.id },
    head(
      "⊘",
      one.tool ? `${one.tool} was refused` : "Calls are refused",
      one.unblocked && el("span", { class: "chip" }, "↺ let through"),
      one,
      acts,
    ),
    el("p", { dir: "auto" }, one.why),
    one.reason && el("p", { class: "faint", dir: "auto" }, `Reason to let it through: ${one.reason}`),
    el(
      "p",
      { class: "effect" },
      acts?.label && labels(one.label, "refusal", (label) => acts.label(one.id, label)),
      acts?.unblock &&
        about.write &&
        !one.unblocked &&
        el("button", { type: "button", class: "button small", click: acts.unblock }, "Let it go on …"),
    ),
  );
}
