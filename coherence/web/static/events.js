// All events of a session in one list, however many: only what is in sight is there. Measurements are left out unless
// they are asked for; how many a part holds is guessed until it is loaded.

import { get, isAbort, Newest } from "./api.js";
import { el, show } from "./dom.js";
import { eventName } from "./step.js";
import { count, cut, many, time } from "./words.js";

const ROW = 40;
const PAGE = 100;
const AROUND = 8;
const MOST_ROWS = 600_000; // browsers lay out about 30 million pixels
const MOST_PAGES = 40;
const FOUND = 200;

const pageOf = (seq) => Math.floor((seq - 1) / PAGE);
const isMeasurement = (event) => event?.kind === "tick";

/** A list in `root` of a session's events; `onPick(seq)` is called with the one that was chosen. */
export class EventList {
  #pages = new Map(); // number of a page -> its events by number, and the last event that there was
  #rows = new Map(); // number of a page -> rows of it that are shown, once that is known
  #asked = new Set();
  #searching = new Newest();
  #first = 1;
  #last = 0;
  #chosen = [0, 0];
  #sought = null;
  #text = "";
  #found = null;
  #measured = false;
  #typed = 0;
  #closed = false;

  constructor(root, { agent, session, onPick }) {
    this.of = { agent, session };
    this.onPick = onPick;
    this.list = el("ol", { class: "event-rows" });
    this.box = el("div", { class: "event-box", tabindex: "0", role: "region", "aria-label": "Events" }, this.list);
    this.note = el("p", { class: "faint" });
    this.input = el("input", {
      type: "search",
      "data-search": true,
      placeholder: "search events",
      "aria-label": "Search the events of this session",
      input: () => {
        clearTimeout(this.#typed);
        this.#typed = setTimeout(() => this.#search(this.input.value.trim()), 200);
      },
    });
    this.toggle = el(
      "button",
      { type: "button", class: "toggle small", "aria-pressed": "false", click: () => this.#showMeasured() },
      "measurements",
    );
    root.append(
      el("div", { class: "section-head" }, el("h2", {}, "Events"), this.toggle, this.input),
      this.note,
      this.box,
    );
    this.box.addEventListener("scroll", () => this.#draw(), { passive: true });
  }

  close() {
    this.#closed = true;
    clearTimeout(this.#typed);
    this.#searching.stop();
  }

  /** Take in how many events there are now; what is shown stays where it is. */
  grow(kept, last) {
    const first = Math.max(kept, last - MOST_ROWS + 1, 1);
    if (first === this.#first && last === this.#last) return;
    if (first !== this.#first) {
      this.#pages.clear();
      this.#rows.clear();
    }
    this.#first = first;
    this.#last = last;
    if (this.#text) this.#search(this.#text);
    else this.#draw();
  }

  choose(first, last, { scroll = true } = {}) {
    this.#chosen = [first, last];
    if (scroll && !this.#found) {
      this.#sought = first;
      this.#seek();
    }
    this.#draw();
  }

  /** Bring what is sought into sight; again once its page is loaded, for until then its place is a guess. */
  #seek() {
    if (this.#sought === null || this.#found) return;
    const top = this.#rowOf(this.#sought) * ROW,
      { scrollTop, clientHeight } = this.box;
    this.#setHeight();
    if (top < scrollTop || top + ROW > scrollTop + clientHeight) this.box.scrollTop = top - clientHeight / 3;
    if (this.#pages.has(pageOf(this.#sought))) this.#sought = null;
  }

  #showMeasured() {
    this.#measured = !this.#measured;
    this.toggle.setAttribute("aria-pressed", String(this.#measured));
    this.choose(...this.#chosen);
  }

  async #search(text) {
    this.#text = text;
    if (!text) {
      this.#found = null;
      this.#draw();
      return;
    }
    try {
      this.#found = await this.#searching.run((signal) => get("events", { ...this.of, text, limit: FOUND }, signal));
      this.#draw();
    } catch (error) {
      if (!isAbort(error)) this.note.textContent = error.message;
    }
  }

  /** Return the events of a page that there are, from the first to the last number. */
  #spanOf(page) {
    return [Math.max(this.#first, page * PAGE + 1), Math.min(this.#last, (page + 1) * PAGE)];
  }

  /** Return the numbers of the events of a page that are shown; null where it is not loaded. */
  #seqsOf(page) {
    const known = this.#pages.get(page);
    if (!known) return null;
    const [from, to] = this.#spanOf(page),
      seqs = [];
    for (let seq = from; seq <= to; seq++) {
      const shown = this.#measured || (seq <= known.last && !isMeasurement(known.events.get(seq)));
      if (shown) seqs.push(seq);
    }
    return seqs;
  }

  /** Return how many rows a page has, or may have. */
  #rowsOf(page) {
    const [from, to] = this.#spanOf(page);
    if (this.#measured) return to - from + 1;
    return this.#seqsOf(page)?.length ?? this.#rows.get(page) ?? Math.ceil((to - from + 1) / 2);
  }

  /** Tell whether it is known how many rows there are. */
  #isCounted() {
    if (this.#found || this.#measured) return true;
    return [...this.#allPages()].every((page) => this.#pages.has(page) || this.#rows.has(page));
  }

  *#allPages() {
    if (this.#last < this.#first) return;
    for (let page = pageOf(this.#first); page <= pageOf(this.#last); page++) yield page;
  }

  #total() {
    if (this.#found) return this.#foundShown().length;
    let rows = 0;
    for (const page of this.#allPages()) rows += this.#rowsOf(page);
    return rows;
  }

  /** Return the row of an event, or of the next one that is shown. */
  #rowOf(seq) {
    let row = 0;
    for (const page of this.#allPages()) {
      if (page === pageOf(seq)) {
        const seqs = this.#seqsOf(page);
        if (!seqs) return row + Math.floor(((seq - this.#spanOf(page)[0]) / PAGE) * this.#rowsOf(page));
        const at = seqs.findIndex((one) => one >= seq);
        return row + (at < 0 ? seqs.length : at);
      }
      row += this.#rowsOf(page);
    }
    return row;
  }

  #foundShown() {
    return this.#measured ? this.#found : this.#found.filter((event) => !isMeasurement(event));
  }

  async #load(page) {
    if (this.#asked.has(page) || this.#closed) return;
    this.#asked.add(page);
    const last = this.#spanOf(page)[1];
    try {
      const events = await get("events", { ...this.of, after: page * PAGE, limit: PAGE });
      if (this.#closed) return;
      const before = this.#rowsOf(page),
        above = this.#rowOf(page * PAGE + 1) * ROW + before * ROW <= this.box.scrollTop;
      this.#pages.delete(page); // the newest one stands last
      this.#pages.set(page, { events: new Map(events.map((event) => [event.seq, event])), last });
      if (!this.#measured) this.#rows.set(page, this.#seqsOf(page).length);
      for (const old of this.#pages.keys()) {
        if (this.#pages.size <= MOST_PAGES) break;
        if (old !== page) this.#pages.delete(old);
      }
      this.#setHeight();
      // what is above what is in sight does not move it
      if (above) this.box.scrollTop += (this.#rowsOf(page) - before) * ROW;
      this.#seek();
    } catch (error) {
      if (!this.#closed) this.note.textContent = error.message;
      return;
    } finally {
      this.#asked.delete(page);
    }
    this.#draw();
  }

  #setHeight(rows = this.#total()) {
    this.list.style.setProperty("height", `${rows * ROW}px`);
    this.box.style.setProperty("max-height", `${Math.max(rows, 2) * ROW + 2}px`);
  }

  /** Return [row, number, event] of the rows from one to another, and load what is not there yet. */
  #items(from, to) {
    if (this.#found)
      return this.#foundShown()
        .slice(from, to)
        .map((event, at) => [from + at, event.seq, event]);
    const items = [];
    let top = 0;
    for (const page of this.#allPages()) {
      const rows = this.#rowsOf(page);
      if (top > to) break;
      if (top + rows >= from) {
        const known = this.#pages.get(page),
          [first, last] = this.#spanOf(page),
          seqs = this.#seqsOf(page);
        if (!known || known.last < last) this.#load(page);
        for (let at = Math.max(from, top); at < Math.min(to, top + rows); at++) {
          const seq = seqs ? seqs[at - top] : first + at - top;
          if (seq) items.push([at, seq, known?.events.get(seq) ?? null]);
        }
      }
      top += rows;
    }
    return items;
  }

  #noteText(rows) {
    const found = this.#found;
    if (found) return `${many(rows, "event")} with these words${found.length === FOUND ? ", of the first 200" : ""}`;
    const all = this.#last - this.#first + 1;
    if (all <= 0) return "No events yet. They appear here while the agent runs.";
    if (this.#measured) return `${many(all, "event")}; choose one to see its step`;
    return `${this.#isCounted() ? `${count(rows)} of ` : ""}${many(all, "event")}, without measurements`;
  }

  #draw() {
    const rows = this.#total();
    show(this.note, this.#noteText(rows));
    this.#setHeight(rows);
    const from = Math.max(0, Math.floor(this.box.scrollTop / ROW) - AROUND);
    const to = Math.min(rows, Math.ceil((this.box.scrollTop + this.box.clientHeight) / ROW) + AROUND);
    const items = this.#items(from, to),
      setSize = this.#isCounted() ? rows : -1;
    const focused = this.list.contains(document.activeElement) ? document.activeElement.dataset.seq : null;
    const nodes = items.map(([at, seq, event]) => this.#row(at, seq, event, setSize));
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
    const known = this.#pages.get(pageOf(seq));
    return el(
      "li",
      {
        class: `event-row${inStep ? " chosen" : ""}${event?.error ? " failed" : ""}`,
        "aria-setsize": rows,
        "aria-posinset": rows < 0 ? null : at + 1,
      },
      el(
        "button",
        { type: "button", "data-seq": seq, "aria-current": inStep ? "true" : null, click: () => this.onPick(seq) },
        el("span", { class: "seq" }, count(seq)),
        el("span", { class: "sign", "aria-hidden": "true" }, event?.error ? "✗" : sign),
        el("span", { class: "event-name" }, name || (known && seq <= known.last ? "not kept" : "…")),
        el("span", { class: "event-text" }, event ? cut((event.text || event.call).slice(0, 300), 160) : ""),
        event && time(event.ts),
      ),
    );
  }
}
