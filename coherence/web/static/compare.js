// Two sessions side by side.

import { get, Newest } from "./api.js";
import { el, show, showFor, table } from "./dom.js";
import { bandOf, FROM_BEST, light, strip } from "./lights.js";
import { go, sessionPath } from "./shell.js";
import { Chart, chartKey, described } from "./timeline.js";
import { count, cut, INDEX, many, percent, share, short, time, usd } from "./words.js";

const CHOICES = 200;

const OUTCOMES = { succeeded: "✓ succeeded", failed: "✗ failed", ended: "ended", "": "not ended" };
const WORDS = { "of ticks": "of steps measured" };
const isShare = (rate) => rate.unit.startsWith("of ");

function amount(rate, value) {
  if (value === null) return "–";
  if (isShare(rate)) return percent(value);
  if (rate.unit === "USD" || rate.unit === "$") return usd(value);
  const text = Number.isInteger(value) ? short(value) : Math.abs(value) < 10 ? share(value) : short(Math.round(value));
  return rate.unit ? `${text} ${rate.unit}` : text;
}

function difference(rate) {
  if (rate.difference === null) return "–";
  if (rate.difference === 0) return "same";
  if (isShare(rate)) {
    const points = Math.round(Math.abs(rate.difference) * 100);
    return points ? `${rate.difference > 0 ? "+" : "−"}${many(points, "point")}` : "less than a point";
  }
  return `${rate.difference > 0 ? "+" : "−"}${amount(rate, Math.abs(rate.difference))}`;
}

/** Name an amount, and say what it is a share of. */
const rateName = (rate) => [
  rate.name.endsWith(" index") ? el("span", { title: INDEX }, rate.name) : rate.name,
  isShare(rate) && [" ", el("span", { class: "faint" }, WORDS[rate.unit] ?? rate.unit)],
];

function row(name, cells) {
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, name),
    cells.map((cell) => el("td", { class: "number" }, cell)),
  );
}

/** Make the row of how the tasks ended. */
function outcomeRow(one, other) {
  const words = [one, other].map((view) => OUTCOMES[view.line.outcome] ?? "–");
  return row("outcome", [...words, words[0] === words[1] ? "same" : "differs"]);
}

/** Order sessions by their light, the worst first, then the newest. */
const byLight = (lines) => {
  const badness = (line) => FROM_BEST.indexOf(bandOf(line.band));
  return lines.toSorted((one, other) => badness(other) - badness(one) || other.last_ts - one.last_ts);
};

const heading = (view) => {
  const { line } = view;
  return [
    el(
      "div",
      { class: "title" },
      light(line.band),
      el(
        "h2",
        {},
        el(
          "a",
          { href: sessionPath(line.agent, line.session) },
          line.agent,
          " ",
          el("span", { class: "session" }, line.session),
        ),
      ),
    ),
    el("p", { class: "cause" }, line.cause || "nothing to say"),
    line.goal && el("p", { class: "goal" }, cut(line.goal, 240)),
    strip(line.strip),
    el("p", { class: "faint" }, `${many(line.steps, "step")}, started `, time(line.started)),
  ];
};

