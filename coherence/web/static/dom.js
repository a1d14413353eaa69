// Elements. What comes from a store becomes a text node or the value of a harmless attribute, never markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name.startsWith("on") || name === "style" || name === "srcdoc")
      throw new TypeError(`no attribute ${name}`);
    else element.setAttribute(name, value === true ? "" : value);
  }
  add(element, children);
  return element;
}

/** Append texts, elements and lists of them; nothing for null, undefined and false. */
export function add(element, ...children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    element.append(child);
  }
  return element;
}

/** Make an HTML element; a function among the attributes listens to the event of that name. */
export function el(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Make an SVG element. */
export function svg(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

/** Make a table of rows under heads; its caption is for those who do not see it. */
export function table(heads, rows, caption = null) {
  return el(
    "table",
    { class: "plain-table" },
    caption && el("caption", { class: "hidden" }, caption),
    el(
      "thead",
      {},
      el(
        "tr",
        {},
        heads.map((name) => el("th", { scope: "col" }, name)),
      ),
    ),
    el("tbody", {}, rows),
  );
}

export const by = (id) => document.getElementById(id);

/** Replace what an element holds, unless it says the same already. What has the focus finds its likeness again. */
export function show(element, ...children) {
  const next = document.createDocumentFragment();
  add(next, children);
  if (same(element.childNodes, next.childNodes)) return;
  const focused =
    element.contains(document.activeElement) && document.activeElement !== element
      ? nameOf(document.activeElement)
      : null;
  element.replaceChildren(next);
  if (focused)
    [...element.querySelectorAll("a, button, summary")]
      .find((one) => nameOf(one) === focused)
      ?.focus({ preventScroll: true });
}

const nameOf = (element) => element.getAttribute("aria-label") ?? element.textContent;
const same = (one, other) => one.length === other.length && [...one].every((node, at) => node.isEqualNode(other[at]));

/** Show what `make` returns, and make it anew only if the data is another: what somebody opened in it stays open. */
export function showFor(element, data, make) {
  const state = JSON.stringify(data);
  if (element.state === state) return;
  element.state = state;
  show(element, make());
}

/**
 * Keep the children of a list in step with data: each item has a key, and its element is made anew only if the item
 * changed. The element that has the focus keeps it, by its [data-row].
 */
export function keyed(list, items, keyOf, make) {
  const had = new Map([...list.children].map((child) => [child.dataset.key, child]));
  const focused = list.contains(document.activeElement)
    ? document.activeElement.closest("[data-key]")?.dataset.key
    : null;
  let at = list.firstElementChild;
  for (const item of items) {
    const key = keyOf(item),
      state = JSON.stringify(item);
    let child = had.get(key);
    had.delete(key);
    if (!child || child.state !== state) {
      const made = make(item);
      made.dataset.key = key;
      made.state = state;
      if (child) {
        if (child === at) at = made;
        child.replaceWith(made);
      }
      child = made;
    }
    if (child === at) at = at.nextElementSibling;
    else list.insertBefore(child, at);
  }
  for (const child of had.values()) child.remove();
  if (focused && !list.contains(document.activeElement)) {
    [...list.children]
      .find((child) => child.dataset.key === focused)
      ?.querySelector("[data-row]")
      ?.focus({ preventScroll: true });
  }
}

/**
 * Ask before something that cannot be taken back, or for words. Resolves to what was typed, "" or null; with `choices`,
 * a map of values and the texts of their buttons, to [value, what was typed] or null.
 */
export function ask({ title, text, action, choices = null, field = null, value = "", long = false }) {
  return new Promise((resolve) => {
    const input = field && el(long ? "textarea" : "input", { id: "ask-field", rows: long ? 6 : null });
    if (input) input.value = value;
    const typed = () => (input ? input.value : "");
    const button = (text, main, answer) =>
      el("button", { type: "button", class: `button${main ? " main" : ""}`, click: () => done(answer()) }, text);
    const cancel = button("Cancel", false, () => null);
    const acts = choices
      ? Object.entries(choices).map(([choice, text]) => button(text, false, () => [choice, typed()]))
      : [button(action, true, typed)];
    const dialog = el(
      "dialog",
      { class: "ask", "aria-labelledby": "ask-title" },
      el("h2", { id: "ask-title" }, title),
      text && el("p", {}, text),
      input && el("label", { for: "ask-field" }, field),
      input,
      el("div", { class: "acts" }, choices ? [acts, cancel] : [cancel, acts]),
    );
    const done = (answer) => {
      dialog.remove();
      resolve(answer);
    };
    dialog.addEventListener("cancel", () => done(null));
    input?.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.isComposing || (long && !event.ctrlKey && !event.metaKey)) return;
      event.preventDefault();
      // where there is a choice, Enter does not make it
      if (choices) acts[0].focus();
      else acts[0].click();
    });
    document.body.append(dialog);
    dialog.showModal();
    (input || acts[0]).focus();
  });
}
