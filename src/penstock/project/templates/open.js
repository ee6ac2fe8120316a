// The page of a project. What it shows is in the files of the project; texts are never read as markup.

const $ = (id) => document.getElementById(id);
const STEPS = ["data", "understood", "findings", "compare", "live", "keep"];
const HUES = ["--blue", "--green", "--purple", "--yellow", "--sky", "--orange"];
const EXPORTS = [["report", "The report, to read and to hand over", "report.html"], ["workbook", "All tables as a workbook", "findings.xlsx"],
  ["incidents", "The incidents as CSV", "incidents.csv"], ["findings", "The rows found as CSV", "findings.csv"],
  ["notebook", "The same steps in Python, as a notebook", "penstock.ipynb"]];
// Of each kind of source: what its place is called, an example, and what the text below it is.
const PLACES = { input: ["File", "plant.csv"], folder: ["Folder", "exports"], http: ["", "", "A row as it will be posted: JSON, or CSV with a header"],
  mqtt: ["Address", "mqtt://host:1883/plant/#"], opcua: ["Address", "opc.tcp://host:4840", "Sensors and their nodes, one a line"], kafka: ["Address", "kafka://host:9092/plant"] };
const COMPARED = { periods: ["The same tags at two times: before and after a repair, for instance. Write START..END.", "2024-05-01..2024-05-14", "2024-06-01..2024-06-14"],
  units: ["Sister machines side by side: a word of the tags' names, such as unit1 and unit2, a group, or the names of two files.", "unit1", "unit2"] };
const page = { step: "", state: null, look: null, findings: null, charts: null, view: null, clock: null, chart: null, drawn: "",
  sensors: new Map(), chosen: new Set(), incident: null, asking: Promise.resolve(), levels: [] };

// Requests. The token comes with the address, and is kept until this tab is closed.

function takeToken() {
  const found = location.hash.match(/token=([\w-]+)/);
  if (!found) return;
  sessionStorage.setItem("token", found[1]);
  history.replaceState(null, "", "#" + STEPS[0]);
}

function headers(more) {
  return { authorization: "Bearer " + sessionStorage.getItem("token"), ...more };
}

async function ask(path, options = {}) {
  const answer = await fetch("/api/" + path, { ...options, headers: headers(options.headers), cache: "no-store" });
  const content = await answer.json().catch(() => ({ error: "The program gave no answer." }));
  if (answer.status === 401) show("lost");
  if (!answer.ok) throw new Error(content.error || "The program said no.");
  return content;
}

function send(name, body = {}) {
  return ask("do/" + name, { method: "POST", body: JSON.stringify(body), headers: { "content-type": "application/json", "penstock-command": "1" } });
}

// Runs a command, shows its error beside what was used, and what is there then.
async function act(run, problem) {
  $(problem || "problems").replaceChildren();
  try {
    const answer = await run();
    await refresh();
    return answer;
  } catch (error) {
    if (problem) $(problem).textContent = error.message;
    else $("problems").replaceChildren(make("p", { class: "notice bad" }, null, error.message));
    return null;
  }
}

// What there is: asked for once a second while there is work, and now and then otherwise, as another tab may change it.

function refresh() {
  page.asking = page.asking.catch(() => {}).then(load); // one after the other
  return page.asking;
}

async function load() {
  const state = page.state = await ask("state");
  if (state.problem || page.problem) fill($("problems"), state.problem ? [make("p", { class: "notice bad" }, null, state.problem)] : []);
  page.problem = state.problem;
  for (const name of ["look", "findings"]) {
    const stamp = state.results[name];
    if (page[name] && page[name].stamp === stamp) continue;
    page[name] = stamp && { ...await ask("results/" + name), stamp };
  }
  if (page.findings && (!page.charts || page.charts.key !== page.findings.key)) page.charts = await ask("results/charts");
  const shown = JSON.stringify({ ...state, work: state.work && state.work.what });
  if (shown === page.shown) return drawWork(); // what is drawn anew loses the focus
  page.shown = shown;
  draw();
}

async function watch() {
  for (;;) {
    try {
      await refresh();
    } catch (error) {
      $("work-stage").textContent = "No connection: is 'penstock open' still running? " + error.message;
    }
    await new Promise((done) => setTimeout(done, page.state && page.state.work ? 700 : 3000));
  }
}

function show(step) {
  page.step = step;
  for (const each of ["lost", ...STEPS]) $("page-" + each).hidden = each !== step;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === "#" + step) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function turn() {
  takeToken();
  const wanted = location.hash.slice(1);
  if (!sessionStorage.getItem("token")) return show("lost");
  show(STEPS.includes(wanted) ? wanted : "data");
  if (page.state) draw();
}

function go(step) {
  location.hash = step;
}

function fill(parent, children) {
  parent.replaceChildren(...children);
}

function item(text, ...rest) {
  const made = make("li", {});
  if (text) make("span", {}, made, text);
  made.append(...rest);
  return made;
}