export function open(root, _names, query) {
  const requests = new Newest();
  const pair = [
    [query.get("a"), query.get("b")],
    [query.get("c"), query.get("d")],
  ];
  const ready = pair.flat().every((name) => name);
  const value = ([agent, session]) => (agent && session ? JSON.stringify([agent, session]) : "");
  const pickers = ["The one", "The other"].map((label, at) => {
    const select = el(
      "select",
      { id: `pick-${at}`, "data-row": true, change: () => choose(at, select.value) },
      el("option", { value: "" }, "choose a session …"),
      value(pair[at]) && el("option", { value: value(pair[at]) }, `${pair[at][0]} ${pair[at][1]}`),
    );
    select.value = value(pair[at]);
    return el("label", { class: "field wide" }, el("span", {}, label), select);
  });
  const heads = [0, 1].map(() => el("div", { class: "card pad" })),
    boxes = [0, 1].map(() => el("div", { class: "chart", role: "img" }));
  const charts = [],
    tables = { class: "card pad wide-table", tabindex: "0", role: "region" };
  const rates = el("section", { ...tables, "aria-label": "Amounts" }),
    findings = el("section", { ...tables, "aria-label": "Rules that fired" });
  root.append(
    el(
      "div",
      { class: "head" },
      el("h1", {}, "Compare two sessions"),
      el("p", { class: "hint" }, "Two runs of the same task, or one before and one after a change: what differs?"),
    ),
    el("form", { class: "filters", submit: (event) => event.preventDefault() }, pickers),
  );

  function choose(at, text) {
    if (text) pair[at] = JSON.parse(text);
    const names = new URLSearchParams();
    pair.flat().forEach((name, i) => {
      if (name) names.set("abcd"[i], name);
    });
    go(`/compare?${names}`);
  }

  async function fillPickers() {
    const overview = await get("overview", { sort: "newest", limit: CHOICES });
    pickers.forEach((picker, at) => {
      const select = picker.querySelector("select"),
        kept = select.value;
      const lines = byLight(overview.lines).filter((line) => value([line.agent, line.session]) !== value(pair[at]));
      select.append(
        ...lines.map((line) =>
          el(
            "option",
            { value: value([line.agent, line.session]) },
            `${line.band}: ${cut(line.agent, 40)} ${cut(line.session, 40)}, ${many(line.steps, "step")}`,
          ),
        ),
      );
      select.value = kept;
    });
    if (!overview.lines.length)
      root.append(
        el(
          "div",
          { class: "empty card" },
          el("h2", {}, "There is nothing to compare yet"),
          el("p", {}, "Record two sessions into this store, then choose them here."),
        ),
      );
    else if (!ready) root.append(el("p", { class: "none" }, "Choose two sessions above."));
  }

  async function load() {
    const found = await requests.run((signal) =>
      get("compare", Object.fromEntries(pair.flat().map((name, at) => ["abcd"[at], name])), signal),
    );
    const sides = [
      [found.one, found.one_timeline],
      [found.other, found.other_timeline],
    ];
    await Promise.all(
      sides.map(async ([view, timeline], at) => {
        showFor(heads[at], view, () => heading(view));
        boxes[at].setAttribute("aria-label", described(timeline.points));
        await charts[at].show(timeline, timeline.first, timeline.last);
      }),
    );
    showFor(rates, [found.rates, found.one.line.outcome, found.other.line.outcome], () => [
      el("h2", {}, "Amounts"),
      table(
        ["Amount", "The one", "The other", "Difference"],
        [
          outcomeRow(found.one, found.other),
          found.rates.map((rate) =>
            row(rateName(rate), [amount(rate, rate.one), amount(rate, rate.other), difference(rate)]),
          ),
        ],
      ),
    ]);
    showFor(findings, found.findings, () => [
      el("h2", {}, "Rules that fired"),
      found.findings.length
        ? table(
            ["Rule", "The one", "The other"],
            found.findings.map(([rule, ...times]) =>
              row(
                rule,
                times.map((n) => `${count(n)}×`),
              ),
            ),
          )
        : el("p", { class: "none" }, "No rule fired in either of them."),
    ]);
  }

  async function first() {
    if (ready) {
      root.append(
        el(
          "div",
          { class: "halves" },
          heads.map((head, at) =>
            el("section", { class: "column" }, head, el("div", { class: "card pad" }, chartKey(), boxes[at])),
          ),
        ),
        el("div", { class: "halves" }, rates, findings),
      );
      [0, 1].forEach((at) =>
        charts.push(
          new Chart(boxes[at], {
            onPick: (seq) => go(sessionPath(...pair[at], seq)),
            onWindow: () => {},
            read: () => {},
          }),
        ),
      );
    }
    await Promise.all([fillPickers(), ready && load()]);
  }

  return {
    title: "Compare",
    refresh: (sessions) =>
      ready && (!sessions || sessions.some((one) => pair.some((two) => value(one) === value(two))))
        ? load()
        : undefined,
    repaint: () => charts.forEach((chart) => chart.repaint()),
    close: () => {
      requests.stop();
      charts.forEach((chart) => chart.close());
    },
    ready: first(),
  };
}
