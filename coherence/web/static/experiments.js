// Does guidance help? Each pattern's texts are sent or withheld by chance, and what follows is compared.

import { get, Newest } from "./api.js";
import { el, keyed, show, svg } from "./dom.js";
import { count, many } from "./words.js";

const VERDICTS = {
  helps: ["good", "✓"],
  harms: ["bad", "✗"],
  "no difference": ["", "="],
  "no verdict yet": ["faint", "…"],
};
const signed = (x) => `${x < 0 ? "−" : "+"}${Math.abs(x).toFixed(2)}`;

/** Draw the effect and the range that it lies in, between -1 and 1. */
function interval({ low, high, effect }) {
  const x = (value) => 100 + 95 * Math.max(-1, Math.min(1, value));
  return svg(
    "svg",
    {
      class: "interval",
      viewBox: "0 0 200 30",
      role: "img",
      "aria-label": `Effect ${signed(effect)}, between ${signed(low)} and ${signed(high)}; above 0 it helps`,
    },
    svg("path", { class: "axis", d: "M5 15h190M100 5v20" }),
    svg("path", { class: "range", d: `M${x(low)} 15H${x(high)}M${x(low)} 10v10M${x(high)} 10v10` }),
    svg("circle", { cx: x(effect), cy: 15, r: 5 }),
  );
}

/** Tell whether nothing was withheld, so that there is nothing to compare with. */
const isAlwaysSent = (one) => one.pairs === 0 && one.firings > 0 && one.treatments === one.firings && !one.policy;

function card(one) {
  const alone = isAlwaysSent(one);
  const [kind, sign] = alone ? ["faint", "○"] : (VERDICTS[one.verdict] ?? ["", "·"]);
  const left = Math.max(0, (one.needed ?? 0) - one.pairs);
  return el(
    "li",
    { class: "card pad experiment" },
    el(
      "div",
      {},
      el(
        "p",
        { class: "told-head" },
        el(
          "a",
          { class: "plain-name", "data-row": true, href: `/?rule=${encodeURIComponent(one.pattern)}` },
          one.pattern,
        ),
        el("span", { class: `chip ${kind}` }, `${sign} ${alone ? "not compared" : one.verdict}`),
        one.policy && el("span", { class: "chip" }, one.policy === "promote" ? "always sent" : "never sent"),
      ),
      el(
        "p",
        { class: "faint" },
        `${many(one.firings, "firing")}: ${count(one.treatments)} chosen to be sent, ` +
          `${count(one.delivered)} delivered; ${many(one.pairs, "pair")} measured`,
        left > 0 &&
          !alone && `, ${count(left)} more before a verdict`,
        one.decided_at !== null && `, decided after ${many(one.decided_at, "pair")}`,
        !one.steady && "; the effect has changed over time",
      ),
      (one.needed ?? 0) > 0 &&
        !alone &&
        one.decided_at === null &&
        el("progress", {
          max: one.needed,
          value: Math.min(one.pairs, one.needed),
          "aria-label": `${count(one.pairs)} of ${count(one.needed)} pairs`,
        }),
    ),
    one.effect === null
      ? el(
          "p",
          { class: "none" },
          alone
            ? "None was withheld, so there is nothing to compare with."
            : "No pair was measured yet: an effect shows after a firing that was sent and one that was withheld.",
        )
      : el(
          "div",
          { class: "interval-box" },
          interval(one),
          el(
            "p",
            { class: "scale", "aria-hidden": "true" },
            el("span", {}, "harms"),
            el("span", {}, `${signed(one.effect)} (${signed(one.low)} to ${signed(one.high)})`),
            el("span", {}, "helps"),
          ),
        ),
  );
}

/** Say why there is nothing to compare, and how that is changed. */
const alwaysSent = () => [
  "Guidance that is not compared was always sent: withholding is off unless ",
  el("code", {}, "guidance = { randomise = true }"),
  " is set in the agent's configuration. Then one of every two hints of a pattern is withheld, by chance.",
];

export function open(root) {
  const requests = new Newest(),
    off = el("p", { class: "off card pad", hidden: true }),
    list = el("ul", { class: "cards", "aria-label": "Experiments" }),
    empty = el("div", {});
  root.append(
    el(
      "div",
      { class: "head" },
      el("h1", {}, "Experiments"),
      el(
        "p",
        { class: "hint" },
        "Of two firings of a pattern, one is sent and one is withheld, by chance. The effect is how " +
          "much more the pressure fell where it was sent.",
      ),
    ),
    off,
    list,
    empty,
  );

  async function load() {
    const found = await requests.run((signal) => get("experiments", {}, signal));
    off.hidden = !found.some(isAlwaysSent);
    show(off, alwaysSent());
    keyed(list, found, (one) => one.pattern, card);
    show(
      empty,
      found.length
        ? []
        : el(
            "div",
            { class: "empty card" },
            el("h2", {}, "No guidance has fired yet"),
            el(
              "p",
              {},
              "Each pattern that fires gets its own experiment here, and a verdict once there are enough pairs.",
            ),
          ),
    );
  }

  return { title: "Experiments", refresh: load, close: () => requests.stop(), ready: load() };
}
