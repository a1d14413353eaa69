"use strict";
{
  const WIDTH = 1000, HEIGHT = 100;
  const by = (id) => document.getElementById(id);
  const tip = by("tip"), view = by("step"), body = by("step-body");
  const copies = (element) => [...element.childNodes].map((node) => node.cloneNode(true));
  const viewsOf = (place) => [...document.querySelectorAll(`#${place} .at`)];

  function line(className, nodes) {
    const p = document.createElement("p");
    p.className = className;
    p.append(...nodes);
    return p;
  }

  function tell(lines, area, x) {
    // What a modal dialog shows lies above all else on the page.
    (view.open ? view : document.body).append(tip);
    tip.replaceChildren(...lines);
    tip.hidden = false;
    const size = tip.getBoundingClientRect(), gap = 12;
    const left = x + gap + size.width < innerWidth - 8 ? x + gap : x - gap - size.width;
    const below = area.bottom + gap;
    const top = below + size.height < innerHeight ? below : area.top - gap - size.height;
    tip.style.left = `${Math.max(8, Math.min(left, innerWidth - size.width - 8))}px`;
    tip.style.top = `${Math.max(8, top)}px`;
    return lines.map((part) => part.textContent).join("; ");
  }

  // A drawing of steps: the pointer and the arrow keys tell of one, a click or Enter shows it.
  function slide(box, count, told, left, chosen) {
    let current = 0;
    const tellOf = (step) => {
      current = Math.max(0, Math.min(count - 1, step));
      box.setAttribute("aria-valuenow", current);
      box.setAttribute("aria-valuetext", told(current));
    };
    const hide = () => { tip.hidden = true; left(); };
    const at = (event) => {
      const area = box.getBoundingClientRect();
      return Math.floor((event.clientX - area.left) / area.width * count);
    };
    box.tabIndex = 0;
    box.setAttribute("role", "slider");
    box.setAttribute("aria-valuemin", 0);
    box.setAttribute("aria-valuemax", count - 1);
    box.setAttribute("aria-valuenow", 0);
    box.addEventListener("pointermove", (event) => event.pointerType !== "touch" && tellOf(at(event)));
    box.addEventListener("pointerleave", hide);
    box.addEventListener("focus", () => box.matches(":focus-visible") && tellOf(current));
    box.addEventListener("blur", hide);
    box.addEventListener("click", (event) => { tellOf(at(event)); hide(); chosen(current); });
    box.addEventListener("keydown", (event) => {
      const page = Math.max(1, Math.round(count / 10));
      const goes = {
        ArrowLeft: current - 1, ArrowDown: current - 1, ArrowRight: current + 1, ArrowUp: current + 1,
        PageUp: current + page, PageDown: current - page, Home: 0, End: count - 1,
      };
      if (event.key === "Escape") hide();
      if (event.key in goes) tellOf(goes[event.key]);
      else if (event.key === "Enter" || event.key === " ") { hide(); chosen(current); }
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
  }

  function slideStrip(strip, place, views, chosen) {
    const size = Number(strip.dataset.size), cells = Math.ceil(views.length / size);
    for (const title of strip.querySelectorAll("title")) title.remove();
    const titles = [...strip.querySelectorAll(".t")];
    const marks = (cell) => titles.forEach((one, at) => one.classList.toggle("on", at === cell));
    const told = (cell) => {
      marks(cell);
      const from = cell * size, shown = views[Number(titles[cell].dataset.step)];
      const area = strip.getBoundingClientRect();
      const name = (at) => views[at].dataset.name ?? at;
      const more = size > 1 ? ` (the worst of ${name(from)} to ${name(Math.min(from + size, views.length) - 1)})` : "";
      return tell([
        line("quiet", [...copies(shown.querySelector("h4")), more]),
        line("value", copies(shown.querySelector(".lit"))),
        line("", copies(shown.querySelector(".cause"))),
        ...[...shown.querySelectorAll(".stopped")].map((one) => line("", copies(one))),
      ], area, area.left + (cell + .5) / cells * area.width);
    };
    slide(strip, cells, told, () => marks(-1), (cell) => chosen(Number(titles[cell].dataset.step)));
    return marks;
  }

  // The view of one step.
  let shownIn = "", shownAt = 0, mark = () => {};
  function show(place, at) {
    const views = viewsOf(place), step = views[at];
    if (!step) return;
    if (place !== shownIn || !view.open) {
      const strip = document.querySelector(`.strip[data-run="${place}"]`).cloneNode(true);
      by("step-strip").replaceChildren(strip);
      mark = slideStrip(strip, place, views, (cell) => show(place, cell));
      by("step-name").replaceChildren(...copies(by(`${place}-name`)));
    }
    [shownIn, shownAt] = [place, at];
    const copy = step.cloneNode(true);
    copy.removeAttribute("id");
    body.replaceChildren(copy);
    by("step-before").disabled = at === 0;
    by("step-next").disabled = at === views.length - 1;
    if (!view.open) { view.showModal(); body.focus(); }
    view.scrollTop = body.scrollTop = 0;
    mark([...by("step-strip").querySelectorAll(".t")].findLastIndex((cell) => Number(cell.dataset.from) <= at));
    remember(`#${step.id}`);
  }
  const remember = (hash) => {
    try { history.replaceState(null, "", hash || location.href.split("#")[0]); } catch { /* a page without an address */ }
  };
  const follow = (hash) => {
    const [, place, at] = /^#(run-\d+)-at-(\d+)$/.exec(hash) || [];
    if (place) show(place, Number(at));
    return Boolean(place);
  };
  by("step-before").addEventListener("click", () => show(shownIn, shownAt - 1));
  by("step-next").addEventListener("click", () => show(shownIn, shownAt + 1));
  by("step-close").addEventListener("click", () => view.close());
  view.addEventListener("click", (event) => event.target === view && view.close());
  view.addEventListener("close", () => { tip.hidden = true; document.body.append(tip); remember(""); });
  view.addEventListener("keydown", (event) => {
    const goes = { ArrowLeft: shownAt - 1, ArrowRight: shownAt + 1 };
    if (event.key in goes) { event.preventDefault(); show(shownIn, goes[event.key]); }
  });
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href]");
    if (link && !event.ctrlKey && !event.metaKey && follow(link.getAttribute("href"))) event.preventDefault();
  });

  for (const strip of document.querySelectorAll(".overview .strip")) {
    const place = strip.dataset.run;
    slideStrip(strip, place, viewsOf(place), (at) => show(place, at));
  }

  for (const run of document.querySelectorAll(".run")) {
    const table = run.querySelector(".steps");
    if (!table) continue;
    const rows = table.tBodies[0].rows, heads = table.tHead.rows[0].cells, views = viewsOf(run.id);
    for (const row of rows) {
      row.addEventListener("click", (event) => {
        if (!event.target.closest("a") && !String(getSelection())) show(run.id, row.sectionRowIndex);
      });
    }
    const names = [...heads].map((head) => head.textContent);
    const charts = [...run.querySelectorAll(".timeline .row[data-name]")].map((place) => {
      const { name, metric } = place.dataset;
      // The metrics stand last in the table.
      const column = metric < 0 ? names.indexOf(name) : names.lastIndexOf(name);
      return { box: place.querySelector(".chart"), metric, column };
    });
    const hide = () => {
      for (const { box } of charts) for (const mark of box.querySelectorAll(".cross, .dot")) mark.removeAttribute("d");
    };
    for (const chart of charts) {
      const told = (step) => {
        const cells = rows[step].cells, x = (step + 0.5) / rows.length * WIDTH;
        for (const { box, column } of charts) {
          const value = parseFloat(cells[column].textContent);
          box.querySelector(".cross").setAttribute("d", `M${x} 0v${HEIGHT}`);
          box.querySelector(".dot").setAttribute("d", Number.isNaN(value) ? "" : `M${x} ${(1 - value) * HEIGHT}h0`);
        }
        const name = names[chart.column], value = cells[chart.column].textContent;
        const result = [`${name} ${Number.isNaN(parseFloat(value)) ? "unknown" : value} `];
        if (name === "index") result.push(...copies(cells[4]), ` coverage ${cells[5].textContent}`);
        const evidence = chart.metric < 0 ? [views[step].querySelector(".cause")]
          : views[step].querySelectorAll(`[data-metric="${chart.metric}"]`);
        const area = chart.box.getBoundingClientRect();
        return tell([
          line("quiet", [`step ${views[step].dataset.name ?? step} · `, ...copies(cells[1])]),
          line("value", result),
          line("", copies(cells[2])),
          ...[...evidence, ...(chart.metric < 0 ? views[step].querySelectorAll(".stopped") : [])]
            .map((one) => line("quiet", copies(one))),
        ], area, area.left + x / WIDTH * area.width);
      };
      slide(chart.box, rows.length, told, hide, (step) => show(run.id, step));
    }
  }
  // The form above moves the page after the browser has gone to its address.
  addEventListener("load", () => follow(location.hash)
    || by(location.hash.slice(1))?.scrollIntoView({ behavior: "instant" }));
}
{
  const table = document.getElementById("overview"), form = document.getElementById("finder");
  if (table.tBodies && form) {
    const body = table.tBodies[0], heads = [...table.tHead.rows[0].cells], sort = document.getElementById("sort");
    const find = document.getElementById("find"), filters = [...form.querySelectorAll("[data-filter]")];
    form.hidden = false;
    form.addEventListener("submit", (event) => event.preventDefault());
    const sift = () => {
      const words = find.value.toLowerCase().split(/\s+/).filter(Boolean);
      let left = 0;
      for (const row of body.rows) {
        const section = document.getElementById(row.dataset.run);
        const text = [row, ...section.querySelectorAll(".refused")].map((one) => one.textContent).join(" ").toLowerCase();
        row.hidden = !words.every((word) => text.includes(word))
          || !filters.every((filter) => !filter.value || filter.value === row.dataset[filter.dataset.filter]);
        left += !row.hidden;
        section.hidden = row.hidden;
      }
      document.getElementById("found").textContent = left < body.rows.length ? `${left} of ${body.rows.length} runs` : "";
    };
    form.addEventListener("input", sift);
    const ranks = (row, at) => {
      const cell = row.cells[at], text = cell.dataset.rank || cell.textContent.trim(), value = parseFloat(text);
      return Number.isNaN(value) ? text : value;
    };
    const given = [...body.rows];
    const sortBy = (at, down) => {
      for (const other of heads) other.removeAttribute("aria-sort");
      sort.value = at;
      if (at < 0) return body.append(...given);
      heads[at].setAttribute("aria-sort", down ? "descending" : "ascending");
      const order = (one, two) => one < two ? -1 : one > two ? 1 : 0;
      const rows = [...body.rows].sort((one, two) => {
        const [a, b] = [ranks(one, at), ranks(two, at)];
        return (down ? -1 : 1) * (typeof a === typeof b ? order(a, b) : order(typeof a, typeof b));
      });
      body.append(...rows);
    };
    sort.append(new Option("as given", -1));
    heads.forEach((head, at) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => sortBy(at, head.getAttribute("aria-sort") === "ascending"));
      sort.append(new Option(head.textContent, at));
    });
    sort.addEventListener("change", () => sortBy(Number(sort.value), false));
    sift();
  }
}
