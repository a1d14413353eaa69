// One step: what was found, on what evidence, what was said and done, and what it cost.

import { el, table } from "./dom.js";
import { bandOf, decision, light } from "./lights.js";
import { about } from "./shell.js";
import { firing, refusal } from "./told.js";
import { count, INDEX, many, PRESSURE, seconds, share, short, time, usd } from "./words.js";

const LONG = 1500;
const SEVERITY = { guide: "▲", warn: "◆", block: "■" };
const SPEAKERS = { user: "U", assistant: "A", system: "S", tool: "T" };
const KINDS = {
  tool_call: ["→", "call"],
  tool_result: ["←", "result"],
  usage: ["$", "model call"],
  goal: ["◎", "goal"],
  outcome: ["⚑", "outcome"],
  feedback: ["☆", "feedback"],
  correction: ["!", "correction"],
  memory: ["≡", "memory"],
  compaction: ["⇥", "compaction"],
  fault: ["✗", "fault"],
  purged: ["·", "purged"],
};

/** Show a text as it is; a long one can be opened. */
export function said(text, { mono = false } = {}) {
  if (!text) return el("p", { class: "none" }, "empty");
  const characters = text.length;
  const cls = `said${mono ? " mono" : ""}`;
  if (characters <= LONG) return el("p", { class: cls, dir: "auto" }, text);
  const rest = el("details", {}, el("summary", {}, `Show all ${count(characters)} characters`));
  rest.addEventListener("toggle", () => {
    if (rest.open && rest.childElementCount === 1) rest.append(el("p", { class: cls, dir: "auto" }, text));
  });
  return [el("p", { class: cls, dir: "auto" }, `${text.slice(0, LONG)}…`), rest];
}

/** Lay arguments out; what is no JSON is shown as it is. */
function laidOut(call) {
  try {
    return JSON.stringify(JSON.parse(call), null, 2);
  } catch {
    return call;
  }
}

/** Return the sign of an event and its name in words. */
export function eventName(event) {
  if (event.kind === "tick") return ["∿", event.tool ? `asked before ${event.tool}` : "measured"];
  if (event.kind === "message") return [SPEAKERS[event.role] ?? "·", event.role];
  const [sign, word] = KINDS[event.kind] ?? ["·", event.kind];
  return [sign, event.tool ? `${event.tool} ${word}` : word];
}

/** Return the amounts of an event that are known. */
function spent(event) {
  return [
    event.model,
    event.tokens_in !== null && `${short(event.tokens_in)} tokens in`,
    event.tokens_out !== null && `${short(event.tokens_out)} out`,
    event.cost_usd !== null && usd(event.cost_usd),
    event.duration_s !== null && seconds(event.duration_s),
  ].filter(Boolean);
}

function eventCard(event, lit) {
  const [sign, name] = eventName(event);
  if (event.kind === "tick") {
    return el(
      "li",
      { class: "event small-event" },
      el(
        "p",
        { class: "event-head" },
        el("span", { class: "sign", "aria-hidden": "true" }, sign),
        name,
        el("span", { class: "faint" }, `#${event.seq}`),
      ),
    );
  }
  const hasText = event.text || !(event.call || spent(event).length);
  return el(
    "li",
    { class: `event${event.error ? " failed" : ""}`, id: `event-${event.seq}` },
    el(
      "p",
      { class: "event-head" },
      el("span", { class: "sign", "aria-hidden": "true" }, sign),
      el("b", {}, name),
      event.error && el("span", { class: "chip bad" }, "✗ failed"),
      el("span", { class: "faint" }, `#${event.seq}`),
      el(
        "span",
        { class: "faint end" },
        spent(event).map((part, at) => [at ? " · " : "", part]),
        spent(event).length ? " · " : "",
        time(event.ts),
      ),
    ),
    event.call && said(laidOut(event.call), { mono: true }),
    hasText &&
      (lit ? marked(event.text, lit.start, lit.end) : said(event.text, { mono: event.kind === "tool_result" })),
  );
}

/** Show a text with one part of it marked, and enough around it to understand it. */
export function marked(text, start, end, around = 400) {
  if (end <= start) return said(text);
  // the server counts characters, strings here count UTF-16 units
  const all = [...text],
    from = Math.max(0, start - around),
    to = Math.min(all.length, end + around);
  const part = (a, b) => all.slice(a, b).join("");
  return el(
    "p",
    { class: "said", dir: "auto" },
    from > 0 && "… ",
    part(from, start),
    el("mark", {}, part(start, end)),
    part(end, to),
    to < all.length && " …",
  );
}

function meter(score, threshold) {
  if (score === null || threshold === null) return null;
  return el("span", { class: "faint" }, `score ${share(score)}, limit ${share(threshold)}`);
}

/** Return evidence that reads the same once, with all its events. */
function sameTogether(evidence) {
  const found = new Map();
  for (const one of evidence) {
    const key = JSON.stringify([one.text, one.start, one.end, one.kind]);
    if (found.has(key)) found.get(key)[1].push(one.seq);
    else found.set(key, [one, [one.seq]]);
  }
  return [...found.values()];
}

