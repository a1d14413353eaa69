// All sessions: which agent is in trouble, and why.

import { get, Newest } from "./api.js";
import { el, keyed, show } from "./dom.js";
import { BANDS, FROM_BEST } from "./lights.js";
import { inPlace, sessionRow, tree } from "./rows.js";
import { announce, attempt, noteAddress } from "./shell.js";
import { count, cut, many } from "./words.js";

const PAGE = 100;
const MOST = 1000;
const SORTS = [
  ["worst", "worst first"],
  ["newest", "newest first"],
  ["cost", "costly first"],
  ["steps", "most steps"],
  ["agent", "by agent"],
];
const AGES = [
  ["", "any time"],
  ["3600", "last hour"],
  ["86400", "last 24 hours"],
  ["604800", "last 7 days"],
  ["dates", "between …"],
];
const STATES = [
  ["", "any"],
  ["running", "running"],
  ["open", "not ended"],
  ["succeeded", "succeeded"],
  ["failed", "failed"],
];
const LABELS = [
  ["", "any"],
  ["good", "good"],
  ["bad", "bad"],
  ["none", "none yet"],
];
const NARROWING = ["text", "agent", "band", "rule", "state", "label", "age"];
const NAMES = [...NARROWING, "sort", "from", "to"];

const keyOf = (line) => JSON.stringify([line.agent, line.session]);
const option = ([value, text]) => el("option", { value }, text);