function soft(text) {
  return make("span", { class: "soft" }, null, text);
}

function row(cells, attributes = {}) {
  const made = make("tr", attributes);
  for (const cell of cells) {
    const td = make("td", {}, made);
    if (cell instanceof Node) td.append(cell);
    else td.textContent = cell;
  }
  return made;
}

function button(text, run, attributes = {}) {
  const made = make("button", { type: "button", ...attributes }, null, text);
  made.addEventListener("click", run);
  return made;
}

function when(stamp) {
  return typeof stamp === "string" ? stamp.replace("T", " ").slice(0, 16) : "row " + stamp;
}

// An error of reading or scoring, with buttons for what may put it right.
function showError(box, error) {
  if (!error) return fill(box, []);
  const made = make("div", { class: "notice bad" });
  make("p", {}, made, error.message);
  made.append(...error.cures.map(cureButton), button("Choose other data", () => go("data")));
  fill(box, [made]);
}

function cureButton(cure) {
  return button("Use " + cure.text.replace(/^--/, "").replaceAll("-", " "), () => change({ [cure.name]: cure.value }));
}

function change(settings) {
  return act(() => send("change", settings));
}

function drawWork() {
  const { state } = page, work = state.work;
  $("project").textContent = state.folder;
  $("work").classList.toggle("busy", Boolean(work));
  const stale = !work && page.findings && page.findings.key !== state.key && page.step === "findings"; // in a bar that is always there: nothing moves
  $("work-stage").textContent = work ? work.stage + " … " + Math.round(work.seconds) + " s" : stale ? "Changed since this was scored." : page.step === "data" || !page.look ? "Ready" : page.look.source + ": ready";
  $("cancel").hidden = !work;
  $("again").hidden = !stale;
}

function draw() {
  drawWork();
  ({ data: drawData, understood: drawLook, findings: drawFindings, compare: drawCompare, live: drawLive, keep: drawKeep })[page.step]?.();
}

// 1 Data.

function drawData() {
  const { uploads, settings, ended, paths } = page.state;
  $("path-form").hidden = !paths;
  $("uploads-head").hidden = !uploads.length && !settings.source.length;
  const size = (bytes) => (bytes < 1e6 ? showNumber(Math.ceil(bytes / 1e3)) + " kB" : showNumber(bytes / 1e6) + " MB");
  const items = uploads.map((file) => item(file.name, soft(size(file.bytes)), button("Remove", () => act(() => send("remove", { name: file.name }), "data-problem"))));
  const others = settings.source.filter((each) => !uploads.some((file) => "data/" + file.name === each));
  items.push(...others.map((each) => item(each)));
  if (settings.source.length) items.push(item("", button("What I understood of it", () => go("understood"), { class: "first" })));
  const failed = ended.look && ended.look.error;
  if (failed && !page.state.work && settings.source.length) items.push(make("li", { class: "problem" }, null, failed.message));
  fill($("uploads"), items);
}

async function upload(files) {
  const seen = [...files].filter((file) => !/(^|\/)\./.test(placeOf(file)));
  const isTable = (file) => [".zip", ...page.state.endings].some((ending) => file.name.toLowerCase().endsWith(ending));
  const chosen = seen.length > 1 ? seen.filter(isTable) : seen, others = seen.filter((file) => !chosen.includes(file)).map((file) => file.name);
  if (!seen.length) return;
  const total = chosen.reduce((sum, file) => sum + file.size, 0) || 1;
  let before = 0;
  $("upload").hidden = false;
  $("data-problem").textContent = others.length ? "No tables, left out: " + others.slice(0, 5).join(", ") + (others.length > 5 ? ", …" : "") + "." : "";
  try {
    for (const file of chosen) {
      const name = chosen.some((other) => other !== file && other.name === file.name) ? placeOf(file).replaceAll("/", "_") : file.name; // of two folders
      await uploadOne(file, name, (sent) => { $("upload").value = (before + sent) / total; });
      before += file.size;
    }
    if (chosen.length) {
      await send("uploaded");
      go("understood");
    }
  } catch (error) {
    $("data-problem").textContent = error.message;
  }
  $("upload").hidden = true;
  await refresh();
}

