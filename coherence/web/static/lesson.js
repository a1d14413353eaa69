// A lesson: an error that was fixed once, and how.

import { el } from "./dom.js";
import { about, sessionPath } from "./shell.js";
import { cut, many, time } from "./words.js";

/** Show a lesson; `acts` says how it is edited and forgotten. */
export function lessonCard(lesson, acts = null) {
  return el(
    "li",
    { class: `lesson${acts ? " card pad" : " told-item"}`, "data-key": lesson.id },
    el(
      "p",
      { class: "told-head" },
      acts
        ? el(
            "a",
            {
              class: "plain-name",
              id: `lesson-${lesson.id}`,
              "data-row": true,
              href: `/lessons?text=${encodeURIComponent(cut(lesson.pattern, 100))}`,
            },
            lesson.pattern,
          )
        : el("b", {}, lesson.pattern),
      lesson.tool && el("span", { class: "chip" }, lesson.tool),
      lesson.role && el("span", { class: "chip" }, lesson.role === "told" ? "✎ told here" : "learned here"),
      lesson.retired && el("span", { class: "chip bad" }, "✗ retired: it failed too often"),
      el("span", { class: "faint end" }, `seen ${many(lesson.count, "time")}, last `, time(lesson.seen)),
    ),
    el(
      "dl",
      { class: "pair" },
      el("dt", {}, "Error"),
      el("dd", { dir: "auto" }, lesson.error),
      el("dt", {}, "Fix"),
      el("dd", { dir: "auto", class: "fix" }, lesson.fix),
    ),
    el(
      "p",
      { class: "effect" },
      el("span", { class: "chip good" }, `✓ helped ${many(lesson.helped, "time")}`),
      el("span", { class: `chip${lesson.failed ? " bad" : " faint"}` }, `✗ failed ${many(lesson.failed, "time")}`),
      lesson.origins
        .slice(0, 3)
        .map((one) =>
          el(
            "a",
            { href: sessionPath(one.agent, one.session, one.seqs[0] ?? null) },
            `from ${cut(one.agent, 30)}, ${cut(one.session, 20)}`,
          ),
        ),
      acts &&
        about.write &&
        el(
          "span",
          { class: "acts end" },
          el(
            "button",
            {
              type: "button",
              class: "button small",
              "aria-label": `Edit ${lesson.pattern}`,
              click: () => acts.edit(lesson),
            },
            "Edit …",
          ),
          el(
            "button",
            {
              type: "button",
              class: "button small",
              "aria-label": `Forget ${lesson.pattern}`,
              click: () => acts.forget(lesson),
            },
            "Forget …",
          ),
        ),
    ),
  );
}
