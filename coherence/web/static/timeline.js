// The course of a session as a chart: index and pressure over the bands, with marks. It never holds more points than
// it was given for its window, so a session of any length moves at the same speed.

import { el, svg } from "./dom.js";
import { BANDS, bandOf } from "./lights.js";
import { INDEX, PRESSURE, share } from "./words.js";

export const MARKS = {
  firing: ["✎", "told"],
  refusal: ["⊘", "refused"],
  finding: ["◆", "finding"],
  outcome: ["⚑", "outcome"],
  compaction: ["⇥", "compaction"],
  unblock: ["↺", "unblocked"],
  goal: ["◎", "goal"],
};
const LANE = 22;
const HEIGHT = 240;

let loading = null;

/** Load uPlot, once, and only where a chart is shown. */
function load() {
  loading ??= new Promise((resolve, reject) => {
    const script = el("script", { src: "/static/uplot.js" });
    script.addEventListener("load", () => resolve(window.uPlot));
    script.addEventListener("error", () => {
      loading = null;
      reject(new Error("the chart could not be loaded"));
    });
    document.head.append(el("link", { rel: "stylesheet", href: "/static/uplot.css" }), script);
  });
  return loading;
}

/** Return the colours of the page's theme, as a canvas needs them. */
function colours() {
  const probe = el("span", { class: "hidden" });
  document.body.append(probe);
  const found = {};
  for (const name of ["g", "y", "o", "r", "u", "ink", "soft", "edge", "line", "press", "card"]) {
    probe.style.setProperty("color", `var(--${name})`);
    found[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return found;
}

/** Return about `most` points at round steps, for the labels below. */
function labels(points, min, max, most) {
  const inside = points.filter((point) => point.seq >= min && point.seq <= max);
  if (!inside.length) return [];
  const wide = inside.at(-1).step - inside[0].step;
  let gap = 1;
  for (let at = 0; wide / gap > most; at++) gap = [2, 5, 10][at % 3] * 10 ** Math.floor(at / 3);
  const found = [];
  let next = Math.ceil(inside[0].step / gap) * gap;
  for (const point of inside) {
    if (point.step < next) continue;
    found.push(point);
    next = (Math.floor(point.step / gap) + 1) * gap;
  }
  return found;
}

/**
 * A chart in `box`. `onPick(seq)` is called with the event of the point that was chosen, `onWindow(first, last)` with
 * the part that was marked for a closer look.
 */
export class Chart {
  #plot = null;
  #points = [];
  #marks = [];
  #window = null;
  #chosen = null;
  #colours = {};
  #closed = false;

  constructor(box, { onPick, onWindow, read }) {
    this.box = box;
    this.on = { onPick, onWindow, read };
    this.resizer = new ResizeObserver(() => this.#resize());
    this.resizer.observe(box);
  }

  close() {
    this.#closed = true;
    this.resizer.disconnect();
    this.#plot?.destroy();
  }

  async show({ points, marks }, first, last) {
    const uPlot = await load();
    if (this.#closed) return;
    this.#points = points;
    this.#marks = marks;
    this.#window = [first, Math.max(last, first + 1)];
    if (!this.#plot) this.#make(uPlot);
    else
      this.#plot.batch(() => {
        this.#plot.setData(this.#data(), false);
        this.#scale();
      });
  }

  /** Move the window at once; the points for it come later. */
  move(first, last) {
    this.#window = [first, Math.max(last, first + 1)];
    this.#scale();
  }

  choose(seq) {
    this.#chosen = seq;
    this.#plot?.redraw(false);
  }

  repaint() {
    if (!this.#plot) return;
    this.#plot.destroy();
    this.#plot = null;
    this.#make(window.uPlot);
  }

  #data() {
    const points = this.#points;
    return [
      points.map((point) => point.seq),
      points.map((point) => point.index),
      points.map((point) => point.pressure),
    ];
  }

  #scale() {
    const [min, max] = this.#window,
      room = (max - min) * 0.01;
    this.#plot?.setScale("x", { min: min - room, max: max + room });
  }

  #resize() {
    const width = this.box.clientWidth;
    if (this.#plot && width && width !== this.#plot.width) this.#plot.setSize({ width, height: HEIGHT });
  }

  #make(uPlot) {
    const ink = (this.#colours = colours());
    const font = `12px ${getComputedStyle(document.body).fontFamily}`;
    const axis = { stroke: ink.soft, font, grid: { show: false }, ticks: { stroke: ink.edge, width: 1, size: 4 } };
    const dots = (plot) => this.#points.length <= 150 && plot.bbox.width / this.#points.length > 12;
    this.#plot = new uPlot(
      {
        width: this.box.clientWidth || 600,
        height: HEIGHT,
        padding: [LANE, 14, 0, 4],
        legend: { show: false },
        scales: { x: { time: false }, y: { range: [0, 1.02] } },
        cursor: {
          drag: { x: true, y: false, setScale: false, dist: 6 },
          y: false,
          points: { size: 7, fill: (_, at) => (at === 1 ? ink.line : ink.press), stroke: ink.card },
          bind: { dblclick: () => () => this.on.onWindow(null, null) },
        },
        series: [
          {},
          { stroke: ink.line, width: 2, points: { show: dots, size: 6, fill: ink.line }, spanGaps: false },
          { stroke: ink.press, width: 1.5, dash: [5, 4], points: { show: false }, spanGaps: false },
        ],
        axes: [
          {
            ...axis,
            size: 34,
            splits: (plot, _, min, max) =>
              labels(this.#points, min, max, plot.bbox.width / devicePixelRatio / 70).map((point) => point.seq),
            values: (_, splits) =>
              splits.map((seq) => `${this.#points.find((point) => point.seq === seq)?.step ?? ""}`),
          },
          {
            ...axis,
            size: 38,
            splits: () => [0, 0.25, 0.5, 0.75, 1],
            values: (_, splits) => splits.map((y) => (y % 0.5 ? "" : y.toFixed(1))),
            grid: { stroke: ink.edge, width: 1 },
          },
        ],
        hooks: {
          drawClear: [(plot) => this.#drawBands(plot)],
          draw: [(plot) => this.#drawMarks(plot)],
          setCursor: [(plot) => this.on.read(this.#points[plot.cursor.idx] ?? null)],
          setSelect: [
            (plot) => {
              const { left, width } = plot.select;
              if (width < 6) return;
              const [from, to] = [plot.posToVal(left, "x"), plot.posToVal(left + width, "x")];
              plot.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
              this.on.onWindow(Math.round(from), Math.round(to));
            },
          ],
        },
      },
      this.#data(),
      this.box,
    );
    this.#scale();
    let down = 0;
    this.#plot.over.addEventListener("mousedown", (event) => {
      down = event.clientX;
    });
    this.#plot.over.addEventListener("click", (event) => {
      if (Math.abs(event.clientX - down) > 5) return;
      const left = event.clientX - this.#plot.over.getBoundingClientRect().left;
      const point = this.#points[this.#plot.posToIdx(left)];
      if (point) this.on.onPick(point.seq);
    });
  }

  /** Paint the stretches of one band behind the lines, each with its letter. */
  #drawBands(plot) {
    const { ctx, bbox } = plot,
      points = this.#points,
      scale = devicePixelRatio;
    if (!points.length) return;
    const at = (seq) => Math.max(bbox.left, Math.min(bbox.left + bbox.width, plot.valToPos(seq, "x", true)));
    ctx.save();
    ctx.font = `600 ${11 * scale}px ${getComputedStyle(document.body).fontFamily}`;
    ctx.textBaseline = "bottom";
    ctx.textAlign = "left";
    for (let from = 0, to; from < points.length; from = to) {
      const band = bandOf(points[from].band);
      for (to = from + 1; to < points.length && bandOf(points[to].band) === band;) to += 1;
      const left = at(from ? (points[from - 1].seq + points[from].seq) / 2 : points[0].seq - 0.5);
      const right = at(to < points.length ? (points[to - 1].seq + points[to].seq) / 2 : points[to - 1].seq + 0.5);
      if (right <= left) continue;
      const colour = this.#colours[band === "unknown" ? "u" : band[0]];
      ctx.fillStyle = colour;
      ctx.globalAlpha = band === "unknown" ? 0.08 : 0.18;
      ctx.fillRect(left, bbox.top, right - left, bbox.height);
      ctx.globalAlpha = 1;
      ctx.fillRect(left, bbox.top + bbox.height - 4 * scale, right - left, 4 * scale);
      if (right - left > 16 * scale) {
        ctx.fillStyle = this.#colours.soft;
        ctx.fillText(BANDS[band].letter, left + 4 * scale, bbox.top + bbox.height - 6 * scale);
      }
    }
    ctx.restore();
  }

  /** Paint the chosen step and the marks above it all. */
  #drawMarks(plot) {
    const { ctx, bbox } = plot,
      scale = devicePixelRatio;
    const at = (seq) => plot.valToPos(seq, "x", true);
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left - 6 * scale, 0, bbox.width + 12 * scale, bbox.top + bbox.height);
    ctx.clip();
    if (this.#chosen !== null) {
      ctx.fillStyle = this.#colours.ink;
      ctx.fillRect(at(this.#chosen) - scale, bbox.top - 4 * scale, 2 * scale, bbox.height + 4 * scale);
    }
    ctx.font = `${13 * scale}px ${getComputedStyle(document.body).fontFamily}`;
    ctx.textAlign = "center";
    ctx.textBaseline = "middle";
    ctx.fillStyle = this.#colours.ink;
    let free = -Infinity;
    for (const mark of this.#marks) {
      const x = at(mark.seq);
      if (x < free) continue;
      free = x + 14 * scale;
      ctx.fillText(MARKS[mark.kind]?.[0] ?? "·", x, bbox.top - 11 * scale);
    }
    ctx.restore();
  }
}

/** Make the key to the chart's lines. */
export function chartKey() {
  const line = (kind) =>
    svg(
      "svg",
      { class: `sample ${kind}`, viewBox: "0 0 24 6", width: 24, height: 6, "aria-hidden": "true" },
      svg("path", { d: "M0 3h24" }),
    );
  return el(
    "p",
    { class: "chart-key" },
    el("span", { title: INDEX }, line("index"), " index, 1 is best"),
    el("span", { title: PRESSURE }, line("pressure"), " pressure, 0 is best"),
  );
}

/** Describe a window's points in words. */
export function described(points) {
  const known = points.map((point) => point.index).filter((index) => index !== null);
  if (!known.length) return "Nothing measured yet";
  return (
    `Index from ${share(known[0])} to ${share(known.at(-1))}, lowest ` +
    `${share(Math.min(...known))}; now ${points.at(-1).band}`
  );
}
