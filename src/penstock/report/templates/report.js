// The page: what is open, chosen and in view, kept in the address (#incident=3&sensors=a,b&from=…&to=…), and all of it
// drawn anew when the address, the width, the colours or the paper change.

document.documentElement.classList.add("scripted");
const find = (id) => document.getElementById(id);
const record = data.overview;
const view = overviewView(record);
const opened = new Map(); // charts of incidents, by number
const articles = new Map([...document.querySelectorAll("article.case")].map((each) => [Number(each.dataset.case), each]));
let current = null;

function selectedContent(selected) {
  const { places, begins } = levelAt(0);
  return overviewContent(record, places, begins, scoreValues, (number) => ({ strong: number === selected, color: number === selected ? "--orange" : "--band" }));
}

function laneText(name, label) {
  return (name === "faults" ? "known fault" : name) + (label ? ": " + label : "");
}

const scoreValues = unpackCurve(data.explorer.score);
const timeline = find("timeline");
const plant = new TimeChart(timeline, view, {
  clock, height: 150, top: 22, left: 84, ticks: 3, zero: true, label: "Score over time with the " + data.word + "s",
  onBand: (band) => open(band.key, true),
  tip(place, band, gap) {
    if (gap) return ["no readings for " + gap.label];
    const { places } = levelAt(0), i = nearestAt(places, place);
    if (band && band.lane) return [laneText(band.lane, band.label)];
    const lines = [clock.show(places[i]), "score " + showNumber(scoreValues[i])];
    if (band) lines.push(data.word + " " + band.label + ": click to open it");
    for (const lane of record.lanes) {
      const at = lane.bands.find(([from, to]) => place >= from && place <= to);
      if (at) lines.push(laneText(lane.name, at[2]));
    }
    return lines;
  },
});
plant.set(selectedContent(null));
const explorer = new Explorer(view, selectedContent(null), () => keepAddress());

// Opens one incident; the others are closed. `go` moves there.
function open(number, go) {
  if (!articles.has(number)) return;
  current = number;
  for (const [other, article] of articles) article.hidden = other !== number;
  for (const row of document.querySelectorAll("#case-table tbody tr")) {
    const own = Number(row.dataset.case) === number;
    row.classList.toggle("current", own);
    if (own) row.querySelector("a").setAttribute("aria-current", "true");
    else row.querySelector("a").removeAttribute("aria-current");
  }
  const article = articles.get(number);
  if (!opened.has(number) && data.cases[number]) opened.set(number, new IncidentCharts(article, data.cases[number]));
  plant.set(selectedContent(number));
  if (!go) return;
  keepAddress();
  article.scrollIntoView({ behavior: calm.matches ? "auto" : "smooth", block: "start" });
  article.querySelector("h3").focus({ preventScroll: true });
}

function address() {
  const parts = [];
  if (current !== null) parts.push(data.word + "=" + current);
  if (explorer.columns.length) {
    parts.push("sensors=" + explorer.columns.map((column) => encodeURIComponent(data.explorer.sensors[column].name)).join(","));
  }
  if (explorer.layout !== "stack") parts.push("layout=" + explorer.layout);
  if (!view.isWhole) parts.push("from=" + clock.mark(view.range[0]), "to=" + clock.mark(view.range[1]));
  return "#" + parts.join("&");
}

// At once, or a little after the last of many changes: browsers allow few in a second.
let started = false, waiting = 0;

function keepAddress(delay = 0) {
  clearTimeout(waiting);
  if (delay) waiting = setTimeout(keepAddress, delay);
  else if (started) history.replaceState(null, "", address());
}

function readAddress() {
  const given = {};
  for (const part of location.hash.slice(1).split("&")) {
    const at = part.indexOf("=");
    if (at > 0) given[part.slice(0, at)] = part.slice(at + 1);
  }
  return given;
}

// What an address says; what it does not name stays.
function restore(go) {
  const given = readAddress(), number = Number(given[data.word]);
  if (given.sensors !== undefined || given.layout) {
    const names = given.sensors === undefined ? null : given.sensors.split(",").map(decode);
    const columns = names && names.map((name) => data.explorer.sensors.findIndex((sensor) => sensor.name === name)).filter((i) => i >= 0);
    explorer.set((columns || explorer.columns).slice(0, MOST_CHOSEN), given.layout === "overlay" ? "overlay" : "stack", true);
  }
  const from = clock.parse(decode(given.from || "")), to = clock.parse(decode(given.to || ""));
  if (from < to) view.show(from, to);
  if (articles.has(number)) open(number, go);
  else return false;
  return true;
}

function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

// The table: a click on a line opens it; filters; all lines.
const table = find("case-table");
if (table) {
  table.addEventListener("click", (event) => {
    const row = event.target.closest("tbody tr");
    if (!row || (!event.target.closest("a") && String(window.getSelection()))) return;
    if (!articles.has(Number(row.dataset.case))) return;
    event.preventDefault();
    open(Number(row.dataset.case), true);
  });
  const filters = find("filters"), fields = [...filters.querySelectorAll("input, select")], reset = filters.querySelector("button");
  const apply = () => {
    const wanted = Object.fromEntries(fields.map((field) => [field.name, field.value])), sensor = (wanted.sensor || "").trim().toLowerCase();
    let shown = 0, active = false;
    for (const name in wanted) active = active || Boolean(wanted[name].trim());
    for (const each of data.filters) {
      const keep = (!wanted.sure || each.sure === (wanted.sure === "yes")) && (!wanted.area || each.areas.includes(wanted.area)) &&
        (!wanted.mode || each.mode === wanted.mode) && (!wanted.day || each.days.includes(wanted.day)) &&
        (!sensor || each.sensors.some((column) => data.explorer.sensors[column].name.toLowerCase().includes(sensor)));
      table.querySelector('tr[data-case="' + each.number + '"]').hidden = !keep;
      shown += keep;
    }
    table.classList.toggle("filtered", active);
    reset.disabled = !active;
    find("filtered").textContent = active ? shown + " of " + data.filters.length : "";
  };
  filters.addEventListener("input", apply);
  reset.addEventListener("click", () => {
    for (const field of fields) field.value = "";
    apply();
  });
  apply();
  const all = find("all-rows");
  if (all) {
    all.addEventListener("click", () => {
      const isOpen = table.classList.toggle("whole");
      all.setAttribute("aria-expanded", String(isOpen));
      all.textContent = isOpen ? "Show fewer" : "Show all " + data.filters.length + " " + data.word + "s";
    });
  }
}

