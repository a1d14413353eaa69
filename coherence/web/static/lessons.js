// What was learned: errors and their fixes.

import { get, Newest, post } from "./api.js";
import { ask, el, keyed, show } from "./dom.js";
import { lessonCard } from "./lesson.js";
import { about, announce, attempt, noteAddress } from "./shell.js";
import { many } from "./words.js";

export function open(root, _names, query) {
  const requests = new Newest();
  let text = query.get("text") ?? "",
    typed = 0;
  const search = el("input", {
    type: "search",
    id: "by-text",
    "data-search": true,
    value: text,
    placeholder: "an error, a tool, a fix",
    input: () => {
      clearTimeout(typed);
      typed = setTimeout(() => {
        text = search.value.trim();
        noteAddress(new URLSearchParams(text ? { text } : {}));
        attempt(load);
      }, 200);
    },
  });
  const found = el("p", { class: "found" }),
    list = el("ul", { class: "cards", "aria-label": "Lessons" }),
    empty = el("div", {});
  root.append(
    el(
      "div",
      { class: "head" },
      el("h1", {}, "Lessons"),
      el(
        "p",
        { class: "hint" },
        "Errors that were fixed once, and the fix. When the same error comes again, the agent is told the fix.",
      ),
    ),
    el(
      "form",
      { class: "filters", role: "search", submit: (event) => event.preventDefault() },
      el("label", { class: "field wide" }, el("span", {}, "Search"), search),
    ),
    found,
    list,
    empty,
  );

  const acts = {
    edit: async (lesson) => {
      const fix = await ask({
        title: "Edit the fix",
        text: lesson.error,
        field: "Fix",
        value: lesson.fix,
        long: true,
        action: "Save",
      });
      if (fix !== null && fix !== lesson.fix) change(() => post("/api/lesson/edit", { id: lesson.id, fix }), "Saved");
    },
    forget: async (lesson) => {
      const sure = await ask({
        title: "Forget this lesson?",
        text: `“${lesson.pattern}” is removed and not learned again from the same events. This cannot be undone.`,
        action: "Forget",
      });
      if (sure !== null) change(() => post("/api/lesson/forget", { id: lesson.id }), "Forgotten");
    },
  };

  async function change(work, done) {
    await attempt(async () => {
      await work();
      announce(done);
      await load();
    });
  }

  async function load() {
    const lessons = await requests.run((signal) => get("lessons", { text, limit: 200 }, signal));
    show(found, lessons.length ? `${many(lessons.length, "lesson")}${text ? " with these words" : ""}` : "");
    keyed(
      list,
      lessons,
      (lesson) => `${lesson.id} ${about.write}`,
      (lesson) => lessonCard(lesson, acts),
    );
    show(
      empty,
      lessons.length
        ? []
        : el(
            "div",
            { class: "empty card" },
            el("h2", {}, text ? "No lesson fits" : "Nothing was learned yet"),
            el(
              "p",
              {},
              text
                ? "Search for fewer words."
                : "A lesson is kept when an agent meets an error and then gets past it. Start a " +
                    "Monitor with lessons on:",
            ),
            !text && el("pre", {}, 'Monitor(agent="coder", store="runs.db", lessons=True)'),
          ),
    );
  }

  return {
    title: "Lessons",
    refresh: load,
    close: () => {
      clearTimeout(typed);
      requests.stop();
    },
    ready: load(),
  };
}