// Where a file was in the folder that it came in.
function placeOf(file) {
  return (file.place || file.webkitRelativePath || file.name).replace(/^\//, "");
}

function uploadOne(file, name, progress, place = "upload") {
  return new Promise((done, fail) => {
    const request = new XMLHttpRequest();
    request.open("POST", "/api/" + place + "?name=" + encodeURIComponent(name));
    for (const [name, value] of Object.entries(headers({ "penstock-command": "1" }))) request.setRequestHeader(name, value);
    request.upload.addEventListener("progress", (event) => progress(event.loaded));
    request.addEventListener("load", () => {
      if (request.status < 300) return done();
      let text = "The file was not taken.";
      try { text = JSON.parse(request.responseText).error; } catch { /* it was no JSON */ }
      fail(new Error(text));
    });
    request.addEventListener("error", () => fail(new Error("The file was not taken: the connection was lost, or it is too large.")));
    request.send(file);
  });
}

// All files of a drop, those in folders too.
async function filesOf(transfer) {
  const entries = [...transfer.items].map((item) => item.webkitGetAsEntry && item.webkitGetAsEntry()).filter(Boolean);
  if (!entries.length) return transfer.files;
  const found = [];
  const walk = async (entry) => {
    if (entry.isFile) return found.push(Object.assign(await new Promise((done, fail) => entry.file(done, fail)), { place: entry.fullPath }));
    const reader = entry.createReader();
    for (;;) {
      const some = await new Promise((done, fail) => reader.readEntries(done, fail));
      if (!some.length) return;
      for (const each of some) await walk(each);
    }
  };
  for (const entry of entries) await walk(entry);
  return found;
}

// 2 What I understood.

function drawLook() {
  const { state, look } = page, ended = state.ended.look;
  showError($("look-problem"), !state.work && ended ? ended.error : null);
  if (!state.settings.source.length && !state.work) fill($("look-problem"), [make("p", {}, null, "There is no data yet: choose some in the first step.")]);
  $("look-body").hidden = !look || !state.settings.source.length || Boolean(ended && ended.error);
  if (!look || page.drawn === look.stamp) return;
  page.drawn = look.stamp;
  const time = look.time, parts = [look.source + ": " + showNumber(look.rows) + " rows of " + showNumber(look.tags.length) + " tags"];
  if (time) {
    parts.push("from " + when(time.first) + " until " + when(time.last) + (time.zone ? " (" + time.zone + ")" : ""));
    if (time.step) parts.push("every " + time.step_in_words);
    parts.push(time.gaps ? time.gaps + (time.gaps === 1 ? " gap" : " gaps") + ", the longest " + showDuration(time.longest_gap * 1000) : "no gaps");
    parts.push("times: " + time.how);
  } else parts.push("without time");
  $("look-lead").textContent = parts.join("; ") + ".";
  const agree = (cures) => cures.filter((cure) => typeof cure.value === "boolean").map((cure) => button("It is right so", () => change({ [cure.name]: !cure.value })));
  fill($("doubts"), look.doubts.map((doubt) => item("Please check: " + doubt.message, ...doubt.cures.map(cureButton), ...agree(doubt.cures))));
  const settings = state.settings;
  $("timezone").value = settings.timezone || "";
  $("step").value = settings.step || "";
  $("day-first").value = settings.day_first === undefined ? "" : String(settings.day_first);
  fill($("label-column"), [make("option", { value: "" }, null, "none"), ...[...new Set([settings.label, ...look.tags.map((tag) => tag.name)])].filter(Boolean).map((name) => make("option", { value: name }, null, name))]);
  $("label-column").value = settings.label || "";
  if ($("role").options.length < 2) {
    for (const role of state.roles.filter((each) => !["constant", "text", "time"].includes(each))) make("option", { value: role }, $("role"), role);
    make("option", { value: "left out" }, $("role"), "left out");
    make("option", { value: "found" }, $("role"), "as found");
  }
  fill($("plan"), [...look.plan, ...look.notes].map((text) => make("li", {}, null, text)));
  page.chosen = new Set([...page.chosen].filter((name) => look.tags.some((tag) => tag.name === name)));
  drawTags();
}

function drawTags() {
  const words = $("tag-search").value.toLowerCase().split(/\s+/).filter(Boolean);
  const excluded = (page.state.settings.exclude || []).map((name) => ({ name, role: "left out", use: "left out", left_out: "Left out by you.", unit: "", reasons: [], curve: [] }));
  const tags = [...page.look.tags, ...excluded.filter((each) => !page.look.tags.some((tag) => tag.name === each.name))];
  const shown = tags.filter((tag) => words.every((word) => (tag.name + " " + tag.role).toLowerCase().includes(word)));
  fill($("tags"), shown.map((tag) => {
    const box = make("input", { type: "checkbox", "aria-label": "Choose " + tag.name });
    box.checked = page.chosen.has(tag.name);
    box.addEventListener("change", () => {
      if (box.checked) page.chosen.add(tag.name);
      else page.chosen.delete(tag.name);
      countChosen();
    });
    const usual = tag.usual_low === null || tag.usual_low === undefined ? "" : showNumber(tag.usual_low) + " – " + withUnit(tag.usual_high, tag.unit);
    const remarks = [...new Set([tag.left_out, ...tag.reasons])].concat([ tag.bad ? showNumber(tag.bad) + " readings of bad quality" : ""]).filter(Boolean).join(" ");
    return row([box, tag.name, sparkline(tag.curve), tag.role, usual, tag.interval ? showDuration(tag.interval * 1000) : "", tag.share_missing ? (100 * tag.share_missing).toFixed(1) + " %" : "", remarks],
      tag.use === "left out" ? { class: "out" } : {});
  }));
  $("choose-all").checked = shown.length > 0 && shown.every((tag) => page.chosen.has(tag.name));
  $("choose-all").onchange = () => {
    for (const tag of shown) $("choose-all").checked ? page.chosen.add(tag.name) : page.chosen.delete(tag.name);
    drawTags();
  };
  countChosen();
}

function countChosen() {
  const count = page.chosen.size;
  $("chosen-count").textContent = count ? count + (count === 1 ? " tag chosen" : " tags chosen") : "No tag chosen";
  $("role").disabled = !count;
}

// A small curve of the lowest and highest readings.
function sparkline(curve) {
  const svg = make("svg", { class: "spark", viewBox: "0 0 110 26", preserveAspectRatio: "none", "aria-hidden": "true" });
  const values = curve.flat().filter((value) => value !== null), low = Math.min(...values), high = Math.max(...values);
  if (!values.length) return svg;
  const y = (value) => (high > low ? 24 - ((value - low) / (high - low)) * 22 : 13).toFixed(1);
  let path = "";
  curve.forEach(([from, to], i) => {
    if (from === null) return;
    const x = ((i + 0.5) * 110 / curve.length).toFixed(1);
    path += (path && curve[i - 1] && curve[i - 1][0] !== null ? "L" : "M") + x + " " + y(from) + "L" + x + " " + y(to);
  });
  make("path", { d: path }, svg);
  return svg;
}

// 3 What is wrong.

function drawFindings() {
  const { state, findings } = page, ended = state.ended.detect;
  showError($("findings-problem"), !state.work && ended ? ended.error : null);
  const busy = state.work && state.work.what === "detect";
  const unread = !busy && state.ended.look && state.ended.look.error;
  if (!findings && unread) showError($("findings-problem"), unread);
  else if (!findings && !busy) {
    fill($("findings-problem"), [...$("findings-problem").children, state.settings.source.length ? button("Find what is wrong", detect, { class: "first" }) : make("p", {}, null, "There is no data yet: choose some in the first step.")]);
  }
  $("findings-body").hidden = !findings;
  if (!findings || !page.charts) return;
  const verdict = $("verdict");
  verdict.textContent = findings.verdict.sentence;
  verdict.className = "verdict " + findings.verdict.kind;
  fill($("changed"), findings.changed.map((text) => make("li", {}, null, text)));
  fill($("warnings"), findings.warnings.map((text) => make("li", {}, null, text)));
  drawMarks();
  drawIncidents();
  drawFailures();
  drawCharts();
}

function detect() {
  go("findings");
  return act(() => send("run", { what: "detect" }));
}

function drawMarks() {
  const words = { train_periods: "Learn from ", exclude_periods: "Left out: " };
  fill($("marks"), Object.keys(words).flatMap((kind) => (page.state.settings[kind] || []).map((period) => item(
    words[kind] + period.replace("..", " until ").replaceAll("T", " "), button("Remove", () => act(() => send("mark", { kind, period, remove: true }), "mark-problem"))))));
}

function lengthOf(each) {
  if (!each.duration) return "one row";
  return typeof each.start === "string" ? showDuration(each.duration * 1000) : showNumber(each.duration) + (each.duration === 1 ? " row" : " rows");
}

function drawIncidents() {
  const { findings } = page;
  $("incident-table").hidden = !findings.incidents.length && !findings.events.length;
  $("no-incidents").hidden = Boolean(findings.incidents.length);
  $("no-incidents").textContent = findings.events.length ? "This method lists single events, without a cause; they cannot be labelled." : "Nothing is listed: no stretch is higher than chance would show.";
  const rows = findings.incidents.map((each) => {
    const said = each.label ? each.label.reason + (each.label.comment ? ": " + each.label.comment : "") : each.known ? "like " + each.known : "";
    const cell = make("span", {});
    if (said) make("span", { class: "chip good" }, cell, said);
    cell.append(button(each.label ? "Change" : "Say what it was", () => openLabel(each), { "aria-label": (each.label ? "Change" : "Say what it was") + ", incident " + each.incident }));
    return row([String(each.incident), when(each.start), lengthOf(each), each.first_sensor, each.condition, cell],
      said ? { class: "known" } : {});
  });
  const events = findings.events.slice(0, 30).map((each) => row([String(each.event), when(each.start), lengthOf(each), "", "score " + showNumber(each.peak_score), ""]));
  fill($("incidents"), rows.length ? rows : events);
}

function drawFailures() {
  const { findings, state } = page, log = findings.failures;
  $("no-failures").hidden = !state.failures.length;
  $("failure-table").hidden = !log;
  if (!log) {
    $("failures-lead").textContent = state.failures.length ? state.failures.length + " in the log. Score again to compare." : "";
    return;
  }
  $("failures-lead").textContent = log.found + " of " + log.scored + " known failures with rows were found" + (log.scored > log.found ? ", " + (log.scored - log.found) + " missed." : ".");
  const texts = (each) => state.failures.filter((known) => known.start.slice(0, 10) <= String(each.end).slice(0, 10) && known.end.slice(0, 10) >= String(each.start).slice(0, 10)).map((known) => known.text).join("; ");
  fill($("failures"), log.list.map((each) => row([when(each.start), when(each.end), texts(each), each.found ? "✓ found" : each.scored ? "✗ missed" : "not scored",
    each.found ? warningTime(each.lead) : ""])));
}

function warningTime(seconds) {
  if (!seconds) return "as it began";
  return showDuration(Math.abs(seconds) * 1000) + (seconds > 0 ? " before it" : " after it began");
}

function bandOf(period, color, label) {
  const [from, to] = period.split("..").map((each) => each.trim().replace(" ", "T"));
  const place = (text, end) => (end && /^\d{4}-\d\d-\d\d$/.test(text) ? page.clock.parse(text) + 86400000 : page.clock.parse(/T\d\d:\d\d$/.test(text) ? text + ":00" : text));
  const { extent } = page.charts.overview;
  const ends = [from ? place(from, false) : extent[0], to ? place(to, true) : extent[1]];
  return ends.some(Number.isNaN) ? null : { from: ends[0], to: ends[1], label, color };
}

function drawCharts() {
  const { charts } = page;
  if (page.chart && page.chart.key !== charts.key) {
    for (const each of [page.chart.chart, ...page.sensors.values()]) each.remove();
    $("sensor-charts").replaceChildren();
    page.sensors.clear();
    page.chart = null;
  }
  if (!page.chart) {
    page.clock = new Clock(charts.axis);
    page.view = overviewView(charts.overview);
    page.levels = charts.explorer.levels.map((level) => ({ places: unpackPlaces(level.places), begins: level.begins }));
    page.scores = unpackCurve(charts.explorer.score);
    const chart = new TimeChart($("score-chart"), page.view, {
      clock: page.clock, height: 150, top: 22, left: 84, ticks: 3, zero: true, label: "Score over time with the incidents",
      onSelect: mark,
      onBand: (band) => openLabel(page.findings.incidents.find((each) => each.incident === band.key)),
      tip(place, band) {
        const { places } = page.levels[0], i = nearestAt(places, place);
        return [page.clock.show(places[i]), "score " + showNumber(page.scores[i]), ...(band && band.key ? ["incident " + band.key + ": click to say what it was"] : [])];
      },
    });
    page.chart = { chart, key: charts.key };
    const select = $("add-sensor");
    fill(select, [make("option", { value: "" }, null, "choose a sensor …"), ...charts.explorer.order.map((i) => make("option", { value: i }, null, charts.explorer.sensors[i].name))]);
    for (const i of charts.explorer.order.slice(0, 3)) addSensor(i);
  }
  page.chart.chart.set(content());
  for (const chart of page.sensors.values()) chart.set({ ...chart.data, bands: plainBands() });
}

// Above the curves of sensors there is no room for words.
function plainBands() {
  return markBands().map((band) => ({ ...band, label: "" }));
}

function markBands() {
  const { settings } = page.state;
  return [...(settings.train_periods || []).map((each) => bandOf(each, "--green", "learn from")), ...(settings.exclude_periods || []).map((each) => bandOf(each, "--missing", "left out")),
    page.marked ? { from: page.marked[0], to: page.marked[1], color: "--blue", strong: true, label: "marked" } : null].filter(Boolean);
}

function content() {
  const { places, begins } = page.levels[0], known = new Set(page.findings.incidents.filter((each) => each.label || each.known).map((each) => each.incident));
  const shown = overviewContent(page.charts.overview, places, begins, page.scores, (number) => ({ color: known.has(number) ? "--ink-soft" : "--band" }));
  return { ...shown, bands: [...shown.bands, ...markBands()] };
}

function addSensor(i) {
  if (page.sensors.has(i)) return;
  const sensor = page.charts.explorer.sensors[i], plot = make("div", { class: "plot" }, $("sensor-charts"));
  const head = make("h4", {}, plot);
  make("span", {}, head, sensor.name + (sensor.unit && !sensor.name.includes(sensor.unit) ? " (" + sensor.unit + ")" : ""));
  const chart = new TimeChart(make("div", {}, plot), page.view, {
    clock: page.clock, height: 110, left: 84, ticks: 3, label: sensor.name, onSelect: mark,
    tip(place) {
      const { places } = page.levels[sensor.level], at = nearestAt(places, place);
      return [page.clock.show(places[at]), withUnit(chart.data.series[0].values[at], sensor.unit)];
    },
  });
  head.append(button("Hide", () => {
    chart.remove();
    plot.remove();
    page.sensors.delete(i);
  }));
  const { places, begins } = page.levels[sensor.level];
  chart.set({ series: [{ places, begins, values: unpackCurve(sensor.curve), color: HUES[page.sensors.size % HUES.length] }], bands: plainBands() });
  page.sensors.set(i, chart);
}

// A period was dragged over: it is shown, and its ends can be changed by hand.
function mark(from, to) {
  page.marked = [from, to];
  $("mark-from").value = page.clock.iso(from).replace("T", " ");
  $("mark-to").value = page.clock.iso(to).replace("T", " ");
  page.chart.chart.set(content());
  for (const chart of page.sensors.values()) chart.set({ ...chart.data, bands: markBands() });
  return true;
}

function openLabel(incident) {
  if (!incident) return;
  page.incident = incident;
  $("label-head").textContent = "Incident " + incident.incident + ", " + when(incident.start) + ": what was it?";
  $("label-why").textContent = incident.reason;
  fill($("label-sensors"), incident.sensors.slice(0, 8).map((sensor) => row([sensor.name, sensor.onset === null ? "–" : when(sensor.onset), (sensor.condition && !sensor.certain ? "possibly " : "") + sensor.condition])));
  fill($("reasons"), [$("reasons").querySelector("legend"), ...page.state.reasons.map((reason) => {
    const label = make("label", {}), radio = make("input", { type: "radio", name: "reason", value: reason }, label);
    radio.checked = Boolean(incident.label && incident.label.reason === reason);
    label.append(reason);
    return label;
  })]);
  $("label-comment").value = incident.label ? incident.label.comment : "";
  $("label-who").value = $("label-who").value || page.state.user;
  $("label-undo").hidden = !incident.label;
  $("label-problem").textContent = "";
  if (!$("label-dialog").open) $("label-dialog").showModal();
}

async function keepLabel(event) {
  event.preventDefault();
  const action = event.submitter ? event.submitter.value : "keep", incident = page.incident;
  if (action === "cancel") return $("label-dialog").close();
  const chosen = $("reasons").querySelector("input:checked");
  if (action === "keep" && !chosen) {
    $("label-problem").textContent = "Choose what it was.";
    return;
  }
  const run = action === "undo" ? () => send("take-back", { id: incident.label.id })
    : () => send("label", { key: page.findings.key, incident: incident.incident, reason: chosen.value, comment: $("label-comment").value, who: $("label-who").value });
  if (await act(run, "label-problem")) {
    $("label-dialog").close();
  }
}

// 4 Compare.

function comparedKind() {
  return document.querySelector("input[name=compare]:checked").value;
}

// The first and the second half of the data, to begin with.
function halves() {
  const time = page.look && page.look.time, clock = (place) => new Date(place).toISOString().slice(0, 16).replace("T", " ");
  if (!time) return ["", ""];
  const [first, last] = [time.first, time.last].map((text) => Date.parse(text.slice(0, 19) + "Z")), middle = (first + last) / 2;
  return [clock(first) + ".." + clock(middle), clock(middle) + ".." + clock(last)];
}

function drawCompare() {
  const kind = comparedKind(), [help, ...examples] = COMPARED[kind], sisters = page.look ? page.look.sisters : [];
  $("compare-help").textContent = help;
  fill($("sisters"), sisters.map((name) => make("option", { value: name })));
  ["compare-first", "compare-second"].forEach((id, i) => {
    const field = $(id);
    field.placeholder = examples[i];
    if (field.dataset.kind === kind || !page.look) return;
    field.dataset.kind = kind;
    field.value = kind === "units" ? sisters[i] || "" : halves()[i];
    if (kind === "units") field.setAttribute("list", "sisters");
    else field.removeAttribute("list");
  });
}

async function compare(event) {
  event.preventDefault();
  const kind = comparedKind(), pair = [$("compare-first").value, $("compare-second").value];
  const answer = await act(() => send("compare", { [kind]: pair }), "compare-problem");
  $("compare-answer").hidden = !answer;
  if (!answer) return;
  $("compare-lead").textContent = answer.sentence;
  fill($("compared"), answer.tags.map((tag) => row([tag.tag, showNumber(tag.first), showNumber(tag.second), (tag.change > 0 ? "+" : "") + showNumber(tag.change),
    tag.apart === null ? (tag.change ? "was constant" : "–") : (tag.apart > 0 ? "▲ " : tag.apart < 0 ? "▼ " : "") + Math.round(100 * Math.abs(tag.apart)) + " %",
    tag.differs ? "differs" : "", tag.since === null ? (tag.differs ? "all the time" : "") : when(tag.since)], tag.differs ? {} : { class: "known" })));
}

// 5 Go live.

function drawLive() {
  const { state } = page, { live } = state, fitting = state.work && state.work.what === "fit", ended = state.ended.fit;
  $("live-lead").textContent = live ? "It runs: " + showNumber(live.rows) + " rows so far, " + live.alarms + (live.alarms === 1 ? " alarm" : " alarms") + " to be worked on" + (live.others ? ", and " + live.others + " about missing data or the model." : ".")
    : state.models.length ? "" : "First a model is fitted to the good periods of step 3, or to all rows; then it scores rows as they come.";
  $("live-link").hidden = !live;
  if (live) $("live-link").href = live.url;
  $("live-problems").textContent = live ? live.problems.join(" ") : "";
  $("fit").disabled = Boolean(fitting) || !state.settings.source.length;
  $("fit-problem").textContent = ended && ended.error && !fitting ? ended.error.message : "";
  const model = $("live-model"), chosen = model.options.length === state.models.length ? model.value : state.models.at(-1); // a new one
  fill(model, state.models.map((name) => make("option", { value: name }, null, name)));
  model.value = chosen;
  $("live-form").hidden = !state.models.length;
  $("live-stop").hidden = $("live-files").hidden = !live;
  for (const name of ["command", "toml", "unit"]) $("live-" + name).textContent = live ? live.files[name] : "";
  if (!$("live-name").value) $("live-name").value = state.name.replace(/-project$/, "");
  if (!$("live-place").value && $("live-kind").value === "input") $("live-place").value = onlySource();
}

// The file that was read, if there is one alone: several do not grow into one.
function onlySource() {
  const { source } = page.state.settings;
  return source.length === 1 ? source[0] : "";
}

function liveRules() {
  return { on_delay: $("on-delay").value, off_delay: $("off-delay").value };
}

function liveSource() {
  const kind = $("live-kind").value, place = $("live-place").value;
  const source = { model: $("live-model").value };
  if (kind !== "http" && !place.trim()) throw new Error("Say where rows will come from: " + PLACES[kind][0].toLowerCase() + ", such as " + PLACES[kind][1] + ".");
  if (kind === "opcua") return { ...source, opcua: place, opcua_nodes: $("live-text").value.split("\n").filter((line) => line.trim()) };
  return kind === "http" ? source : { ...source, [kind === "folder" ? "input" : kind]: place };
}

// The fields of a kind of source, with what is known of the data filled in.
function showKind() {
  const kind = $("live-kind").value, [word, example, text] = PLACES[kind];
  $("live-place-label").hidden = !word;
  $("live-place-word").textContent = word;
  $("live-place").placeholder = example;
  $("live-place").value = kind === "input" ? onlySource() : "";
  $("live-text-label").hidden = !text;
  $("live-text-word").textContent = text || "";
  const tags = page.look ? page.look.tags.filter((tag) => tag.use !== "left out") : [], time = page.look && page.look.time;
  if (kind === "opcua") $("live-text").value = tags.map((tag) => tag.name + "=ns=2;s=" + tag.name).join("\n");
  if (kind === "http") $("live-text").value = JSON.stringify(Object.fromEntries([...(time ? [["time", time.last]] : []), ...tags.map((tag) => [tag.name, tag.usual_high ?? 0])]));
}

function tell(texts) {
  fill($("live-answer"), texts.map((text) => (text instanceof Node ? text : make("p", {}, null, text))));
}

async function testInput() {
  const posted = $("live-kind").value === "http" ? { posted: $("live-text").value } : {};
  tell([]);
  const answer = await act(() => send("test", { ...liveSource(), ...posted }), "live-problem");
  if (!answer) return;
  const units = new Map((page.look ? page.look.tags : []).map((tag) => [tag.name, tag.unit])), list = make("ul", {});
  for (const each of answer.readings.slice(0, 12)) make("li", {}, list, each.name + ": " + (typeof each.value === "number" ? withUnit(each.value, units.get(each.name) || "") : each.value ?? "missing"));
  const more = answer.readings.length > 12 ? [(answer.readings.length - 12) + " more."] : [];
  tell(["The first row, as it is understood: " + (answer.time === null ? "without time" : when(answer.time)), list, ...more,
    ...(answer.reason ? ["It has no score: " + answer.reason + "."] : [])]);
}

async function startLive(event) {
  event.preventDefault();
  const answer = await act(() => send("live", { name: $("live-name").value, rules: liveRules(), ...liveSource() }), "live-problem");
  if (!answer || $("live-kind").value !== "http") return;
  const address = page.state.live.url + "api/v1/assets/" + encodeURIComponent($("live-name").value) + "/samples";
  tell(["Post rows there, for instance by:", make("pre", {}, null, "curl -H 'content-type: application/json' --data " + shellText($("live-text").value) + " " + shellText(address))]);
}

// A text as a shell takes it.
function shellText(text) {
  return "'" + text.replaceAll("'", "'\\''") + "'";
}

// 6 Keep.

function drawKeep() {
  const { state } = page;
  $("keep-folder").textContent = state.folder;
  $("keep-command").textContent = "cd " + shellText(state.folder) + "\npenstock detect --config penstock.toml --report report.html";
  if (!$("exports").children.length) {
    fill($("exports"), EXPORTS.map(([kind, text, name]) => item("", button("Download " + name, () => download(kind)),
      ...(kind === "report" ? [button("Show it", () => showReport("keep-problem"))] : []), soft(text))));
  }
  fill($("models"), state.models.map((name) => item(name, button("Download", () => fetchFile("model", name)))));
  if (!state.models.length) fill($("models"), [item("", soft("No model yet: step 5 fits one."))]);
}

async function download(kind) {
  const answer = await act(() => send("export", { kind }), "keep-problem");
  if (answer) await fetchFile("report", answer.name);
}

// In a tab of its own, at an address that needs no token.
async function showReport(problem) {
  const tab = window.open("about:blank", "_blank"), answer = await act(() => send("show"), problem);
  if (answer && tab) tab.location = answer.address;
  else if (tab) tab.close();
}

// Fetched with the token, as a link could not send it.
async function fetchFile(folder, name) {
  const answer = await fetch("/api/files/" + folder + "/" + encodeURIComponent(name), { headers: headers(), cache: "no-store" });
  if (!answer.ok) {
    $("keep-problem").textContent = "The file is not there.";
    return;
  }
  const address = URL.createObjectURL(await answer.blob());
  const link = make("a", { href: address, download: name }, document.body);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 60000);
}

