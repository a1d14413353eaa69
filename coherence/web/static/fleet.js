// All agents, and who is affected by whom.

import { get, Newest } from "./api.js";
import { el, showFor, table } from "./dom.js";
import { bandOf, FROM_BEST, light } from "./lights.js";
import { sessionPath } from "./shell.js";
import { trustGraph } from "./trust.js";
import { INDEX, many, PRESSURE, share } from "./words.js";

const MOST_DRAWN = 120;

const badness = (one) => FROM_BEST.indexOf(bandOf(one.band));
const head = (name, title) => el("span", { title }, name);

function agentsTable(agents) {
  const rows = agents
    .toSorted((one, other) => badness(other) - badness(one) || other.pressure - one.pressure)
    .map((one) =>
      el(
        "tr",
        {},
        el("th", { scope: "row" }, el("a", { href: sessionPath(one.agent, one.session), "data-row": true }, one.agent)),
        el("td", {}, light(one.band)),
        el("td", { class: "number" }, share(one.index)),
        el("td", { class: "number" }, share(one.own)),
        el("td", { class: "number" }, share(one.pressure)),
        el("td", {}, one.pressure > one.own && one.path.length ? one.path.join(" → ") : "its own"),
      ),
    );
  return table(
    [
      "Agent",
      "Light",
      head("Index", INDEX),
      head("Own pressure", PRESSURE),
      head("Pressure", "the agent's own pressure, or what reaches it from others if that is higher"),
      "Where it comes from",
    ],
    rows,
    "Agents",
  );
}

function edgesTable(edges) {
  const rows = edges.map((edge) =>
    el(
      "tr",
      {},
      el("td", {}, edge.a),
      el("td", {}, edge.b),
      el("td", { class: "number" }, `${share(edge.trust)}${edge.fixed ? ", fixed" : ""}`),
      el("td", { class: "number" }, share(edge.received)),
    ),
  );
  return table(["From", "To", "Trust", "Pressure received"], rows, "Trust");
}

/** Return the agents that affect another one or are affected, or that have a parent or a child. */
function related({ agents, edges }) {
  const names = new Set(edges.flatMap((edge) => [edge.a, edge.b])),
    known = new Set(agents.map((one) => one.agent));
  for (const one of agents) if (one.parent !== null && known.has(one.parent)) names.add(one.agent).add(one.parent);
  return agents.filter((one) => names.has(one.agent));
}

export function open(root) {
  const requests = new Newest(),
    body = el("div", {});
  root.append(
    el(
      "div",
      { class: "head" },
      el("h1", {}, "Fleet"),
      el(
        "p",
        { class: "hint" },
        "An agent that trusts another one takes over a part of its pressure. Arrows point from the " +
          "one that is in trouble to the one that it reaches; a dotted line leads from a parent to its child. " +
          "Each agent is shown by its newest session.",
      ),
    ),
    body,
  );

  async function load() {
    const fleet = await requests.run((signal) => get("fleet", {}, signal));
    const linked = related(fleet),
      alone = fleet.agents.length - linked.length;
    showFor(body, fleet, () =>
      fleet.agents.length
        ? [
            el(
              "section",
              { class: "card pad" },
              el(
                "div",
                { class: "section-head" },
                el("h2", {}, "Who is affected by whom"),
                el(
                  "span",
                  { class: "faint" },
                  many(fleet.edges.length, "link"),
                  alone > 0 && `; ${many(alone, "agent")} alone, in the table only`,
                ),
              ),
              !linked.length
                ? el(
                    "p",
                    { class: "none" },
                    'No agent relies on another one. Link them with fleet.add_edge("researcher", ' +
                      '"planner", trust_weight=0.8).',
                  )
                : linked.length <= MOST_DRAWN
                  ? el(
                      "div",
                      { class: "graph-box", tabindex: "0", role: "region", "aria-label": "Drawing of the fleet" },
                      trustGraph({ agents: linked, edges: fleet.edges }),
                    )
                  : el(
                      "p",
                      { class: "none" },
                      `More than ${MOST_DRAWN} agents are not drawn; the table has all of them.`,
                    ),
            ),
            el(
              "section",
              { class: "card pad wide-table", tabindex: "0", role: "region", "aria-label": "Agents" },
              el("h2", {}, "Agents"),
              agentsTable(fleet.agents),
            ),
            fleet.edges.length > 0 &&
              el(
                "section",
                { class: "card pad wide-table", tabindex: "0", role: "region", "aria-label": "Trust" },
                el("h2", {}, "Trust"),
                edgesTable(fleet.edges),
              ),
          ]
        : el(
            "div",
            { class: "empty card" },
            el("h2", {}, "No fleet in this store yet"),
            el("p", {}, "Agents that share a store and hand work to each other appear here:"),
            el(
              "pre",
              {},
              'fleet = Fleet(store="runs.db")\nlead = fleet.agent("lead")\nhelper = ' +
                'fleet.agent("helper", parent="lead")',
            ),
          ),
    );
  }

  return { title: "Fleet", refresh: load, close: () => requests.stop(), ready: load() };
}