export function open(root, _names, query) {
  const asked = Object.fromEntries(NAMES.map((name) => [name, query.get(name) ?? ""]));
  asked.sort ||= "worst";
  const requests = new Newest();
  let limit = PAGE,
    bands = new Map(),
    shown = [],
    chosen = true,
    flat = query.get("flat") === "1";

  const choice = (name, label, options) => {
    const select = el(
      "select",
      { id: `by-${name}`, change: () => choose({ [name]: select.value }) },
      options.map(option),
    );
    return el("label", { class: "field" }, el("span", {}, label), select);
  };
  const search = el("input", {
    type: "search",
    id: "by-text",
    "data-search": true,
    placeholder: "goal, agent, any text",
    autocomplete: "off",
    input: () => {
      clearTimeout(typed);
      typed = setTimeout(() => choose({ text: search.value }), 200);
    },
  });
  let typed = 0;
  const buttons = FROM_BEST.toReversed().map((band) =>
    el(
      "button",
      {
        type: "button",
        class: "toggle",
        "data-band": band,
        click: () => choose({ band: asked.band === band ? "" : band }),
      },
      el("span", { class: `shape ${band === "unknown" ? "u" : band[0]}`, "aria-hidden": "true" }, BANDS[band].shape),
      ` ${band}`,
    ),
  );
  const fields = {
    agent: choice("agent", "Agent", [["", "all agents"]]),
    rule: choice("rule", "Rule", [["", "any rule"]]),
    age: choice("age", "When", AGES),
    state: choice("state", "State", STATES),
    label: choice("label", "Label", LABELS),
    sort: choice("sort", "Order", SORTS),
  };
  const date = (name, label) =>
    el(
      "label",
      { class: "field" },
      el("span", {}, label),
      el("input", { type: "date", id: `by-${name}`, change: (event) => choose({ [name]: event.target.value }) }),
    );
  const dates = el("div", { class: "dates", hidden: true }, date("from", "From"), date("to", "To"));
  const nest = el(
    "label",
    { class: "field check" },
    el("input", {
      type: "checkbox",
      id: "nest",
      checked: !flat,
      change: (event) => {
        flat = !event.target.checked;
        chosen = true;
        note();
        draw();
      },
    }),
    el("span", {}, "Under their parents"),
  );
  const found = el("p", { class: "found" }),
    list = el("ol", { class: "rows", "aria-label": "Sessions", pointerleave: mend, focusout: () => setTimeout(mend) });
  const empty = el("div", {}),
    more = el("p", { class: "more" });
  const folded = el(
    "div",
    { class: "folded", id: "filters" },
    el("div", { class: "toggles", role: "group", "aria-label": "Light" }, buttons),
    fields.agent,
    fields.rule,
    fields.age,
    fields.state,
    fields.label,
    dates,
  );
  const unfold = el(
    "button",
    {
      type: "button",
      class: "toggle unfold",
      "aria-expanded": "false",
      "aria-controls": "filters",
      click: () => unfold.setAttribute("aria-expanded", String(folded.classList.toggle("open"))),
    },
    "Filter",
  );
  let data = null;

  root.append(
    el(
      "div",
      { class: "head" },
      el("h1", {}, "Sessions"),
      el(
        "p",
        { class: "hint" },
        "Each row is one session of one agent; the light tells how it is doing now. Choose one to see why.",
      ),
    ),
    el(
      "form",
      { class: "filters", role: "search", submit: (event) => event.preventDefault() },
      el("label", { class: "field wide" }, el("span", {}, "Search"), search),
      unfold,
      folded,
    ),
    el("div", { class: "between" }, found, nest, fields.sort),
    list,
    empty,
    more,
  );

  function note() {
    const kept = new URLSearchParams(
      Object.entries(asked).filter(([name, value]) => value && !(name === "sort" && value === "worst")),
    );
    if (flat) kept.set("flat", "1");
    noteAddress(kept);
  }

  function choose(changes) {
    Object.assign(asked, changes);
    limit = PAGE;
    chosen = true;
    note();
    put();
    attempt(load);
  }

  /** Show what was asked for in the fields. */
  function put() {
    for (const button of buttons) button.setAttribute("aria-pressed", String(asked.band === button.dataset.band));
    for (const name of Object.keys(fields)) {
      const select = fields[name].querySelector("select");
      if (asked[name] && ![...select.options].some((one) => one.value === asked[name]))
        select.append(option([asked[name], asked[name]]));
      select.value = asked[name];
    }
    if (document.activeElement !== search) search.value = asked.text;
    const narrowed = NARROWING.filter((name) => name !== "text" && asked[name]).length;
    unfold.textContent = narrowed ? `Filter (${narrowed})` : "Filter";
    dates.hidden = asked.age !== "dates";
    for (const name of ["from", "to"]) dates.querySelector(`#by-${name}`).value = asked[name];
  }

  function since() {
    if (asked.age === "dates") return asked.from && new Date(`${asked.from}T00:00`).getTime() / 1000;
    return asked.age ? Math.floor(Date.now() / 1000) - Number(asked.age) : "";
  }

  function until() {
    return asked.age === "dates" && asked.to ? new Date(`${asked.to}T23:59:59.999`).getTime() / 1000 : "";
  }

  async function load() {
    data = await requests.run((signal) =>
      get(
        "overview",
        {
          agent: asked.agent,
          band: asked.band,
          rule: asked.rule,
          state: asked.state,
          text: asked.text,
          label: asked.label,
          sort: asked.sort,
          since: since(),
          until: until(),
          limit,
        },
        signal,
      ),
    );
    for (const [name, values, all] of [
      ["agent", data.agents, "all agents"],
      ["rule", data.rules, "any rule"],
    ]) {
      const select = fields[name].querySelector("select");
      if (document.activeElement !== select)
        show(select, [["", all], ...values.map((value) => [value, cut(value, 60)])].map(option));
    }
    put();
    draw();
    tellChanges();
  }

  /** Tell whether somebody points at a row, by pointer or keyboard: it must not go away under them. */
  function isHeld() {
    const pointed = matchMedia("(hover: hover)").matches && list.matches(":hover");
    return pointed || list.querySelector(":focus-visible") !== null;
  }

  /** Put the rows in order once nobody points at them. */
  function mend() {
    if (list.isConnected && !isHeld()) draw();
  }

  function draw() {
    if (!data) return;
    const ordered = flat ? data.lines.map((line) => ({ ...line, depth: 0 })) : tree(data.lines);
    const lines = !chosen && isHeld() ? inPlace(shown, ordered, keyOf) : ordered;
    const waits = lines.length !== ordered.length || lines.some((line, at) => line !== ordered[at]);
    chosen = false;
    shown = lines;
    nest.hidden = !data.lines.some((line) => line.parent !== null);
    keyed(list, lines, keyOf, sessionRow);
    const filtered = NARROWING.some((name) => asked[name]);
    const sessions = many(data.total, "session");
    show(
      found,
      data.total > 0 && (filtered ? `${count(data.matched)} of ${sessions}` : sessions),
      waits && "; the order waits while you point at a row",
    );
    show(
      empty,
      data.matched
        ? []
        : filtered
          ? el(
              "div",
              { class: "empty card" },
              el("h2", {}, "No session fits"),
              el("p", {}, "Take a filter away, or search for fewer words."),
              el(
                "button",
                {
                  type: "button",
                  class: "button",
                  click: () => {
                    choose(Object.fromEntries([...NARROWING, "from", "to"].map((name) => [name, ""])));
                    search.value = "";
                  },
                },
                "Show all sessions",
              ),
            )
          : el(
              "div",
              { class: "empty card" },
              el("h2", {}, "No agent has been recorded yet"),
              el("p", {}, "Record one into this store; it appears here while it runs."),
              el("pre", {}, 'client = coherence.wrap(OpenAI(), store="runs.db")'),
              el("p", {}, "Or watch recorded runs go by: ", el("code", {}, "coherence demo --live")),
            ),
    );
    const left = data.matched - data.lines.length;
    show(
      more,
      left > 0 && limit < MOST
        ? el(
            "button",
            {
              type: "button",
              class: "button",
              click: () => {
                limit = Math.min(MOST, limit + PAGE);
                attempt(load);
              },
            },
            `Show ${Math.min(PAGE, left)} more`,
          )
        : left > 0
          ? `${count(left)} more: filter or search to find them`
          : [],
    );
  }

  function tellChanges() {
    const told = [];
    for (const line of data.lines) {
      const before = bands.get(keyOf(line));
      if (before !== undefined && FROM_BEST.indexOf(line.band) > Math.max(1, FROM_BEST.indexOf(before)))
        told.push(`${cut(line.agent, 40)} is ${line.band} now`);
    }
    bands = new Map(data.lines.map((line) => [keyOf(line), line.band]));
    if (told.length) announce(told.slice(0, 3).join("; "));
  }

  put();
  return {
    title: "Sessions",
    refresh: load,
    close: () => {
      clearTimeout(typed);
      requests.stop();
    },
    ready: load(),
  };
}