// On a phone each line of the list has one chart, of the sensor to look at first; drawn when it comes into sight.
const phone = window.matchMedia("(max-width: 760px)");
const sight = new IntersectionObserver((entries) => {
  for (const { target, isIntersecting } of entries) {
    const number = Number(target.dataset.case), own = data.cases[number];
    if (!isIntersecting || !phone.matches || !own || target.querySelector(".spark")) continue;
    const box = make("div", { class: "plot" }, make("td", { class: "spark" }, target));
    drawSpark(box, own);
  }
});
for (const row of document.querySelectorAll("#case-table tbody tr")) sight.observe(row);

document.addEventListener("click", (event) => {
  const button = event.target.closest("button[data-step], button[data-explore], button[data-zoom]");
  if (button && button.dataset.step) {
    const order = data.filters.map((each) => each.number).filter((number) => articles.has(number));
    const next = order[order.indexOf(current) + Number(button.dataset.step)];
    if (next !== undefined) open(next, true);
  } else if (button && button.dataset.explore) {
    const own = data.cases[button.dataset.explore];
    const columns = [...articles.get(current).querySelectorAll("li.sensor")].map((item) => Number(item.dataset.column));
    explorer.set(columns.slice(0, 6), explorer.layout);
    if (own) view.show(own.all[0], own.all[1]);
    find("explore").scrollIntoView({ behavior: calm.matches ? "auto" : "smooth" });
  } else if (button) ({ in: () => view.zoom(0.5), out: () => view.zoom(2), all: () => view.reset() })[button.dataset.zoom]();
  const link = event.target.closest('a[href^="#' + data.word + '="]');
  if (!link || link.closest("#case-table")) return;
  event.preventDefault();
  if (link.dataset.day) showDayOf(link.dataset.day);
  open(Number(link.getAttribute("href").split("=")[1]), true);
});

function showDayOf(day) {
  const from = clock.parse(day + "T00:00:00"), to = clock.parse(day + "T23:59:59");
  if (from < to) view.show(from, to);
}

// Zoom buttons and the frames of the calendar follow the view; so does the address.
let framed = "";
const days = [...document.querySelectorAll(".month td[data-day]")];

function follow(change) {
  if (!change.range) return;
  for (const button of document.querySelectorAll("button[data-zoom]")) {
    button.disabled = button.dataset.zoom === "in" ? view.range[1] - view.range[0] <= view.least * 1.01 : view.isWhole;
  }
  keepAddress(250);
  const span = view.isWhole || !clock.ordered ? "" : clock.iso(view.range[0]).slice(0, 10) + clock.iso(view.range[1]).slice(0, 10);
  if (span === framed) return;
  framed = span;
  for (const cell of days) {
    cell.classList.toggle("framed", span !== "" && cell.dataset.day >= span.slice(0, 10) && cell.dataset.day <= span.slice(10));
  }
}
view.follow(follow);

function drawAll() {
  forgetColors();
  plant.draw();
  explorer.draw();
  for (const charts of opened.values()) charts.draw();
}

const MOST_PRINTED = 20;
window.addEventListener("beforeprint", () => {
  TimeChart.paper = { width: 690, scale: 2 };
  plant.draw();
  for (const { number } of data.filters.slice(0, MOST_PRINTED)) {
    if (!articles.has(number) || !data.cases[number]) continue;
    if (!opened.has(number)) opened.set(number, new IncidentCharts(articles.get(number), data.cases[number]));
    TimeChart.paper.width = 470;
    opened.get(number).draw();
    TimeChart.paper.width = 690;
  }
});
window.addEventListener("afterprint", () => {
  TimeChart.paper = null;
  drawAll();
});
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
window.matchMedia("print").addEventListener("change", forgetColors);

// Short explanations of marks that are not drawn by a script.
for (const kind of ["pointerover", "focusin"]) {
  document.addEventListener(kind, (event) => {
    const marked = event.target.closest && event.target.closest("[data-tip]");
    if (!marked) return;
    const box = marked.getBoundingClientRect();
    showTip([marked.dataset.tip], box.left + box.width / 2, box.top);
  });
}
for (const kind of ["pointerout", "focusout"]) {
  document.addEventListener(kind, (event) => {
    if (event.target.closest && event.target.closest("[data-tip]")) hideTip();
  });
}
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") hideTip();
});

window.addEventListener("hashchange", () => restore(true));
const worst = data.filters.length ? data.filters[0].number : null;
explorer.set(worst !== null && articles.has(worst)
  ? [...articles.get(worst).querySelectorAll("li.sensor")].slice(0, 3).map((item) => Number(item.dataset.column))
  : data.explorer.order.slice(0, 3), "stack", true);
const asked = location.hash.length > 1;
if (!restore(asked) && worst !== null) open(worst, false);
follow({ range: true });
clearTimeout(waiting); // the address stays as it was given until something is chosen
started = true;
