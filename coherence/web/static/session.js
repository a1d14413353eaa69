// One session: why its light is what it is, what the agent was told, and whether that helped.

import { get, Newest, post, Refused } from "./api.js";
import { Course, isTrouble, tool } from "./course.js";
import { ask, el, show, showFor } from "./dom.js";
import { EventList } from "./events.js";
import { lessonCard } from "./lesson.js";
import { missingSession } from "./missing.js";
import { sessionHead } from "./session_head.js";
import { about, announce, attempt, noteAddress } from "./shell.js";
import { stepCard } from "./step.js";
import { ToldCard } from "./told.js";
import { count, cut, time } from "./words.js";

/** What may be done with a session; `page` tells which it is and shows it anew. */
function actsOf(of, page) {
  const send = (path, body, done) => page.change(() => post(path, body), done);
  const label = (label, comment) =>
    send("/api/label", { ...of, label, comment }, label ? `Labelled ${label}` : "Label taken back");
  return {
    step: page.step,
    label: (id, label) => send("/api/label-firing", { id, label }, "Labelled"),
    labelRun: (value) => label(value, value ? page.comment() : ""),
    unblock: async () => {
      const reason = await ask({
        title: "Let the agent go on?",
        text: "Its calls are no longer refused. The reason is kept in the record.",
        field: "Reason",
        action: "Let it go on",
      });
      if (reason !== null) send("/api/unblock", { ...of, reason }, "Unblocked");
    },
    comment: async () => {
      const answer = await ask({
        title: "Was this run good or bad?",
        text: "Labelled runs teach the thresholds what good and bad look like. The comment is kept with the label.",
        field: "Comment",
        value: page.comment(),
        long: true,
        choices: { good: "✓ good", bad: "✗ bad" },
      });
      if (answer !== null) label(...answer);
    },
  };
}

/** Make the frame of the step: its title, its buttons, and the place of what it holds. */
function stepFrame({ follow, move, nextTrouble }) {
  const number = el("span", { "aria-live": "polite" }, "Step"),
    of = el("span", {}),
    body = el("div", { class: "step-body" });
  const followButton = el("button", { type: "button", class: "toggle small", click: follow }, "Follow the newest");
  const card = el(
    "section",
    { class: "card pad step", "aria-label": "Step" },
    el(
      "div",
      { class: "section-head" },
      el("h2", {}, number, of),
      el(
        "span",
        { class: "acts" },
        followButton,
        tool("‹", "Previous step (k)", () => move(-1)),
        tool("›", "Next step (j)", () => move(1)),
        tool("»", "Next trouble (n)", nextTrouble),
      ),
    ),
    body,
  );
  return { card, number, of, body, followButton };
}

