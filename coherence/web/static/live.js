// News of the store as they come, through one connection that comes back by itself.

const LEAST_GAP_MS = 300;
const WAITS_MS = [500, 1000, 2000, 5000];

/**
 * Call `onNews(sessions)` soon after a change; sessions is a list of [agent, session], or null where any may have
 * changed. News that come while it works are told together when it is done, so a busy store never piles up.
 *
 * Call `onState("on" | "off" | "wait")` as the connection comes and goes.
 */
export function follow(onNews, onState) {
  let source = null,
    tries = 0,
    waits = null,
    busy = false,
    timer = 0;

  async function tell() {
    busy = true;
    while (waits !== null) {
      const told = waits === true ? null : [...waits.values()];
      waits = null;
      const started = performance.now();
      try {
        await onNews(told);
      } catch (error) {
        console.warn(error);
      }
      // a store that grows all the time takes at most a quarter of the time, here and at the server
      const took = performance.now() - started;
      await new Promise((done) => setTimeout(done, Math.max(LEAST_GAP_MS, 3 * took)));
    }
    busy = false;
  }

  function note(sessions) {
    if (sessions === null || waits === true) waits = true;
    else {
      waits ??= new Map();
      for (const pair of sessions) waits.set(JSON.stringify(pair), pair);
    }
    if (!busy) tell();
  }

  function open() {
    source = new EventSource("/api/live");
    source.addEventListener("open", () => {
      tries = 0;
      onState("on");
      note(null); // something may have come since the page asked
    });
    source.addEventListener("newest", (event) => {
      const { sessions } = JSON.parse(event.data);
      note(sessions?.length ? sessions : null);
    });
    source.addEventListener("error", () => {
      onState("wait");
      // the browser gives up where the answer was an error, as after a restart; this page does not
      if (source.readyState !== EventSource.CLOSED) return;
      source.close();
      clearTimeout(timer);
      timer = setTimeout(open, WAITS_MS[Math.min(tries++, WAITS_MS.length - 1)]);
    });
  }

  // a browser opens six connections to a server, for all its pages: one that nobody sees gives its own back
  function look() {
    if (!document.hidden) {
      if (source === null) open();
      return;
    }
    clearTimeout(timer);
    source?.close();
    source = null;
  }

  look();
  document.addEventListener("visibilitychange", look);
  return () => {
    document.removeEventListener("visibilitychange", look);
    clearTimeout(timer);
    source?.close();
    onState("off");
  };
}
