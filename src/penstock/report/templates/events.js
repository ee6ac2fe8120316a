// The table of events: sorting, opening, and the charts inside, drawn when they are first seen.

function startEvents(table) {
  const drawn = new Map();

  function draw(event) {
    const box = table.querySelector('.charts[data-event="' + event + '"]');
    const record = data.events[event];
    if (!box || !record) return;
    const places = unpackPlaces(record.places);
    box.replaceChildren();
    for (const chart of record.charts) drawChart(make("figure", { class: "small" }, box), record, chart, places);
    drawn.set(event, true);
  }

  function setOpen(body, open) {
    const opener = body.querySelector(".opener");
    if (!opener) return;
    opener.setAttribute("aria-expanded", String(open));
    const why = body.querySelector(".why");
    why.hidden = !open;
    body.classList.toggle("open", open);
    const event = body.id.slice("event-".length);
    if (open && !drawn.has(event)) draw(event);
  }

  function sortBy(button) {
    const column = Number(button.dataset.column), head = button.closest("th");
    const ascending = head.getAttribute("aria-sort") !== "ascending";
    for (const other of table.tHead.querySelectorAll("th")) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", ascending ? "ascending" : "descending");
    const bodies = Array.from(table.tBodies);
    const key = (body) => Number(body.rows[0].cells[column].dataset.key);
    bodies.sort((a, b) => (ascending ? key(a) - key(b) : key(b) - key(a)));
    table.append(...bodies);
  }

  table.addEventListener("click", (event) => {
    const sorter = event.target.closest("thead button");
    if (sorter) return sortBy(sorter);
    const line = event.target.closest("tr.line");
    if (!line || (!event.target.closest("button") && String(window.getSelection()))) return;
    const body = line.parentElement;
    setOpen(body, !body.classList.contains("open"));
  });

  function goTo(hash) {
    const body = /^#event-\d+$/.test(hash) && document.getElementById(hash.slice(1));
    if (!body) return;
    setOpen(body, true);
    body.scrollIntoView({ behavior: calm.matches ? "auto" : "smooth", block: "start" });
    const opener = body.querySelector(".opener");
    if (opener) opener.focus({ preventScroll: true });
  }

  for (const body of table.tBodies) setOpen(body, false);
  document.addEventListener("click", (event) => {
    const link = event.target.closest('a[href^="#event-"], a[data-event]');
    if (!link) return;
    event.preventDefault();
    const hash = link.getAttribute("href");
    history.replaceState(null, "", hash);
    goTo(hash);
  });
  window.addEventListener("hashchange", () => goTo(location.hash));
  goTo(location.hash);

  return {
    // For paper, those that are open or marked to be printed, as wide as paper is.
    draw() {
      for (const event of drawn.keys()) draw(event);
    },
    drawPrinted() {
      for (const why of table.querySelectorAll(".why.printed")) draw(why.id.slice("why-".length));
    },
  };
}

function drawChart(figure, record, chart, places) {
  const actual = unpackCurve(chart.actual), expected = unpackCurve(chart.expected);
  const begins = new Set(record.begins);
  const caption = make("figcaption", {}, figure);
  make("bdi", { class: "name" }, caption, chart.name);
  const box = make("div", { class: "plot" }, figure);
  const [low, high] = extentOf([actual, expected]);
  // A curve that hardly moves is not blown up to the full height.
  const room = Math.max((high - low) * 0.08, (chart.range || 0) * 0.01, Math.abs(high) * 1e-9) || 1;
  const width = printWidth ? 250 : Math.max(240, box.clientWidth || 340);
  const last = places.length - 1;
  const x = places[last] > places[0] ? [places[0], places[last]] : [places[0] - 1, places[0] + 1];
  const frame = makeFrame(box, {
    width, height: 190, left: 52, right: 10, top: 24, bottom: 38, x, y: [low - room, high + room], rows: 5, spacing: 80,
  });
  const svg = frame.svg;
  const from = frame.toX(record.span[0]), wide = Math.max(3, frame.toX(record.span[1]) - from);
  const band = make("rect", { class: "band-event", x: (from - 1.5).toFixed(1), y: frame.top, width: (wide + 3).toFixed(1), height: frame.bottom - frame.top }, svg);
  svg.prepend(band);
  make("text", { class: "axis-name", x: 4, y: 12 }, svg, chart.unit ? shorten(chart.unit, 16) : "value");
  drawKey(svg, width);
  make("path", { class: "line-expected", d: linePath(frame, places, expected, begins, 0, places.length) }, svg);
  make("path", { class: "line-actual", d: linePath(frame, places, actual, begins, 0, places.length) }, svg);
  const dots = record.marked.filter((i) => !Number.isNaN(actual[i]));
  const at = (i) => "M" + frame.toX(places[i]).toFixed(1) + " " + frame.toY(actual[i]).toFixed(1) + "h0.01";
  make("path", { class: "dots-finding", d: dots.map(at).join("") }, svg);
  const cross = make("path", { class: "cross", d: "" }, svg);
  const marked = new Set(record.marked);
  box.addEventListener("pointermove", (event) => {
    const index = nearestAt(places, frame.toPlace(pointIn(svg, event).x));
    cross.setAttribute("d", "M" + frame.toX(places[index]).toFixed(1) + " " + frame.top + "V" + frame.bottom);
    const lines = [showPlace(places[index]), "actual " + withUnit(actual[index], chart.unit),
      data.expected + " " + withUnit(expected[index], chart.unit)];
    if (marked.has(index)) lines.push("finding");
    showTip(lines, event.clientX, event.clientY);
  });
  box.addEventListener("pointerleave", () => {
    cross.setAttribute("d", "");
    hideTip();
  });
}

function drawKey(svg, width) {
  const start = width - 150;
  make("path", { class: "line-actual", d: "M" + start + " 9h18" }, svg);
  make("text", { class: "tick", x: start + 22, y: 12 }, svg, "actual");
  make("path", { class: "line-expected", d: "M" + (start + 66) + " 9h18" }, svg);
  make("text", { class: "tick", x: start + 88, y: 12 }, svg, data.expected);
}
