// The course of a session: a chart whose window can be moved, since when there is trouble, and the moments.

import { get, Newest } from "./api.js";
import { el, show, showFor } from "./dom.js";
import { bandOf, light } from "./lights.js";
import { attempt } from "./shell.js";
import { Chart, chartKey, described, MARKS } from "./timeline.js";
import { count, cut, INDEX, many, PRESSURE, share, time } from "./words.js";

const POINTS = 600;
const TROUBLE = ["orange", "red"];

/** Tell whether a light is one of trouble. */
export const isTrouble = (band) => TROUBLE.includes(bandOf(band));

/** Return the points at which trouble begins: orange or red after a better light. */
function beginnings(points) {
  return points.filter((point, at) => isTrouble(point.band) && !(at > 0 && isTrouble(points[at - 1].band)));
}

const reading = (point) => [
  `step ${count(point.step)}`,
  point.count > 1 ? ` (worst of ${point.count})` : "",
  " · ",
  light(point.band),
  " · ",
  el("span", { title: INDEX }, `index ${share(point.index)}`),
  " · ",
  el("span", { title: PRESSURE }, `pressure ${share(point.pressure)}`),
  point.decision && point.decision !== "continue" ? ` · ${point.decision}` : "",
  " · ",
  time(point.ts),
];

/** A button with a sign, which a label explains. */
export const tool = (text, label, click) =>
  el("button", { type: "button", class: "button small", "aria-label": label, title: label, click }, text);

/** The card of a session's course; `onPick(seq)` is called with the event that was chosen. */
export class Course {
  #requests = new Newest();
  #window = null;
  #span = [1, 1];
  #step = null;
  #soon = 0;
  points = [];

  constructor(of, onPick) {
    this.of = of;
    this.onPick = onPick;
    this.box = el("div", { class: "chart", role: "img", "aria-label": "Course of the session" });
    this.readout = el("p", { class: "readout" });
    this.range = el("span", { class: "faint" });
    this.since = el("span", {});
    this.momentsTitle = el("summary", {});
    this.momentsList = el("ol", {});
    this.moments = el("details", { class: "moments", hidden: true }, this.momentsTitle, this.momentsList);
    this.card = el(
      "section",
      { class: "card pad course", "aria-label": "Course" },
      el(
        "div",
        { class: "section-head" },
        el("h2", {}, "Course"),
        chartKey(),
        el(
          "span",
          { class: "acts" },
          this.since,
          this.range,
          tool("+", "Zoom in (+)", () => this.zoom(0.5)),
          tool("−", "Zoom out (−)", () => this.zoom(2)),
          tool("All", "Show all (0)", () => this.all()),
        ),
      ),
      this.box,
      this.readout,
      this.moments,
    );
    this.chart = new Chart(this.box, {
      onPick,
      onWindow: (first, last) => this.#setWindow(first, last),
      read: (point) => show(this.readout, point ? reading(point) : this.#guide()),
    });
  }

  close() {
    this.#requests.stop();
    clearTimeout(this.#soon);
    this.chart.close();
  }

  /** Mark a step. */
  choose(step) {
    this.#step = step;
    this.chart.choose(step.seq || step.first);
  }

  /** Take in which events there are now. */
  grow(first, last) {
    this.#span = [first, last];
  }

  /** Load the part that is shown, and return it. */
  async load() {
    const timeline = await this.#requests.run((signal) =>
      get(
        "timeline",
        { ...this.of, first: this.#window?.[0] ?? 1, last: this.#window?.[1], points: POINTS },
        signal,
      ),
    );
    this.points = timeline.points;
    const shown = this.#window ?? [timeline.first, timeline.last];
    show(
      this.range,
      this.#window
        ? `events ${count(shown[0])} to ${count(shown[1])} of ${count(timeline.total)}`
        : many(timeline.total, "event"),
    );
    this.box.setAttribute("aria-label", described(this.points));
    this.box.classList.toggle("blank", !this.points.length);
    await this.chart.show(timeline, ...shown);
    if (this.#step) this.choose(this.#step);
    show(this.readout, this.#guide());
    if (!this.#window) this.#showSince();
    this.#showMoments(timeline.marks);
    return timeline;
  }

  /** Return the point of the lowest index. */
  worst() {
    return this.points
      .filter((point) => point.index !== null)
      .reduce((low, point) => (!low || point.index < low.index ? point : low), null);
  }

  /** Return the next point at which trouble begins, after the last one again the first. */
  nextTrouble() {
    const begun = beginnings(this.points);
    return begun.find((point) => point.seq > (this.#step?.last ?? 0)) ?? begun[0];
  }

  all() {
    this.#setWindow(null, null);
  }

  zoom(by) {
    const [first, last] = this.#window ?? this.#span,
      step = this.#step;
    const inside = step && step.first >= first && step.last <= last;
    const middle = inside ? (step.first + step.last) / 2 : (first + last) / 2;
    const half = Math.max(2, ((last - first) * by) / 2);
    this.#setWindow(Math.round(middle - half), Math.round(middle + half));
  }

  #setWindow(first, last) {
    if (first === null) this.#window = null;
    else {
      const least = this.#span[0],
        most = Math.max(this.#span[1], least + 1);
      const from = Math.max(least, Math.min(first, most - 4)),
        to = Math.min(most, Math.max(last, from + 4));
      this.#window = from <= least && to >= most ? null : [from, to];
    }
    this.chart.move(...(this.#window ?? this.#span));
    clearTimeout(this.#soon);
    this.#soon = setTimeout(() => attempt(() => this.load()), 60);
  }

  #guide() {
    return this.points.length ? "Point at the chart to read it." : "";
  }

  /** Say since when the light has been orange or red, if it is now; the button shows that step. */
  #showSince() {
    const began = isTrouble(this.points.at(-1)?.band) ? beginnings(this.points).at(-1) : undefined;
    showFor(this.since, [began?.seq, began?.step], () =>
      began
        ? el(
            "button",
            { type: "button", class: "link", click: () => this.onPick(began.seq) },
            `In trouble since step ${count(began.step)}`,
          )
        : [],
    );
  }

  #showMoments(marks) {
    this.moments.hidden = !marks.length;
    show(this.momentsTitle, many(marks.length, "moment"));
    showFor(this.momentsList, marks, () =>
      marks.map((mark) =>
        el(
          "li",
          {},
          el(
            "button",
            { type: "button", class: "link", click: () => this.onPick(mark.seq) },
            el("span", { class: "sign", "aria-hidden": "true" }, MARKS[mark.kind]?.[0] ?? "·"),
            ` ${MARKS[mark.kind]?.[1] ?? mark.kind} #${count(mark.seq)}`,
          ),
          " ",
          el("span", {}, cut(mark.text, 200)),
          " ",
          el("span", { class: "faint" }, time(mark.ts)),
        ),
      ),
    );
  }
}