export function open(root, [agent, session], query) {
  const of = { agent, session };
  const requests = { step: new Newest(), view: new Newest() };
  const headState = {};
  let view = null,
    step = null,
    wanted = Number(query.get("step")) || null;
  let following = wanted === null;

  const head = el("section", { class: "session-head" }),
    lessons = el("section", { class: "card pad lessons-card", hidden: true }),
    eventsCard = el("section", { class: "card pad events-card" });
  const frame = stepFrame({ follow: () => setFollowing(!following), move, nextTrouble });
  const course = new Course(of, (seq) => pick(seq));
  const events = new EventList(eventsCard, { ...of, onPick: pickAndShow });
  const acts = actsOf(of, { change, step: pickAndShow, comment: () => view?.comment ?? "" });
  const told = new ToldCard(acts);
  const parts = [
    head,
    course.card,
    el("div", { class: "columns" }, el("div", { class: "column" }, told.card, lessons, eventsCard), frame.card),
    el(
      "p",
      { class: "hint" },
      "← → go from step to step, n to the next trouble, + − 0 zoom, drag over the chart for a closer " +
        "look, ? shows all keys.",
    ),
  ];
  root.append(...parts);

  async function change(work, done) {
    await attempt(async () => {
      await work();
      announce(done);
      await Promise.all([loadView(), reloadStep()]);
    });
  }

  async function loadView() {
    const before = view?.line.band;
    view = await requests.view.run((signal) => get("session", of, signal));
    if (before && before !== view.line.band) announce(`The light is ${view.line.band} now`);
    course.grow(view.first || 1, view.last || 1);
    showFor(head, [view, about.write], () => sessionHead(view, acts, headState));
    showStepNumber();
    told.show(view);
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

  async function loadCourse() {
    const timeline = await course.load();
    events.grow(view?.first || 1, view?.last || timeline.total);
  }

  function showStepNumber() {
    if (!step) return;
    const took = step.events.findLast((event) => event.kind !== "feedback"); // a label may come days later
    show(frame.number, `Step ${count(step.step)}`);
    show(
      frame.of,
      step.step <= (view?.line.steps ?? 0) && ` of ${count(view.line.steps)}`,
      took && [" ", el("small", {}, time(took.ts))],
    );
  }

  async function loadStep(seq, { scroll = true } = {}) {
    step = await requests.step.run((signal) => get("step", { ...of, seq }, signal));
    showStepNumber();
    showFor(frame.body, [step, about.write], () => stepCard(step, acts));
    course.choose(step);
    events.choose(step.first, step.last, { scroll });
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
    return attempt(() => loadStep(seq));
  }

  /** Show a step that was chosen in a list, which may be out of sight where all is in one column. */
  async function pickAndShow(seq) {
    await pick(seq);
    if (matchMedia("(max-width: 1100px)").matches) frame.card.scrollIntoView({ block: "start" });
  }

  function setFollowing(value) {
    following = value;
    frame.followButton.setAttribute("aria-pressed", String(following));
    if (following) {
      query.delete("step");
      noteAddress(query);
      if (view?.last) pick(view.last, { follow: true });
    }
  }

  function move(by) {
    if (!step || !view) return;
    const next = by < 0 ? step.first - 1 : step.last + 1;
    if (next < (view.first || 1) || next > view.last) return;
    pick(next);
  }

  function nextTrouble() {
    const next = course.nextTrouble();
    if (next) pick(next.seq);
    else announce("No trouble in this part");
  }

  /** Show what there is for the first time; a session that is not there is told instead. */
  async function first() {
    show(
      head,
      el("p", { class: "crumbs" }, el("a", { href: "/" }, "Sessions"), " / ", agent),
      el("h1", {}, agent, " ", el("span", { class: "session" }, session)),
    );
    const loaded = loadCourse();
    loaded.catch(() => {}); // it is waited for below, where the session is there
    try {
      await loadView();
    } catch (error) {
      if (!(error instanceof Refused) || error.status !== 404) throw error;
      root.replaceChildren(await missingSession(error.message));
      return;
    }
    if (!head.isConnected) root.replaceChildren(...parts);
    await loaded;
    events.grow(view.first || 1, view.last || 1);
    let seq = wanted ?? view.last;
    if (wanted === null && !view.line.live) {
      // of a session that is over, the worst step tells more than the newest one
      const worst = course.worst();
      if (worst && isTrouble(view.line.worst)) {
        seq = worst.seq;
        following = false;
      }
    }
    frame.followButton.setAttribute("aria-pressed", String(following));
    if (seq) await loadStep(seq);
    else show(frame.body, el("p", { class: "none" }, "No step yet. It appears here while the agent runs."));
  }

  async function refresh(sessions) {
    if (sessions && !sessions.some(([a, s]) => a === agent && s === session)) return;
    await opening.catch(() => {}); // a page that is being opened is not opened twice
    if (!view) {
      await (opening = first());
      return;
    }
    await loadView();
    await Promise.all([loadCourse(), following && view.last ? loadStep(view.last) : reloadStep()]);
  }

  let opening = first();
  const whenThere = (act) => () => view && act();
  return {
    title: `${cut(agent, 40)} ${cut(session, 40)}`,
    refresh,
    repaint: () => course.chart.repaint(),
    close: () => {
      for (const request of Object.values(requests)) request.stop();
      course.close();
      events.close();
    },
    keys: {
      j: () => move(1),
      k: () => move(-1),
      ArrowRight: () => move(1),
      ArrowLeft: () => move(-1),
      n: whenThere(nextTrouble),
      Home: whenThere(() => pick(view.first || 1)),
      End: whenThere(() => pick(view.last)),
      f: whenThere(() => setFollowing(!following)),
      "+": whenThere(() => course.zoom(0.5)),
      "=": whenThere(() => course.zoom(0.5)),
      "-": whenThere(() => course.zoom(2)),
      0: whenThere(() => course.all()),
    },
    ready: opening,
  };
}
