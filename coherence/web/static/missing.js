// A session that is not there: what the server says, and the nearest names.

import { get } from "./api.js";
import { el } from "./dom.js";
import { sessionPath } from "./shell.js";

const MOST = 1000;

const NEAREST = "; the nearest: ";

/** Make what is shown instead of a session that is not there; the names in the message become links. */
export async function missingSession(message) {
  const [what, names = ""] = message.split(NEAREST);
  const near = names.split(", ");
  const { lines } = await get("overview", { sort: "newest", limit: MOST });
  const links = lines
    .filter((line) => near.includes(`${line.agent}/${line.session}`))
    .map((line) =>
      el(
        "li",
        {},
        el("a", { href: sessionPath(line.agent, line.session), "data-row": true }, `${line.agent} ${line.session}`),
      ),
    );
  return el(
    "div",
    { class: "empty card" },
    el("h1", {}, "No such session"),
    el("p", {}, links.length ? what : message),
    links.length > 0 && [el("p", {}, "The nearest names:"), el("ul", { class: "near" }, links)],
    el("p", {}, el("a", { href: "/" }, "All sessions")),
  );
}
