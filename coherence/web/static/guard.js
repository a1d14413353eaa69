// Agents under guard: patches of their configuration, verdicts on them, and the way back.

import { get, Newest, post } from "./api.js";
import { ask, el, keyed, show, table } from "./dom.js";
import { about, announce, attempt } from "./shell.js";
import { count, many, percent, time } from "./words.js";

const GOOD = ["promoted", "confirmed"];
const BAD = ["rolled back", "not applied", "rejected"];

function outcome(text) {
  const kind = GOOD.includes(text) ? ["good", "✓"] : BAD.includes(text) ? ["bad", "✗"] : ["", "…"];
  return el("span", { class: `chip ${kind[0]}` }, `${kind[1]} ${text}`);
}

const setting = (value) => (value === undefined ? "unset" : typeof value === "string" ? value : JSON.stringify(value));

function changes(patch) {
  const names = Object.keys(patch.patch);
  return el(
    "ul",
    { class: "changes" },
    names.map((name) =>
      el(
        "li",
        {},
        el("code", {}, name),
        " ",
        patch.before && [
          el("span", { class: "was" }, el("span", { class: "hidden" }, "from "), setting(patch.before[name])),
          el("span", { "aria-hidden": "true" }, " → "),
          el("span", { class: "hidden" }, " to "),
        ],
        el("b", {}, setting(patch.patch[name])),
      ),
    ),
  );
}

function patchItem(patch, acts) {
  return el(
    "li",
    { class: "told-item" },
    el(
      "p",
      { class: "told-head" },
      el("b", {}, `Patch ${patch.number}`),
      outcome(patch.outcome),
      el(
        "span",
        { class: "faint end" },
        "asked ",
        time(patch.asked_at),
        patch.ended_at !== null && [", ended ", time(patch.ended_at)],
      ),
    ),
    changes(patch),
    patch.why && el("p", { dir: "auto" }, patch.why),
    el(
      "p",
      { class: "effect" },
      patch.metric &&
        el(
          "span",
          { class: "faint" },
          `${patch.metric}: evidence ${patch.evidence === null ? "–" : patch.evidence.toFixed(1)}`,
          patch.limit !== null && ` of ${patch.limit.toFixed(0)}`,
        ),
      patch.share !== null && el("span", { class: "faint" }, `served ${percent(patch.share)} of the calls`),
      patch.can_roll_back &&
        (about.write
          ? el(
              "button",
              {
                type: "button",
                class: "button small end",
                "aria-label": `Roll back patch ${patch.number} of ${patch.agent}`,
                click: () => acts.rollback(patch),
              },
              "Roll back …",
            )
          : el("span", { class: "faint end" }, "start with --write to roll back")),
    ),
  );
}

function evidence(one) {
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, one.metric),
    el("td", { class: "number" }, `${count(one.beyond)} of ${count(one.calls)}`),
    el("td", { class: "number" }, `${one.harm.toFixed(1)} of ${one.roll_back_at.toFixed(0)}`),
    el("td", { class: "number" }, `${one.safe.toFixed(1)} of ${one.promote_at.toFixed(0)}`),
  );
}

function agentCard(one, acts) {
  const rate = one.calls ? one.failures / one.calls : 0;
  return el(
    "li",
    { class: "card pad" },
    el(
      "div",
      { class: "section-head" },
      el("h2", { tabindex: "-1", "data-row": true }, one.agent),
      el("span", { class: `chip${one.failing ? " bad" : ""}` }, one.failing ? "✗ failing" : one.phase),
    ),
    one.trouble && el("p", { class: "cause big" }, one.trouble),
    el(
      "p",
      { class: "facts" },
      el("span", {}, el("b", {}, count(one.calls)), " calls"),
      el("span", {}, el("b", {}, count(one.failures)), ` failed (${percent(rate)})`),
      one.failures_in_row > 0 && el("span", {}, el("b", {}, count(one.failures_in_row)), " in a row"),
      one.trial_calls !== null &&
        el(
          "span",
          {},
          "on trial: ",
          el("b", {}, count(one.trial_calls)),
          ` of at most ${count(one.trial_most ?? 0)} calls`,
        ),
    ),
    one.evidence.length > 0 &&
      el(
        "div",
        { class: "wide-table", tabindex: "0", role: "region", "aria-label": `Evidence for ${one.agent}` },
        table(
          ["Evidence of the trial", "Bad calls", "That it is worse", "That it is not"],
          one.evidence.map(evidence),
        ),
      ),
    el("h3", {}, many(one.patches.length, "patch", "patches")),
    one.patches.length
      ? el(
          "ul",
          { class: "told" },
          one.patches.map((patch) => patchItem(patch, acts)),
        )
      : el("p", { class: "none" }, "No patch was tried yet."),
  );
}

export function open(root) {
  const requests = new Newest(),
    list = el("ul", { class: "cards", "aria-label": "Agents under guard" }),
    empty = el("div", {});
  root.append(
    el(
      "div",
      { class: "head" },
      el("h1", {}, "Guard"),
      el(
        "p",
        { class: "hint" },
        "Patches are tried on a part of the calls and kept only if nothing gets worse. You can " +
          "restore the configuration before a patch.",
      ),
    ),
    list,
    empty,
  );
  const acts = {
    rollback: async (patch) => {
      const sure = await ask({
        title: `Roll back patch ${patch.number}?`,
        text: `The configuration of ${patch.agent} before this patch is restored by the process that runs it.`,
        action: "Roll back",
      });
      if (sure === null) return;
      await attempt(async () => {
        await post("/api/guard/rollback", { agent: patch.agent });
        announce("Asked for the configuration before");
        await load();
      });
    },
  };

  async function load() {
    const { agents } = await requests.run((signal) => get("guard", {}, signal));
    keyed(
      list,
      agents.map((one) => ({ ...one, write: about.write })),
      (one) => one.agent,
      (one) => agentCard(one, acts),
    );
    show(
      empty,
      agents.length
        ? []
        : el(
            "div",
            { class: "empty card" },
            el("h2", {}, "No agent is under guard"),
            el("p", {}, "Put any callable under guard; its calls, patches and verdicts appear here:"),
            el("pre", {}, 'guard = Guard(agent, store="runs.db")'),
          ),
    );
  }

  return { title: "Guard", refresh: load, close: () => requests.stop(), ready: load() };
}
