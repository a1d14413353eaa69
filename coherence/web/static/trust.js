// Who is affected by whom, as a drawing: agents in columns, pressure flows along the arrows.

import { svg } from "./dom.js";
import { BANDS, bandOf } from "./lights.js";
import { sessionPath } from "./shell.js";
import { cut, share } from "./words.js";

const BOX = { width: 215, height: 54, across: 110, down: 22 };

/** Return each agent's column: one further than the furthest that affects it; a circle is cut where it is entered. */
function columns(agents, edges) {
  const into = new Map(agents.map((one) => [one.agent, []])),
    depth = new Map();
  for (const { a, b } of edges) if (into.has(a) && into.has(b) && a !== b) into.get(b).push(a);
  for (const one of agents)
    if (one.parent !== null && into.has(one.parent) && one.parent !== one.agent && !into.get(one.agent).length)
      into.get(one.agent).push(one.parent);
  const visit = (name, path) => {
    if (depth.has(name)) return depth.get(name);
    if (path.has(name)) return -1;
    path.add(name);
    const found = 1 + Math.max(-1, ...into.get(name).map((from) => visit(from, path)));
    path.delete(name);
    depth.set(name, found);
    return found;
  };
  const found = [];
  for (const one of agents) (found[visit(one.agent, new Set())] ??= []).push(one);
  return found.filter(Boolean);
}

/** Draw the graph of a fleet. */
export function trustGraph({ agents, edges }) {
  const places = new Map(),
    all = columns(agents, edges);
  const tallest = Math.max(...all.map((column) => column.length));
  all.forEach((column, x) =>
    column.forEach((one, y) =>
      places.set(one.agent, {
        x: 10 + x * (BOX.width + BOX.across),
        y: 24 + (y + (tallest - column.length) / 2) * (BOX.height + BOX.down),
      }),
    ),
  );
  const width = 20 + all.length * BOX.width + (all.length - 1) * BOX.across,
    height = 40 + tallest * (BOX.height + BOX.down);
  const drawn = edges
    .filter((edge) => places.has(edge.a) && places.has(edge.b))
    .map((edge) => {
      const a = places.get(edge.a),
        b = places.get(edge.b),
        ahead = b.x > a.x;
      const from = [a.x + (ahead ? BOX.width : BOX.width / 2), a.y + (ahead ? BOX.height / 2 : 0)];
      const to = [b.x + (ahead ? 0 : BOX.width / 2), b.y + (ahead ? BOX.height / 2 : 0)];
      const bend = ahead ? (to[0] - from[0]) / 2 : 0,
        rise = ahead ? 0 : 40;
      return svg(
        "g",
        { class: `edge${edge.received > 0 ? " flows" : ""}` },
        svg("path", {
          d: `M${from} C${from[0] + bend} ${from[1] - rise} ${to[0] - bend} ${to[1] - rise} ${to}`,
          "stroke-width": 1 + 3 * edge.trust,
          "marker-end": "url(#arrow)",
        }),
        svg(
          "text",
          { x: (from[0] + to[0]) / 2, y: (from[1] + to[1]) / 2 - rise * 0.75 - 6 },
          edge.received > 0 ? `+${share(edge.received)}` : share(edge.trust),
        ),
        svg(
          "title",
          {},
          `${edge.a} to ${edge.b}: trust ${share(edge.trust)}, pressure received ${share(edge.received)}`,
        ),
      );
    });
  const parents = agents
    .filter((one) => places.has(one.parent) && !edges.some((edge) => edge.a === one.parent && edge.b === one.agent))
    .map((one) => {
      const a = places.get(one.parent),
        b = places.get(one.agent);
      return svg(
        "path",
        { class: "parent", d: `M${a.x + BOX.width} ${a.y + BOX.height / 2}L${b.x} ${b.y + BOX.height / 2}` },
        svg("title", {}, `${one.parent} started ${one.agent}`),
      );
    });
  const nodes = agents.map((one) => {
    const { x, y } = places.get(one.agent),
      band = bandOf(one.band);
    return svg(
      "a",
      {
        href: sessionPath(one.agent, one.session),
        class: `node ${band === "unknown" ? "u" : band[0]}`,
        "aria-label": `${one.agent}: ${band}, pressure ${share(one.pressure)}`,
      },
      svg("rect", { class: "box", x, y, width: BOX.width, height: BOX.height, rx: 8 }),
      svg("rect", { class: "side", x, y: y + 8, width: 5, height: BOX.height - 16, rx: 2 }),
      svg("text", { class: "who", x: x + 18, y: y + 22 }, `${BANDS[band].shape} ${cut(one.agent, 21)}`),
      svg(
        "text",
        { class: "what", x: x + 18, y: y + 41 },
        `${BANDS[band].letter} · pressure ${share(one.pressure)}`,
        one.pressure > one.own && ` (own ${share(one.own)})`,
      ),
    );
  });
  return svg(
    "svg",
    {
      class: "graph",
      viewBox: `0 0 ${width} ${height}`,
      width,
      height,
      role: "group",
      "aria-label": "Agents and whose pressure reaches whom; the tables below say the same",
    },
    svg(
      "defs",
      {},
      svg(
        "marker",
        {
          id: "arrow",
          viewBox: "0 0 10 10",
          refX: 9,
          refY: 5,
          markerWidth: 9,
          markerHeight: 9,
          markerUnits: "userSpaceOnUse",
          orient: "auto",
        },
        svg("path", { d: "M0 0 10 5 0 10z" }),
      ),
    ),
    parents,
    drawn,
    nodes,
  );
}
