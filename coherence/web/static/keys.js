// The whole page by keyboard.

import { by, el, show } from "./dom.js";
import { light } from "./lights.js";
import { INDEX, PRESSURE } from "./words.js";

const PAGES = { s: "/", c: "/compare", f: "/fleet", l: "/lessons", u: "/guard", e: "/experiments" };
const KEYS = [
  ["j, k", "next, previous: session, step or card"],
  ["Enter", "open"],
  ["/", "search"],
  ["Esc", "leave a field, close, go back to the sessions"],
  ["g then s, c, f, l, u, e", "go to sessions, compare, fleet, lessons, guard, experiments"],
  ["t", "light or dark"],
  ["?", "this help"],
];
const SESSION_KEYS = [
  ["← →", "previous, next step"],
  ["Home, End", "first, last step"],
  ["+ − 0", "zoom in, out, show all"],
  ["n", "next step where trouble begins"],
  ["f", "follow the newest step"],
];

const isTyping = (target) => target.matches("input, textarea, select, [contenteditable]");

/** Move the focus among the rows that are shown. */
export function moveRow(by) {
  const rows = [...document.querySelectorAll("main [data-row]")].filter((row) => row.offsetParent !== null);
  if (!rows.length) return;
  const at = rows.indexOf(document.activeElement?.closest("[data-row]"));
  const next = rows[at < 0 ? (by > 0 ? 0 : rows.length - 1) : Math.max(0, Math.min(rows.length - 1, at + by))];
  next.focus();
  next.closest("[data-key]")?.scrollIntoView({ block: "nearest" });
}

/** Listen to the keyboard; `page()` is the page that is shown, whose `keys` come first. */
export function listen({ page, go, theme }) {
  let goes = false;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing) return;
    if (document.querySelector("dialog[open]")) return;
    if (isTyping(event.target)) {
      if (event.key === "Escape") {
        event.target.blur();
        by("main").focus({ preventScroll: true });
      }
      return;
    }
    const was = goes;
    goes = false;
    const act = was
      ? PAGES[event.key] && (() => go(PAGES[event.key]))
      : (page()?.keys?.[event.key] ??
        {
          "?": help,
          "/": () => document.querySelector("main [data-search]")?.focus(),
          j: () => moveRow(1),
          k: () => moveRow(-1),
          t: theme,
          g: () => {
            goes = true;
          },
          Escape: () => location.pathname !== "/" && go("/"),
        }[event.key]);
    if (!act) return;
    event.preventDefault();
    act(event);
  });
}

const table = (caption, rows) => [
  el("h3", {}, caption),
  el(
    "dl",
    { class: "keys" },
    rows.map(([key, text]) => [el("dt", {}, el("kbd", {}, key)), el("dd", {}, text)]),
  ),
];

/** Show the keys and the signs. */
export function help() {
  const dialog = by("help");
  show(
    dialog,
    el("h2", { id: "help-title" }, "Keys and signs"),
    table("Everywhere", KEYS),
    table("In a session", SESSION_KEYS),
    el("h3", {}, "The light"),
    el(
      "p",
      { class: "lights" },
      ["green", "yellow", "orange", "red", "unknown"].map((band) => light(band)),
    ),
    el(
      "p",
      {},
      [INDEX, PRESSURE].map((text) => {
        const [name, meaning] = text.split(": ");
        return [el("b", {}, name), `: ${meaning}. `];
      }),
      "In a strip of bars, a higher bar is better.",
    ),
    el(
      "div",
      { class: "acts" },
      el("button", { type: "button", class: "button main", click: () => dialog.close() }, "Close"),
    ),
  );
  dialog.showModal();
  dialog.scrollTop = 0; // not at the button, which has the focus
}
