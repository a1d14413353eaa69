// All events of a session in one list, however many: only what is in sight is there.

import { get, isAbort, Newest } from "./api.js";
import { el, show } from "./dom.js";
import { eventName } from "./step.js";
import { count, cut, many, time } from "./words.js";

const ROW = 40;
const PAGE = 100;
const AROUND = 8;
const MOST_ROWS = 600_000; // browsers lay out about 30 million pixels
const MOST_PAGES = 40;

/** A list in `root` of a session's events; `onPick(seq)` is called with the one that was chosen. */
export class EventList {
  #pages = new Map();
  #searching = new Newest();
  #first = 1;
  #last = 0;
  #chosen = [0, 0];
  #text = "";
  #found = null;

  constructor(root, { agent, session, onPick }) {
    this.of = { agent, session };
    this.onPick = onPick;
    this.list = el("ol", { class: "event-rows" });
    this.box = el("div", { class: "event-box", tabindex: "0", role: "region", "aria-label": "Events" }, this.list);
    this.note = el("p", { class: "faint" });
    let typed = 0;
    this.input = el("input", {
      type: "search",
      "data-search": true,
      placeholder: "search events",
      "aria-label": "Search the events of this session",
      input: () => {
        clearTimeout(typed);
        typed = setTimeout(() => this.#search(this.input.value.trim()), 200);
      },
    });
    root.append(el("div", { class: "section-head" }, el("h2", {}, "Events"), this.input), this.note, this.box);
    this.box.addEventListener("scroll", () => this.#draw(), { passive: true });
  }

  close() {
    this.#searching.stop();
  }

  /** Take in how many events there are now; what is shown stays where it is. */
  grow(first, last) {
    if (first === this.#first && last === this.#last) return;
    for (const page of [...this.#pages.keys()])
      if (page >= this.#pageOf(this.#last + 1) || first !== this.#first) this.#pages.delete(page);
    this.#first = Math.max(first, last - MOST_ROWS + 1, 1);
    this.#last = last;
    if (this.#text) this.#search(this.#text);
    else this.#draw();
  }

  choose(first, last, { scroll = true } = {}) {
    this.#chosen = [first, last];
    if (scroll && !this.#found) {
      const top = (first - this.#first) * ROW,
        { scrollTop, clientHeight } = this.box;
      if (top < scrollTop || top + ROW > scrollTop + clientHeight) this.box.scrollTop = top - clientHeight / 3;
    }
    this.#draw();
  }

  async #search(text) {
    this.#text = text;
    if (!text) {
      this.#found = null;
      this.#draw();
      return;
    }
    try {
      const events = await this.#searching.run((signal) => get("events", { ...this.of, text, limit: 200 }, signal));
      this.#found = events;
      this.#draw();
    } catch (error) {
      if (!isAbort(error)) this.note.textContent = error.message;
    }
  }

  #pageOf(seq) {
    return Math.floor((seq - 1) / PAGE);
  }

  async #load(page) {
    this.#pages.set(page, null);
    try {
      const events = await get("events", { ...this.of, after: page * PAGE, limit: PAGE });
      this.#pages.set(page, new Map(events.map((event) => [event.seq, event])));
      for (const old of this.#pages.keys()) {
        if (this.#pages.size <= MOST_PAGES) break;
        if (old !== page) this.#pages.delete(old);
      }
    } catch (error) {
      this.#pages.delete(page);
      this.note.textContent = error.message;
      return;
    }
    this.#draw();
  }

  #draw() {
    const many_ = this.#found;
    const rows = many_ ? many_.length : Math.max(0, this.#last - this.#first + 1);
    show(
      this.note,
      many_
        ? `${many(many_.length, "event")} with these words${many_.length === 200 ? ", the first 200" : ""}`
        : rows
          ? `${many(rows, "event")}; choose one to see its step`
          : "No events yet. They appear here while the agent runs.",
    );
    this.list.style.setProperty("height", `${rows * ROW}px`);
    this.box.style.setProperty("max-height", `${Math.max(rows, 2) * ROW + 2}px`);
    const from = Math.max(0, Math.floor(this.box.scrollTop / ROW) - AROUND);
    const to = Math.min(rows, Math.ceil((this.box.scrollTop + this.box.clientHeight) / ROW) + AROUND);
    const items = [];
    for (let at = from; at < to; at++) {
      if (many_) {
        items.push([at, many_[at].seq, many_[at]]);
        continue;
      }
      const seq = this.#first + at,
        page = this.#pageOf(seq);
      if (!this.#pages.has(page)) this.#load(page);
      items.push([at, seq, this.#pages.get(page)?.get(seq) ?? null]);
    }
    const focused = this.list.contains(document.activeElement) ? document.activeElement.dataset.seq : null;
    const nodes = items.map(([at, seq, event]) => this.#row(at, seq, event, rows));
    if (
      this.list.childNodes.length === nodes.length &&
      nodes.every((node, i) => node.isEqualNode(this.list.childNodes[i]))
    ) {
      nodes.forEach((node, i) => this.#place(this.list.childNodes[i], items[i][0]));
      return;
    }
    nodes.forEach((node, i) => this.#place(node, items[i][0]));
    this.list.replaceChildren(...nodes);
    if (focused) this.list.querySelector(`[data-seq="${focused}"]`)?.focus({ preventScroll: true });
  }

  #place(node, at) {
    node.style.setProperty("transform", `translateY(${at * ROW}px)`);
  }

  #row(at, seq, event, rows) {
    const inStep = seq >= this.#chosen[0] && seq <= this.#chosen[1];
    const [sign, name] = event ? eventName(event) : ["", ""];
    return el(
      "li",
      {
        class: `event-row${inStep ? " chosen" : ""}${event?.error ? " failed" : ""}`,
        "aria-setsize": rows,
        "aria-posinset": at + 1,
      },
      el(
        "button",
        { type: "button", "data-seq": seq, "aria-current": inStep ? "true" : null, click: () => this.onPick(seq) },
        el("span", { class: "seq" }, count(seq)),
        el("span", { class: "sign", "aria-hidden": "true" }, event?.error ? "✗" : sign),
        el("span", { class: "event-name" }, name || (this.#pages.get(this.#pageOf(seq)) === null ? "…" : "not kept")),
        el("span", { class: "event-text" }, event ? cut((event.text || event.call).slice(0, 300), 160) : ""),
        event && time(event.ts),
      ),
    );
  }
}
