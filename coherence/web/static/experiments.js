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

function card(one) {
  const [kind, sign] = VERDICTS[one.verdict] ?? ["", "·"];
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
        el("span", { class: `chip ${kind}` }, `${sign} ${one.verdict}`),
        one.policy && el("span", { class: "chip" }, one.policy === "promote" ? "always sent" : "never sent"),
      ),
      el(
        "p",
        { class: "faint" },
        `${many(one.firings, "firing")}: ${count(one.treatments)} chosen to be sent, ` +
          `${count(one.delivered)} delivered; ${many(one.pairs, "pair")} measured`,
        left > 0 && `, ${count(left)} more before a verdict`,
        one.decided_at !== null && `, decided after ${many(one.decided_at, "pair")}`,
        !one.steady && "; the effect has changed over time",
      ),
      (one.needed ?? 0) > 0 &&
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
          "No pair was measured yet: an effect shows after a firing that was sent and one that was withheld.",
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

export function open(root) {
  const requests = new Newest(),
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
    list,
    empty,
  );

  async function load() {
    const found = await requests.run((signal) => get("experiments", {}, signal));
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
