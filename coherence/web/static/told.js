// What an agent was told, what was refused, and whether it helped.

import { el, keyed, show } from "./dom.js";
import { about } from "./shell.js";
import { count, time } from "./words.js";

const VERDICTS = {
  better: ["good", "✓ better after it"],
  worse: ["bad", "✗ not better after it"],
  mixed: ["", "± mixed after it"],
  same: ["", "= the same after it"],
};
const MEASURED =
  "measured before and after; other things may have changed too; Experiments compares with withheld guidance";

/** What each label of something says. */
export const MEANINGS = {
  run: { good: "this run went well", bad: "this run went badly" },
  hint: { good: "this hint was right to be given", bad: "this hint was wrong to be given" },
  refusal: { good: "this refusal was right", bad: "this refusal was wrong" },
};

function verdict(one) {
  if (!one.delivered)
    return el("span", { class: "chip faint" }, one.arm === "control" ? "withheld, to compare" : "not delivered");
  const [kind, text] = Object.hasOwn(VERDICTS, one.verdict) ? VERDICTS[one.verdict] : ["faint", "… not known yet"];
  return el("span", { class: `chip ${kind}`, title: MEASURED }, text);
}

/** Make the buttons that say whether something was right; pressed again, a label is taken back. */
export function labels(label, what, meanings, send) {
  if (!about.write) return label ? el("span", { class: "chip" }, label === "good" ? "✓ good" : "✗ bad") : null;
  const button = (value, sign) =>
    el(
      "button",
      {
        type: "button",
        class: "toggle small",
        "aria-pressed": String(label === value),
        "aria-label": `${value}: ${what}`,
        title: meanings[value],
        click: () => send(label === value ? null : value),
      },
      `${sign} ${value}`,
    );
  return el("span", { class: "labels" }, button("good", "✓"), button("bad", "✗"));
}

/** Make a button that shows the step of an event. */
const eventLink = (seq, acts) =>
  el("button", { type: "button", class: "link", click: () => acts.step(seq) }, `#${seq}`);

/** Say at which event something was, or at which events the first and the last of several were. */
function placeOf(one, acts) {
  if (!acts?.step) return null;
  const [from, to] = [one.since, one.seq].map((seq) => eventLink(seq, acts));
  return one.count > 1 ? ["events ", from, " to ", to, " · "] : [to, " · "];
}

/** Make the first line of what was told: its sign and name, its state, and its event and time at the end. */
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
      placeOf(one, acts),
      time(one.ts),
    ),
  );
}

/** Show guidance that fired; `acts.step` opens its step, `acts.label` labels it. */
export function firing(one, acts) {
  return el(
    "li",
    { class: "told-item", "data-key": one.id },
    head("✎", one.pattern, verdict(one), one, acts),
    one.text && el("blockquote", { dir: "auto" }, one.text),
    el(
      "p",
      { class: "effect" },
      one.effect,
      " ",
      acts?.label && labels(one.label, `guidance ${one.pattern}`, MEANINGS.hint, (label) => acts.label(one.id, label)),
    ),
  );
}

/** Say what was refused, and how often. */
function refused(one) {
  if (!one.tool) return one.unblocked ? "All calls were refused" : "All calls are refused";
  return one.count > 1 ? `${one.tool} was refused ${count(one.count)} times` : `${one.tool} was refused`;
}

/** Show a refusal, or several of a kind. */
export function refusal(one, acts) {
  return el(
    "li",
    { class: "told-item refused", "data-key": one.id },
    head(
      "⊘",
      refused(one),
      one.unblocked && el("span", { class: "chip" }, "↺ let through"),
      one,
      acts,
    ),
    el("p", { dir: "auto" }, one.why),
    one.reason && el("p", { class: "faint", dir: "auto" }, `Reason to let it through: ${one.reason}`),
    el(
      "p",
      { class: "effect" },
      acts?.label && labels(one.label, "refusal", MEANINGS.refusal, (label) => acts.label(one.id, label)),
      acts?.unblock &&
        about.write &&
        !one.unblocked &&
        el("button", { type: "button", class: "button small", click: acts.unblock }, "Let it go on …"),
    ),
  );
}

/** Return what the agent was told and what was refused, the newest first. */
function toldOf(view) {
  const all = [
    ...view.firings.map((one) => ({ ...one, is: "firing" })),
    ...view.refusals.map((one) => ({ ...one, is: "refusal" })),
  ];
  return all.sort((one, other) => other.seq - one.seq);
}

/** Say how many of the texts that have arrived were measured, and after how many things were better. */
function score(firings) {
  const sent = firings.filter((one) => one.delivered),
    measured = sent.filter((one) => Object.hasOwn(VERDICTS, one.verdict));
  if (!sent.length) return "";
  const better = measured.filter((one) => one.verdict === "better");
  return measured.length ? `${count(better.length)} better of ${count(measured.length)} measured` : "none measured yet";
}

/** The card of all that the agent was told and of what was refused. */
export class ToldCard {
  constructor(acts) {
    this.acts = acts;
    this.note = el("span", { class: "faint", title: MEASURED });
    this.list = el("ul", {
      class: "told scrolls",
      tabindex: "0",
      "aria-label": "Guidance and refusals, the newest first",
    });
    this.none = el("p", { class: "none" }, "Nothing yet: no rule has fired, and no call was refused.");
    this.card = el(
      "section",
      { class: "card pad told-card blank" },
      el("div", { class: "section-head" }, el("h2", {}, "What the agent was told"), this.note),
      this.list,
      this.none,
    );
  }

  show(view) {
    const all = toldOf(view);
    show(this.note, score(view.firings));
    this.none.hidden = all.length > 0;
    this.list.hidden = !all.length;
    this.card.classList.toggle("blank", !all.length);
    keyed(
      this.list,
      all,
      (one) => one.id,
      (one) => (one.is === "firing" ? firing : refusal)(one, this.acts),
    );
  }
}
