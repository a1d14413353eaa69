// What every page needs of the shell around it.

import { get, isAbort, login, Refused } from "./api.js";
import { by, el, show } from "./dom.js";

/** The server: its version, the name of its store, and whether it takes changes. */
export const about = { version: "", store: "", write: false };

/** Set by the start of the page: what to do after a login, and how to go to another page. */
export const shell = { start: async () => {}, go: async () => {} };

export const go = (path) => shell.go(path);

export async function readAbout() {
  Object.assign(about, await get("about"));
  by("store").textContent = about.store;
  by("store").title =
    `coherence ${about.version}${about.write ? "" : ", read only; start with --write to label and edit"}`;
}

/** Tell something new to people who do not see it. */
export function announce(text) {
  by("news").textContent = text;
}

/** Address of a session. */
export function sessionPath(agent, session, step = null) {
  return `/session/${encodeURIComponent(agent)}/${encodeURIComponent(session)}${step === null ? "" : `?step=${step}`}`;
}

/** Note what the page shows in its address, without a new entry in the history. */
export function noteAddress(query) {
  const text = query.toString();
  history.replaceState(history.state, "", location.pathname + (text && `?${text}`));
}

/** Show a problem above the page; no content takes it away. */
function notice(topic, ...content) {
  const place = by("notice");
  place.hidden = !content.length;
  place.dataset.topic = topic;
  show(place, content);
}

/** Take away what was said about a topic, once it is no longer true. */
export function settled(topic) {
  if (by("notice").dataset.topic === topic) notice("");
}

/** Do some work; what goes wrong is told above the page, until work on the same topic succeeds. */
export async function attempt(work, topic = "page") {
  try {
    const found = await work();
    settled(topic);
    return found;
  } catch (error) {
    tellProblem(error, topic);
    return undefined;
  }
}

function tellProblem(error, topic) {
  if (isAbort(error)) return;
  if (error instanceof Refused && error.status === 401) askToken();
  else if (by("token")) return;
  else if (error instanceof Refused) notice(topic, el("p", {}, error.message));
  else {
    notice(topic, el("p", {}, `Something went wrong on this page: ${error.message}. Load it again.`));
    console.warn(error);
  }
}

function askToken() {
  if (by("token")) return;
  const field = el("input", { id: "token", autocomplete: "off", spellcheck: "false" });
  const problem = el("span", {});
  const submit = async (event) => {
    event.preventDefault();
    try {
      await login(field.value.split("token=").at(-1).trim());
    } catch (error) {
      problem.textContent = error.message;
      return;
    }
    settled("login");
    await shell.start();
  };
  notice(
    "login",
    el(
      "p",
      {},
      "Not logged in, or the server was started again. Open the address that `coherence serve` " +
        "printed, or paste it here.",
    ),
    el(
      "form",
      { class: "inline", submit },
      el("label", { for: "token" }, "Address or token"),
      field,
      el("button", { class: "button main" }, "Log in"),
      problem,
    ),
  );
}
