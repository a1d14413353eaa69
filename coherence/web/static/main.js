// The start: which page is shown, and what reaches it.

import { login } from "./api.js";
import { by, el } from "./dom.js";
import { help, listen } from "./keys.js";
import { follow } from "./live.js";
import { announce, attempt, readAbout, settled, shell } from "./shell.js";
import { tickTimes } from "./words.js";

const PAGES = {
  "": () => import("./overview.js"),
  session: () => import("./session.js"),
  compare: () => import("./compare.js"),
  fleet: () => import("./fleet.js"),
  lessons: () => import("./lessons.js"),
  guard: () => import("./guard.js"),
  experiments: () => import("./experiments.js"),
};

let current = null;
let openings = 0;
let away = false;
let stop = null;

const decoded = (part) => {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
};

/** Mark the page that is shown among the links of the bar. */
function markPage(name) {
  for (const link of document.querySelectorAll(".bar nav a")) {
    const own = new URL(link.href).pathname.slice(1);
    if (own === name || (own === "" && name === "session")) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

/** Open the page of the address. */
async function open({ focus = false } = {}) {
  const [name, ...names] = location.pathname.split("/").slice(1).map(decoded);
  const opening = ++openings,
    main = by("main");
  current?.close?.();
  current = null;
  markPage(name);
  settled("page");
  if (!Object.hasOwn(PAGES, name)) {
    main.removeAttribute("aria-busy");
    main.replaceChildren(el("h1", {}, "No such page"), el("p", {}, el("a", { href: "/" }, "All sessions")));
    return;
  }
  main.setAttribute("aria-busy", "true");
  await attempt(async () => {
    const module = await PAGES[name]();
    if (opening !== openings) return;
    const root = el("div", { class: `page page-${name || "overview"}` });
    main.replaceChildren(root);
    const opened = (current = module.open(root, names, new URLSearchParams(location.search)));
    document.title = `${opened.title} · coherence`;
    if (focus) {
      scrollTo(0, 0);
      main.focus({ preventScroll: true });
      announce(opened.title);
    }
    await opened.ready;
  });
  if (opening === openings) main.removeAttribute("aria-busy");
}

const keepScroll = () => history.replaceState({ ...history.state, y: scrollY }, "");

shell.go = (path) => {
  keepScroll();
  history.pushState({}, "", path);
  return open({ focus: true });
};

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button || event.ctrlKey || event.metaKey || event.shiftKey) return;
  if (link.origin !== location.origin || link.target || link.getAttribute("href").startsWith("#")) return;
  event.preventDefault();
  shell.go(link.pathname + link.search);
});

addEventListener("popstate", async (event) => {
  const y = event.state?.y;
  await open({ focus: true });
  if (y !== undefined) scrollTo(0, y);
});
addEventListener("beforeunload", keepScroll);

const THEMES = ["auto", "light", "dark"];

function showTheme() {
  by("theme").textContent = `Theme: ${document.documentElement.dataset.theme ?? "auto"}`;
}

function switchTheme() {
  const root = document.documentElement;
  const next = THEMES[(THEMES.indexOf(root.dataset.theme ?? "auto") + 1) % THEMES.length];
  if (next === "auto") delete root.dataset.theme;
  else root.dataset.theme = next;
  localStorage.setItem("theme", next);
  showTheme();
  current?.repaint?.();
}

function showPulse(state) {
  by("pulse").dataset.state = state;
  by("pulse-text").textContent = { on: "live", off: "stopped", wait: "reconnecting" }[state];
}

shell.start = async () => {
  stop?.();
  await Promise.all([attempt(readAbout, "server"), open()]);
  stop = follow(
    async (sessions) => {
      await attempt(() => current?.refresh?.(sessions));
      tickTimes();
    },
    (state) => {
      showPulse(state);
      // a server that was started again asks for its own token, and may take changes now
      if (state === "wait" || (state === "on" && away)) attempt(readAbout, "server");
      away = state === "wait";
    },
  );
};

by("theme").addEventListener("click", switchTheme);
by("help-open").addEventListener("click", help);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => current?.repaint?.());
listen({ page: () => current, go: shell.go, theme: switchTheme });
showTheme();
const token = new URLSearchParams(location.hash.slice(1)).get("token");
if (token) {
  history.replaceState(history.state, "", location.pathname + location.search);
  await attempt(() => login(token), "login");
}
await shell.start();
