// Numbers and times for people: with units, short, the same everywhere.

import { el } from "./dom.js";

const whole = new Intl.NumberFormat("en");
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });
const full = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });

export const none = "–";

export const INDEX = "index: the chance that the run is on course now, 1 is best";
export const PRESSURE = "pressure: how unusual the newest steps are compared with this agent's own past, 0 is best";

export const count = (n) => whole.format(n);

export function many(n, one, more = `${one}s`) {
  return `${count(n)} ${n === 1 ? one : more}`;
}

export function short(n) {
  if (n < 10_000) return count(n);
  if (n < 999_500) return `${(n / 1e3).toFixed(n < 99_950 ? 1 : 0)}k`;
  return `${(n / 1e6).toFixed(n < 99_950_000 ? 1 : 0)}M`;
}

export function share(x) {
  return x === null || x === undefined ? none : x.toFixed(2);
}

export const percent = (x) => `${Math.round(x * 100)} %`;

export function usd(x) {
  if (x === null || x === undefined) return none;
  return `$${x.toFixed(x !== 0 && x < 0.1 ? 4 : 2)}`;
}

export function seconds(s) {
  if (s < 0.9995) return `${Math.round(s * 1000)} ms`;
  if (s < 59.95) return `${s.toFixed(1)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.round(s % 60)} s`;
  if (s < 172_800) return `${Math.floor(s / 3600)} h ${Math.round((s % 3600) / 60)} min`;
  return `${Math.round(s / 86_400)} days`;
}

export function ago(ts, now = Date.now() / 1000) {
  const s = now - ts;
  if (s < -5) return day.format(ts * 1000);
  if (s < 5) return "just now";
  if (s < 60) return `${Math.floor(s)} s ago`;
  if (s < 3600) return `${Math.floor(s / 60)} min ago`;
  if (s < 86_400) return `${Math.floor(s / 3600)} h ago`;
  if (s < 30 * 86_400) return `${Math.floor(s / 86_400)} d ago`;
  return day.format(ts * 1000);
}

const isDate = (ts) => Number.isFinite(ts) && Math.abs(ts) < 8e12;

/** Make a time: relative in words, absolute in its title; `tickTimes` keeps it true. */
export function time(ts) {
  if (!isDate(ts)) return el("span", {}, none);
  const date = new Date(ts * 1000);
  return el("time", { datetime: date.toISOString(), title: full.format(date), "data-ts": ts }, ago(ts));
}

export function tickTimes(root = document) {
  for (const element of root.querySelectorAll("time[data-ts]")) {
    const text = ago(Number(element.dataset.ts));
    if (element.textContent !== text) element.textContent = text;
  }
}
setInterval(tickTimes, 5000);

/** Cut a text for one line, in whole characters. */
export function cut(text, length) {
  const line = text.replace(/\s+/g, " ").trim();
  return line.length <= length ? line : `${[...line].slice(0, length - 1).join("")}…`;
}
