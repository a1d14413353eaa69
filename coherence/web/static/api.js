// What the page asks of its server.

/** An answer that is no success; `status` 0 = no answer at all. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

async function answer(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The server does not answer. Is `coherence serve` still running?");
  }
  const body = await response.json().catch((error) => {
    if (error.name === "AbortError") throw error;
    return null;
  });
  if (!response.ok) throw new Refused(response.status, body?.error || `${response.status} ${response.statusText}`);
  return body;
}

/** Return the JSON of a part of the interface; values that are empty are not sent. */
export function get(name, parameters = {}, signal = undefined) {
  const query = new URLSearchParams();
  for (const [key, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== "") query.set(key, value);
  }
  const text = query.toString();
  return answer(`/api/${name}${text && `?${text}`}`, { signal });
}

/** Send a change. */
export function post(path, body) {
  return answer(path, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) });
}

/** Change the token of the printed address for a cookie. */
export const login = (token) => post("/login", { token });

/** Run one request at a time: a newer one ends the older one, and none begins after the end of its page. */
export class Newest {
  #running = null;
  #stopped = false;

  async run(work) {
    this.#running?.abort();
    const mine = (this.#running = new AbortController());
    if (this.#stopped) mine.abort();
    try {
      mine.signal.throwIfAborted();
      const found = await work(mine.signal);
      mine.signal.throwIfAborted();
      return found;
    } finally {
      if (this.#running === mine) this.#running = null;
    }
  }

  stop() {
    this.#stopped = true;
    this.#running?.abort();
  }
}

/** Tell whether an error only says that nobody waits for the answer any more. */
export const isAbort = (error) => error?.name === "AbortError";
