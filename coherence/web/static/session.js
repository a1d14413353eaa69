// One session: why its light is what it is, what the agent was told, and whether that helped.

import { get, Newest, post } from "./api.js";
import { ask, el, keyed, show, showFor } from "./dom.js";
import { EventList } from "./events.js";
import { lessonCard } from "./lesson.js";
import { bandOf, light } from "./lights.js";
import { sessionHead } from "./session_head.js";
import { about, announce, attempt, noteAddress } from "./shell.js";
import { stepCard } from "./step.js";
import { Chart, chartKey, described, MARKS } from "./timeline.js";
import { firing, refusal } from "./told.js";
import { count, cut, many, share, time } from "./words.js";

const POINTS = 600;
const TROUBLE = ["orange", "red"];

/** Return what the agent was told and what was refused, the newest first. */
function toldOf(view) {
  const all = [
    ...view.firings.map((one) => ({ ...one, is: "firing" })),
    ...view.refusals.map((one) => ({ ...one, is: "refusal" })),
  ];
  return all.sort((one, other) => other.seq - one.seq);
}

export function open(root, [agent, session], query) {
  const of = { agent, session };
  const requests = { timeline: new Newest(), step: new Newest(), view: new Newest() };
  let view = null,
    line = null,
    step = null,
    shownWindow = null,
    wanted = Number(query.get("step")) || null;
  let following = wanted === null,
    points = [],
    sinceZoom = 0;

  const head = el("section", { class: "session-head" }),
    toldNote = el("span", { class: "faint" });
  const toldList = el("ul", {
    class: "told scrolls",
    tabindex: "0",
    "aria-label": "Guidance and refusals, the newest first",
  });
  const noneTold = el("p", { class: "none" }, "Nothing yet: no rule has fired, and no call was refused.");
  const told = el(
    "section",
    { class: "card pad" },
    el("div", { class: "section-head" }, el("h2", {}, "What the agent was told"), toldNote),
    toldList,
    noneTold,
  );
  const lessons = el("section", { class: "card pad", hidden: true });
  const momentsTitle = el("summary", {}),
    momentsList = el("ol", {}),
    moments = el("details", { class: "moments", hidden: true }, momentsTitle, momentsList);
  const chartBox = el("div", { class: "chart", role: "img", "aria-label": "Course of the session" });
  const readout = el("p", { class: "readout" }),
    range = el("span", { class: "faint" });
  const body = el("div", { class: "step-body" }),
    stepTitle = el("h2", { "aria-live": "polite" }, "Step");
  const tool = (text, label, click) =>
    el("button", { type: "button", class: "button small", "aria-label": label, title: label, click }, text);
  const followButton = el(
    "button",
    { type: "button", class: "toggle small", click: () => setFollowing(!following) },
    "Follow the newest",
  );
  const eventsCard = el("section", { class: "card pad events-card" });
  const stepCardBox = el(
    "section",
    { class: "card pad step", "aria-label": "Step" },
    el(
      "div",
      { class: "section-head" },
      stepTitle,
      el(
        "span",
        { class: "acts" },
        followButton,
        tool("‹", "Previous step (k)", () => move(-1)),
        tool("›", "Next step (j)", () => move(1)),
      ),
    ),
    body,
  );
  root.append(
    head,
    el(
      "section",
      { class: "card pad course", "aria-label": "Course" },
      el(
        "div",
        { class: "section-head" },
        el("h2", {}, "Course"),
        chartKey(),
        el(
          "span",
          { class: "acts" },
          range,
          tool("+", "Zoom in (+)", () => zoom(0.5)),
          tool("−", "Zoom out (−)", () => zoom(2)),
          tool("All", "Show all (0)", () => setWindow(null, null)),
        ),
      ),
      chartBox,
      readout,
      moments,
    ),
    el("div", { class: "columns" }, el("div", { class: "column" }, told, lessons, eventsCard), stepCardBox),
    el(
      "p",
      { class: "hint" },
      "← → go from step to step, n to the next trouble, + − 0 zoom, drag over the chart for a closer " +
        "look, ? shows all keys.",
    ),
  );
  const events = new EventList(eventsCard, { ...of, onPick: (seq) => pick(seq) });
  const chart = new Chart(chartBox, {
    onPick: (seq) => pick(seq),
    onWindow: (first, last) => setWindow(first, last),
    read: (point) => show(readout, point ? reading(point) : guide()),
  });
  const acts = {
    step: (seq) => pick(seq),
    label: (id, label) => change(() => post("/api/label-firing", { id, label }), "Labelled"),
    labelRun: (label) =>
      change(() => post("/api/label", { ...of, label, comment: "" }), label ? `Labelled ${label}` : "Label taken back"),
    unblock: async () => {
      const reason = await ask({
        title: "Let the agent go on?",
        text: "Its calls are no longer refused. The reason is kept in the record.",
        field: "Reason",
        action: "Let it go on",
      });
      if (reason !== null) change(() => post("/api/unblock", { ...of, reason }), "Unblocked");
    },
    comment: async () => {
      const comment = await ask({
        title: "Label this run",
        text: "A good or bad run teaches the thresholds what good and bad look like.",
        field: "Comment",
        long: true,
        action: "Label …",
      });
      if (comment === null) return;
      const good = await ask({ title: "Was this run good?", text: comment, action: "✓ good" });
      const label =
        good !== null
          ? "good"
          : (await ask({ title: "Was this run bad?", text: comment, action: "✗ bad" })) === null
            ? undefined
            : "bad";
      if (label) change(() => post("/api/label", { ...of, label, comment }), `Labelled ${label}`);
    },
  };

  const guide = () => (points.length ? "Point at the chart to read it." : "");
  const reading = (point) => [
    `step ${count(point.step)}`,
    point.count > 1 ? ` (worst of ${point.count})` : "",
    " · ",
    light(point.band),
    ` · index ${share(point.index)} · pressure ${share(point.pressure)}`,
    point.decision && point.decision !== "continue" ? ` · ${point.decision}` : "",
    " · ",
    time(point.ts),
  ];

  async function change(work, done) {
    await attempt(async () => {
      await work();
      announce(done);
      await Promise.all([loadView(), reloadStep()]);
    });
  }

  async function loadView() {
    view = await requests.view.run((signal) => get("session", of, signal));
    const before = line?.band;
    line = view.line;
    if (before && before !== line.band) announce(`The light is ${line.band} now`);
    showFor(head, [view, about.write], () => sessionHead(view, acts));
    showTold();
    lessons.hidden = !view.lessons.length;
    if (view.lessons.length)
      showFor(lessons, view.lessons, () => [
        el("div", { class: "section-head" }, el("h2", {}, "Lessons")),
        el(
          "ul",
          { class: "told" },
          view.lessons.map((one) => lessonCard(one)),
        ),
      ]);
  }

  function showTold() {
    const all = toldOf(view),
      sent = view.firings.filter((one) => one.delivered);
    show(
      toldNote,
      sent.length ? `${sent.filter((one) => one.helped === true).length} of ${many(sent.length, "text")} helped` : "",
    );
    noneTold.hidden = all.length > 0;
    toldList.hidden = !all.length;
    keyed(
      toldList,
      all,
      (one) => one.id,
      (one) => (one.is === "firing" ? firing : refusal)(one, acts),
    );
  }

  async function loadTimeline() {
    const timeline = await requests.timeline.run((signal) =>
      get("timeline", { ...of, first: shownWindow?.[0] ?? 1, last: shownWindow?.[1], points: POINTS }, signal),
    );
    points = timeline.points;
    const [first, last] = shownWindow ?? [timeline.first, timeline.last];
    events.grow(view?.first || 1, view?.last || timeline.total);
    show(
      range,
      shownWindow
        ? `events ${count(first)} to ${count(last)} of ${count(timeline.total)}`
        : many(timeline.total, "event"),
    );
    chartBox.setAttribute("aria-label", described(points));
    chartBox.classList.toggle("blank", !points.length);
    await chart.show(timeline, first, last);
    if (step) chart.choose(step.seq || step.first);
    show(readout, guide());
    showMoments(timeline.marks);
    return timeline;
  }

  function showMoments(marks) {
    moments.hidden = !marks.length;
    show(momentsTitle, many(marks.length, "moment"));
    showFor(momentsList, marks, () =>
      marks.map((mark) =>
        el(
          "li",
          {},
          el(
            "button",
            { type: "button", class: "link", click: () => pick(mark.seq) },
            el("span", { class: "sign", "aria-hidden": "true" }, MARKS[mark.kind]?.[0] ?? "·"),
            ` ${MARKS[mark.kind]?.[1] ?? mark.kind} #${count(mark.seq)}`,
          ),
          " ",
          el("span", {}, cut(mark.text, 200)),
          " ",
          el("span", { class: "faint" }, time(mark.ts)),
        ),
      ),
    );
  }

  async function loadStep(seq, { scroll = true } = {}) {
    const found = await requests.step.run((signal) => get("step", { ...of, seq }, signal));
    step = found;
    show(
      stepTitle,
      `Step ${count(found.step)}`,
      found.events.length > 0 && [" ", el("small", {}, time(found.events.at(-1).ts))],
    );
    showFor(body, [found, about.write], () => stepCard(found, acts));
    chart.choose(found.seq || found.first);
    events.choose(found.first, found.last, { scroll });
  }

  /** Load the step again that was asked for last: it may not be there yet, and must not be lost. */
  const reloadStep = () => step && loadStep(wanted ?? step.first, { scroll: false });

  function pick(seq, { follow = false } = {}) {
    if (!follow) {
      setFollowing(false);
      query.set("step", seq);
      noteAddress(query);
    }
    wanted = seq;
    page.ready = attempt(() => loadStep(seq));
    return page.ready;
  }

  function setFollowing(value) {
    following = value;
    followButton.setAttribute("aria-pressed", String(following));
    if (following) {
      query.delete("step");
      noteAddress(query);
      if (view?.last) pick(view.last, { follow: true });
    }
  }

  function move(by) {
    if (!step) return;
    const next = by < 0 ? step.first - 1 : step.last + 1;
    if (next < (view.first || 1) || next > view.last) return;
    pick(next);
  }

  function nextTrouble() {
    const after = points.filter((point) => TROUBLE.includes(bandOf(point.band)));
    const next = after.find((point) => point.seq > (step?.last ?? 0)) ?? after[0];
    if (next) pick(next.seq);
    else announce("No trouble in this part");
  }

  function setWindow(first, last) {
    if (first === null) shownWindow = null;
    else {
      const least = Math.max(view?.first || 1, 1),
        most = Math.max(view?.last ?? 1, least + 1);
      const from = Math.max(least, Math.min(first, most - 4)),
        to = Math.min(most, Math.max(last, from + 4));
      shownWindow = from <= least && to >= most ? null : [from, to];
    }
    const [from, to] = shownWindow ?? [view?.first || 1, view?.last || 1];
    chart.move(from, to);
    clearTimeout(sinceZoom);
    sinceZoom = setTimeout(() => {
      page.ready = attempt(loadTimeline);
    }, 60);
  }

  function zoom(by) {
    const [first, last] = shownWindow ?? [view.first || 1, view.last];
    const inside = step && step.first >= first && step.last <= last;
    const middle = inside ? (step.first + step.last) / 2 : (first + last) / 2;
    const half = Math.max(2, ((last - first) * by) / 2);
    setWindow(Math.round(middle - half), Math.round(middle + half));
  }

  async function first() {
    show(
      head,
      el("p", { class: "crumbs" }, el("a", { href: "/" }, "Sessions"), " / ", agent),
      el("h1", {}, agent, " ", el("span", { class: "session" }, session)),
    );
    const [, timeline] = await Promise.all([loadView(), loadTimeline()]);
    events.grow(view.first || 1, view.last || timeline.total);
    let seq = wanted ?? view.last;
    if (wanted === null && !line.live) {
      // of a session that is over, the worst step tells more than the newest one
      const worst = points
        .filter((point) => point.index !== null)
        .reduce((low, point) => (!low || point.index < low.index ? point : low), null);
      if (worst && TROUBLE.includes(bandOf(line.worst))) {
        seq = worst.seq;
        following = false;
      }
    }
    followButton.setAttribute("aria-pressed", String(following));
    if (seq) await loadStep(seq);
    else show(body, el("p", { class: "none" }, "No step yet. It appears here while the agent runs."));
  }

  async function refresh(sessions) {
    if (sessions && !sessions.some(([a, s]) => a === agent && s === session)) return;
    await loadView();
    await Promise.all([
      loadTimeline(),
      following && view.last ? loadStep(view.last) : reloadStep(),
    ]);
  }

  const page = {
    title: `${cut(agent, 40)} ${cut(session, 40)}`,
    refresh,
    repaint: () => chart.repaint(),
    close: () => {
      for (const request of Object.values(requests)) request.stop();
      clearTimeout(sinceZoom);
      chart.close();
      events.close();
    },
    keys: {
      j: () => move(1),
      k: () => move(-1),
      ArrowRight: () => move(1),
      ArrowLeft: () => move(-1),
      n: nextTrouble,
      Home: () => pick(view.first || 1),
      End: () => pick(view.last),
      f: () => setFollowing(!following),
      "+": () => zoom(0.5),
      "=": () => zoom(0.5),
      "-": () => zoom(2),
      0: () => setWindow(null, null),
    },
    ready: first(),
  };
  return page;
}