// What people do.

$("cancel").addEventListener("click", () => act(() => send("cancel")));
$("choose").addEventListener("click", () => $("files").click());
$("choose-folder").addEventListener("click", () => $("folder").click());
$("sample").addEventListener("click", async () => {
  if (await act(() => send("sample"), "data-problem")) go("understood");
});
for (const id of ["files", "folder"]) {
  $(id).addEventListener("change", () => upload($(id).files).then(() => { $(id).value = ""; }));
}
for (const kind of ["dragenter", "dragover"]) {
  document.addEventListener(kind, (event) => {
    event.preventDefault();
    $("drop").classList.add("over");
  });
}
document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) $("drop").classList.remove("over"); });
document.addEventListener("drop", async (event) => {
  event.preventDefault();
  $("drop").classList.remove("over");
  go("data");
  upload(await filesOf(event.dataTransfer));
});
$("path-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  if (await act(() => send("use", { path: $("path").value }), "data-problem")) go("understood");
});
$("how").addEventListener("submit", (event) => {
  event.preventDefault();
  const order = $("day-first").value;
  change({ timezone: $("timezone").value || null, step: $("step").value || null, label: $("label-column").value || null, day_first: order === "" ? null : order === "true" });
});
$("tag-search").addEventListener("input", drawTags);
$("role").addEventListener("change", async () => {
  const role = $("role").value;
  if (role) await act(() => send("roles", { names: [...page.chosen], role: role === "found" ? null : role }));
  $("role").value = "";
});
$("find").addEventListener("click", detect);
$("whole-report").addEventListener("click", () => showReport("mark-problem"));
$("again").addEventListener("click", detect);
$("add-sensor").addEventListener("change", () => {
  if ($("add-sensor").value !== "") addSensor(Number($("add-sensor").value));
  $("add-sensor").value = "";
});
$("mark-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const kind = event.submitter.value, period = [$("mark-from"), $("mark-to")].map((field) => field.value.trim().replace(" ", "T")).join("..");
  if (kind === "zoom") {
    const band = bandOf(period, "", "");
    if (band) page.view.show(band.from, band.to);
    return;
  }
  if (period === "..") {
    $("mark-problem").textContent = "Drag over a period in the chart, or write its ends.";
    return;
  }
  page.marked = null;
  await act(() => send("mark", { kind, period }), "mark-problem");
});
$("choose-failures").addEventListener("click", () => $("failures-file").click());
$("failures-file").addEventListener("change", async () => {
  const [file] = $("failures-file").files;
  if (file) await act(() => uploadOne(file, file.name, () => {}, "failures"), "failures-problem");
  $("failures-file").value = "";
});
$("no-failures").addEventListener("click", () => act(() => send("no-failures"), "failures-problem"));
$("label-form").addEventListener("submit", keepLabel);
$("compare-form").addEventListener("submit", compare);
$("fit").addEventListener("click", () => act(() => send("run", { what: "fit" }), "fit-problem"));
$("live-kind").addEventListener("change", showKind);
$("compare-what").addEventListener("change", drawCompare);
$("compare-csv").addEventListener("click", () => fetchFile("report", "comparison.csv"));
$("live-test").addEventListener("click", testInput);
$("live-past").addEventListener("click", async () => {
  const answer = await act(() => send("past", { model: $("live-model").value, rules: liveRules() }), "live-problem");
  if (answer) tell([answer.sentence, ...answer.alarms.slice(0, 20)]);
});
$("live-form").addEventListener("submit", startLive);
$("live-stop").addEventListener("click", () => act(() => send("stop-live"), "live-problem"));
window.addEventListener("hashchange", turn);
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh().catch(() => {}); });
window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  forgetColors();
  if (page.charts && page.step === "findings") drawCharts();
});
turn();
if (sessionStorage.getItem("token")) watch();
