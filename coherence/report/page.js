"use strict";
{
  const WIDTH = 1000, HEIGHT = 100, FIRST_METRIC = 6;
  const tip = document.getElementById("tip");

  function line(className, nodes) {
    const p = document.createElement("p");
    p.className = className;
    p.append(...nodes);
    return p;
  }
  const copies = (element) => [...element.childNodes].map((node) => node.cloneNode(true));

  for (const run of document.querySelectorAll(".run")) {
    const table = run.querySelector(".steps");
    if (!table) continue;
    const rows = table.tBodies[0].rows, heads = table.tHead.rows[0].cells;
    const places = [...run.querySelectorAll(".timeline .row")];
    const charts = places.flatMap((place, at) => {
      const box = place.querySelector(".chart");
      // The first row is the index, which stands before the metrics in the table.
      return box ? [{ box, metric: at - 1, column: at ? FIRST_METRIC + at - 1 : 3 }] : [];
    });
    let current = 0;

    const hide = () => {
      tip.hidden = true;
      for (const { box } of charts) for (const mark of box.querySelectorAll(".cross, .dot")) mark.removeAttribute("d");
    };

    const show = (chart, step) => {
      current = Math.max(0, Math.min(rows.length - 1, step));
      const cells = rows[current].cells;
      const x = (current + 0.5) / rows.length * WIDTH;
      for (const { box, column } of charts) {
        const value = parseFloat(cells[column].textContent);
        box.querySelector(".cross").setAttribute("d", `M${x} 0v${HEIGHT}`);
        box.querySelector(".dot").setAttribute("d", Number.isNaN(value) ? "" : `M${x} ${(1 - value) * HEIGHT}h0`);
      }
      const name = heads[chart.column].textContent, value = cells[chart.column].textContent;
      const result = [`${name} ${Number.isNaN(parseFloat(value)) ? "unknown" : value} `];
      if (chart.metric < 0) result.push(...copies(cells[4]), ` coverage ${cells[5].textContent}`);
      const wanted = chart.metric < 0 ? "p" : `p[data-metric="${chart.metric}"]`;
      const evidence = [...cells[cells.length - 1].querySelectorAll(wanted)];
      tip.replaceChildren(
        line("quiet", [`step ${current} · `, ...copies(cells[1])]),
        line("value", result),
        line("", copies(cells[2])),
        ...evidence.map((one) => line("quiet", copies(one))),
      );
      tip.hidden = false;
      chart.box.setAttribute("aria-valuenow", current);
      chart.box.setAttribute("aria-valuetext", [...tip.children].map((part) => part.textContent).join("; "));

      const area = chart.box.getBoundingClientRect(), size = tip.getBoundingClientRect();
      const at = area.left + x / WIDTH * area.width, gap = 12;
      const left = at + gap + size.width < innerWidth - 8 ? at + gap : at - gap - size.width;
      const below = area.bottom + gap;
      const top = below + size.height < innerHeight ? below : area.top - gap - size.height;
      tip.style.left = `${Math.max(8, Math.min(left, innerWidth - size.width - 8))}px`;
      tip.style.top = `${Math.max(8, top)}px`;
    };

    for (const chart of charts) {
      const { box } = chart;
      box.tabIndex = 0;
      box.setAttribute("role", "slider");
      box.setAttribute("aria-valuemin", 0);
      box.setAttribute("aria-valuemax", rows.length - 1);
      box.setAttribute("aria-valuenow", 0);
      const follow = (event) => {
        const area = box.getBoundingClientRect();
        show(chart, Math.floor((event.clientX - area.left) / area.width * rows.length));
      };
      box.addEventListener("pointermove", follow);
      box.addEventListener("pointerdown", follow);
      box.addEventListener("pointerleave", hide);
      box.addEventListener("focus", () => box.matches(":focus-visible") && show(chart, current));
      box.addEventListener("blur", hide);
      box.addEventListener("keydown", (event) => {
        const page = Math.max(1, Math.round(rows.length / 10));
        const goes = {
          ArrowLeft: current - 1, ArrowDown: current - 1, ArrowRight: current + 1, ArrowUp: current + 1,
          PageUp: current + page, PageDown: current - page, Home: 0, End: rows.length - 1,
        };
        if (event.key === "Escape") hide();
        if (!(event.key in goes)) return;
        event.preventDefault();
        show(chart, goes[event.key]);
      });
    }
  }
}
{
  const table = document.getElementById("overview"), find = document.getElementById("find");
  if (table && table.tBodies && find) {
    const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells];
    find.addEventListener("input", () => {
      const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of body.rows) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
      }
    });
    const key = (row, at) => {
      const text = row.cells[at].textContent.trim(), value = parseFloat(text);
      return Number.isNaN(value) ? text : value;
    };
    heads.forEach((head, at) => head.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const order = (one, two) => one < two ? -1 : one > two ? 1 : 0;
      const rows = [...body.rows].sort((one, two) => {
        const [a, b] = [key(one, at), key(two, at)];
        return (down ? -1 : 1) * (typeof a === typeof b ? order(a, b) : order(typeof a, typeof b));
      });
      body.append(...rows);
    }));
  }
}
