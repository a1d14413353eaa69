// The light and the course of a session; a colour never stands without a letter or a shape.

import { el, svg } from "./dom.js";
import { many, share } from "./words.js";

export const BANDS = {
  green: { letter: "G", shape: "●", level: 4 },
  yellow: { letter: "Y", shape: "▲", level: 3 },
  orange: { letter: "O", shape: "◆", level: 2 },
  red: { letter: "R", shape: "■", level: 1 },
  unknown: { letter: "?", shape: "○", level: 0 },
};
const BY_LETTER = { g: "green", y: "yellow", o: "orange", r: "red", "?": "unknown" };
export const FROM_BEST = ["unknown", "green", "yellow", "orange", "red"];

export const bandOf = (name) => (Object.hasOwn(BANDS, name) ? name : "unknown");
const kind = (band) => (band === "unknown" ? "u" : band[0]);

/** Make a badge of a band: its shape and its word, or its letter where there is little room. */
export function light(name, { word = true } = {}) {
  const band = bandOf(name),
    { letter, shape } = BANDS[band];
  return el(
    "span",
    { class: `light ${kind(band)}` },
    el("span", { "aria-hidden": "true", class: "shape" }, shape),
    word ? band : [el("span", { "aria-hidden": "true" }, letter), el("span", { class: "hidden" }, band)],
  );
}

/** Draw the worst band of each part: the higher a bar, the better. */
export function strip(letters) {
  const cells = [...letters].map((letter) => BY_LETTER[letter] ?? "unknown");
  if (!cells.length) return el("span", { class: "none" }, "nothing measured yet");
  const tints = {},
    bars = {};
  cells.forEach((band, x) => {
    const key = kind(band),
      { level } = BANDS[band];
    tints[key] = `${tints[key] ?? ""}M${x} 0h1v4h-1z`;
    if (level) bars[key] = `${bars[key] ?? ""}M${x}.1 ${4 - level}h.8v${level}h-.8z`;
    else bars[key] = `${bars[key] ?? ""}M${x}.3 3.5h.4v.3h-.4z`;
  });
  const told = FROM_BEST.toReversed()
    .map((band) => [band, cells.filter((cell) => cell === band).length])
    .filter(([, n]) => n)
    .map(([band, n]) => `${n} ${band}`)
    .join(", ");
  return svg(
    "svg",
    {
      class: "strip",
      viewBox: `0 0 ${Math.max(cells.length, 12)} 4`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": `Course in ${many(cells.length, "part")}: ${told}; now ${cells.at(-1)}`,
    },
    Object.entries(tints).map(([key, d]) => svg("path", { class: `t ${key}`, d })),
    Object.entries(bars).map(([key, d]) => svg("path", { class: `b ${key}`, d })),
  );
}

/** Draw the index over time. */
export function spark(values) {
  const known = values.filter((value) => value !== null);
  if (known.length < 2) return null;
  const wide = Math.max(values.length, 12) - 1;
  let d = "",
    pen = "M";
  values.forEach((value, x) => {
    if (value === null) pen = "M";
    else {
      d += `${pen}${x} ${(4 * (1 - value)).toFixed(2)}`;
      pen = "L";
    }
  });
  return svg(
    "svg",
    {
      class: "spark",
      viewBox: `-.5 -.2 ${wide + 1} 4.4`,
      preserveAspectRatio: "none",
      role: "img",
      "aria-label": `Index from ${share(known[0])} to ${share(known.at(-1))}, lowest ${share(Math.min(...known))}`,
    },
    svg("path", { d }),
  );
}

const OUTCOMES = { succeeded: ["good", "✓ succeeded"], failed: ["bad", "✗ failed"], ended: ["", "ended"] };

/** Make a chip of how the task ended; none while it has not. */
export function outcome(name) {
  if (!Object.hasOwn(OUTCOMES, name ?? "")) return null;
  const [kind, text] = OUTCOMES[name];
  return el("span", { class: `chip ${kind}` }, text);
}

const DECISIONS = { continue: "▷", guide: "✎", warn: "⚠", block: "⊘" };

/** Make a badge of a decision; none for `continue`. */
export function decision(name) {
  if (name === "continue" || !name) return null;
  return el(
    "span",
    { class: `decision ${["guide", "warn", "block"].includes(name) ? name : ""}` },
    el("span", { "aria-hidden": "true" }, `${DECISIONS[name] ?? "·"} `),
    name,
  );
}