function finding(found) {
  const severity = found.severity || "noted";
  return el(
    "li",
    { class: `finding ${Object.hasOwn(SEVERITY, severity) ? severity : "continue"}` },
    el(
      "p",
      { class: "finding-head" },
      el("span", { class: "shape", "aria-hidden": "true" }, SEVERITY[severity] ?? "·"),
      el("b", {}, found.rule),
      el("span", { class: "chip" }, severity),
      found.active === false && el("span", { class: "chip faint" }, "noted, not acted on"),
      meter(found.score, found.threshold),
    ),
    el("p", {}, found.why),
    found.action && el("p", { class: "advice" }, el("b", {}, "What helps: "), found.action),
    sameTogether(found.evidence).map(([one, seqs]) =>
      el(
        "figure",
        {},
        el(
          "figcaption",
          {},
          `Evidence: ${seqs.length > 1 ? "the same in events" : "event"} `,
          seqs.map((seq) => `#${seq}`).join(", "),
          one.kind && `, ${one.kind.replace("_", " ")}`,
        ),
        one.text
          ? marked(one.text, one.start, one.end)
          : el("p", { class: "none" }, "This event is not kept any more."),
      ),
    ),
  );
}

function losses(step) {
  const rows = Object.entries(step.losses ?? {})
    .filter(([, lost]) => lost > 0)
    .sort((a, b) => b[1] - a[1]);
  if (!rows.length) return null;
  return [
    el("h3", {}, "What lowers the index"),
    el(
      "ul",
      { class: "losses" },
      rows.map(([sign, lost]) =>
        el(
          "li",
          {},
          el("span", {}, el("b", {}, sign), step.told?.[sign] && ` – ${step.told[sign]}`),
          el("span", { class: "number" }, `−${lost.toFixed(2)}`),
        ),
      ),
    ),
  ];
}

function measures(step) {
  const names = Object.keys(step.metrics);
  if (!names.length) return null;
  return el(
    "details",
    {},
    el("summary", {}, many(names.length, "measurement")),
    table(
      ["Metric", "Value", "Better"],
      names.map((name) =>
        el(
          "tr",
          {},
          el("th", { scope: "row" }, name),
          el(
            "td",
            { class: "number" },
            step.metrics[name] === null
              ? `unknown${step.unknown?.[name] ? `: ${step.unknown[name]}` : ""}`
              : share(step.metrics[name]),
          ),
          el("td", {}, step.inverted.includes(name) ? "low" : "high"),
        ),
      ),
    ),
  );
}

const total = (events, name) =>
  events.reduce((sum, event) => (event[name] === null ? sum : (sum ?? 0) + event[name]), null);

/** Show a step; `acts` says what may be done with what was told. */
export function stepCard(step, acts) {
  const tokens = [total(step.events, "tokens_in"), total(step.events, "tokens_out")];
  const cost = total(step.events, "cost_usd"),
    took = total(step.events, "duration_s");
  const lit = new Map(
    step.findings
      .flatMap((one) => one.evidence)
      .filter((one) => one.end > one.start)
      .map((one) => [one.seq, one]),
  );
  const sameText = (event) => {
    const one = lit.get(event.seq);
    return one && one.text === event.text ? one : null;
  };
  return [
    el(
      "p",
      { class: "facts" },
      step.seq ? light(bandOf(step.band)) : el("span", { class: "faint" }, "not measured"),
      decision(step.decision),
      step.seq > 0 && [
        el("span", { title: INDEX }, "index ", el("b", {}, share(step.index))),
        el("span", { title: PRESSURE }, "pressure ", el("b", {}, share(step.pressure))),
      ],
      tokens.some((n) => n !== null) &&
        el("span", {}, el("b", {}, short((tokens[0] ?? 0) + (tokens[1] ?? 0))), " tokens"),
      cost !== null && el("span", {}, el("b", {}, usd(cost))),
      took !== null && el("span", {}, el("b", {}, seconds(took))),
    ),
    step.cause.includes(" ") && el("p", { class: "cause big" }, step.cause),
    step.findings.length > 0 && [
      el("h3", {}, "What was found"),
      el("ul", { class: "findings" }, step.findings.map(finding)),
    ],
    step.message && [el("h3", {}, "In words"), said(step.message)],
    (step.firings.length > 0 || step.refusals?.length > 0) && [
      el("h3", {}, "Guidance and refusals"),
      el(
        "ul",
        { class: "told" },
        step.firings.map((one) => firing(one, acts)),
        (step.refusals ?? []).map((one) => refusal(one, acts)),
      ),
    ],
    losses(step),
    el("h3", {}, "What was said and done"),
    el(
      "ol",
      { class: "events" },
      step.events.map((event) => eventCard(event, sameText(event))),
    ),
    measures(step),
    (step.errors ?? []).length > 0 && el("p", { class: "faint" }, `Not measured: ${step.errors.join("; ")}`),
    !about.write &&
      step.firings.length > 0 &&
      el("p", { class: "faint" }, "Read only. Start with --write to label guidance."),
  ];
}
