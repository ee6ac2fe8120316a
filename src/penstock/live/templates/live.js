// The live page: what the service says, and what people do with alarms. Texts are never read as markup.

const $ = (id) => document.getElementById(id);
const PAGES = ["alarms", "assets", "load", "service"];
const AWAY = ["shelved", "suppressed", "out_of_service"];
const REFRESH = 1000; // milliseconds at least between two requests for the same
const NORMAL = "rare but normal"; // what is like a situation that people called so is listed as such, and not to be worked on
const COLORS = ["--blue", "--green", "--purple", "--yellow", "--sky"];
const state = {
  page: "", status: null, assets: new Map(), alarms: [], chosen: null, asset: null, sensors: [], view: null, charts: new Map(),
  opened: null, asking: null, alarmView: null, alarmCharts: [], clock: new Clock({ origin: 0 }),
};

// Requests. A token is sent with each; there are no cookies.

function headers(more) {
  const token = sessionStorage.getItem("token");
  return token ? { authorization: "Bearer " + token, ...more } : { ...more };
}

async function ask(path, options = {}) {
  const answer = await fetch("/api/v1/" + path, { ...options, headers: headers(options.headers), cache: "no-store" });
  if (answer.status === 401) {
    sessionStorage.removeItem("token");
    show("token");
    throw new Error("A token is needed.");
  }
  const content = await answer.json().catch(() => ({ error: "The service gave no answer." }));
  if (!answer.ok) throw new Error(content.error || "The service said no.");
  return content;
}

// A command has an id of its own: where no answer comes, it is sent again, and done once all the same.
async function command(path, body) {
  const key = Array.from(crypto.getRandomValues(new Uint32Array(4)), (part) => part.toString(36)).join("-");
  const own = { "content-type": "application/json", "penstock-command": "1", "idempotency-key": key };
  const options = { method: "POST", body: JSON.stringify(body), headers: own };
  for (const pause of [500, 2000, 5000]) {
    try {
      return await ask(path, options);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error;  // fetch: the connection failed
      await new Promise((done) => setTimeout(done, pause));
    }
  }
  return ask(path, options);
}

// Calls a function soon, and at most once in a while.
function seldom(run, pause = REFRESH) {
  let timer = null, last = 0;
  return () => {
    if (timer !== null) return;
    timer = setTimeout(() => {
      timer = null;
      last = Date.now();
      Promise.resolve(run()).catch(report);
    }, Math.max(0, last + pause - Date.now()));
  };
}

function report(error) {
  $("connection").textContent = error.message;
  $("connection").classList.add("lost");
}

// Events: read as a stream, because an EventSource cannot send a token.

async function listen() {
  let wait = 500;
  for (;;) {
    try {
      const answer = await fetch("/api/v1/events", { headers: headers(), cache: "no-store" });
      if (answer.status === 401) return show("token");
      if (!answer.ok) throw new Error("The service does not answer (" + answer.status + ").");
      $("connection").textContent = "Live";
      $("connection").classList.remove("lost");
      wait = 500;
      await loadAll();
      const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
      let text = "";
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        const parts = (text + value).split("\n\n");
        text = parts.pop();
        for (const part of parts) take(part);
      }
      throw new Error("The service has ended the connection.");
    } catch (error) {
      report(new Error("No connection: what is shown is old. " + error.message));
      await new Promise((done) => setTimeout(done, wait));
      wait = Math.min(wait * 2, 10000);
    }
  }
}

function take(text) {
  const data = text.split("\n").find((line) => line.startsWith("data: "));
  if (!data || !text.includes("event: news")) return;
  const news = JSON.parse(data.slice(6));
  for (const [name, [row, time, score, threshold]] of Object.entries(news.assets)) {
    Object.assign(state.assets.get(name) || {}, { row, time, score, threshold, received: Date.now() / 1000 });
  }
  if (news.changes.length || news.reload) loadAlarms();
  if (news.changes.length || news.reload || Object.values(news.assets).some(([, , score]) => score === null)) loadAssets();
  if (state.page === "assets") {
    if (!Object.keys(news.assets).every((name) => state.assets.has(name))) loadAssets();
    drawAssets();
    if (state.asset in news.assets) loadSeries();
  }
  if (state.page === "service" || !Object.keys(news.assets).length) loadStatus();
}

const loadStatus = seldom(async () => {
  state.status = await ask("status");
  drawStatus();
});
const loadAlarms = seldom(async () => {
  const all = $("show").value === "all";
  state.alarms = await ask("alarms?limit=2000" + (all ? "" : "&open=1"));
  drawAlarms();
  if (state.page === "load") loadLoad();
  if (state.opened) openAlarm(state.opened, { keep: true });
}, 300);
const loadAssets = seldom(async () => {
  state.assets = new Map((await ask("assets")).map((each) => [each.asset, each]));
  drawAssets();
  drawProblems();
});
const drawAssets = seldom(showAssets, 500);
const loadSeries = seldom(showSeries);
const loadLoad = seldom(showLoad, 3000);

async function loadAll() {
  state.status = await ask("status");
  drawStatus();
  loadAlarms();
  loadAssets();
  if (state.page === "token" || !state.page || (location.hash.startsWith("#alarms=") && !state.opened)) turn();
}

// Pages.

function show(page) {
  state.page = page;
  for (const each of ["token", ...PAGES]) $("page-" + each).hidden = each !== page;
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === "#" + page) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function turn() {
  const [page, name] = location.hash.slice(1).split("=");
  show(PAGES.includes(page) ? page : "alarms");
  if (state.page === "alarms" && name && state.status) openAlarm(decodeURIComponent(name)).catch(report);
  if (state.page === "assets") {
    chooseAsset(name ? decodeURIComponent(name) : null);
    loadAssets();
  }
  if (state.page === "load") loadLoad();
  if (state.page === "service") {
    loadStatus();
    loadAudit();
    loadSilences();
  }
}

function fill(body, rows) {
  body.replaceChildren(...rows);
}

function row(...cells) {
  const made = make("tr", {});
  for (const cell of cells) {
    const td = make("td", {}, made);
    if (cell instanceof Node) td.append(cell);
    else td.textContent = cell;
  }
  return made;
}

function showTime(seconds) {
  return seconds === null || seconds === undefined ? "–" : state.clock.show(seconds * 1000);
}

function showAgo(seconds) {
  if (seconds === null || seconds === undefined) return "never";
  const passed = Date.now() - seconds * 1000;
  return passed < 1000 ? "now" : showDuration(passed) + " ago";
}

// Alarms.

function chip(alarm) {
  const is = (name) => alarm.state.includes(name), away = AWAY.find(is);
  if (!alarm.open) return make("span", { class: "chip aside" }, null, "▪ closed" + (is("acknowledged") ? "" : ", not acknowledged"));
  const [kind, text] = away ? ["aside", "‖ " + away.replaceAll("_", " ")]
    : alarm.known_as === NORMAL ? ["good", "◇ " + NORMAL + (is("active") ? ", active" : "")]
    : is("active") ? (is("acknowledged") ? ["seen", "◐ active, acknowledged"] : ["new", "● active"])
    : is("acknowledged") ? ["good", "○ ended, acknowledged"] : ["over", "◌ ended, not acknowledged"];
  return make("span", { class: "chip " + kind }, null, text + (is("latched") ? ", latched" : "") + (is("confirmed") ? ", confirmed" : ""));
}

function isShown(alarm) {
  const is = (name) => alarm.state.includes(name), away = AWAY.some(is);
  const wanted = {
    attention: !away && alarm.known_as !== NORMAL && (!is("acknowledged") || is("active")), active: is("active"), open: true, shelved: away, all: true,
  }[$("show").value];
  const words = $("words").value.toLowerCase();
  return wanted && (!$("which").value || alarm.asset === $("which").value) && (!words || alarm.words.toLowerCase().includes(words));
}

// Why there is no line in the list of alarms.
function whyNone() {
  const all = $("show").value === "all", count = state.alarms.length;
  if (!count) return all ? "There have been no alarms." : "There are no open alarms.";
  if ($("which").value || $("words").value) return "No alarm fits this filter, which hides " + count + ".";
  if ($("show").value === "attention") return "Nothing to be worked on: what is open (" + count + ") is acknowledged and over, put aside, or known as " + NORMAL + ".";
  return "None of the open alarms (" + count + ") is " + ($("show").value === "active" ? "active." : "shelved, suppressed or out of service.");
}

function drawAlarms() {
  const waiting = state.alarms.filter((each) => each.state.includes("active") && !each.state.includes("acknowledged") && each.known_as !== NORMAL && !AWAY.some((name) => each.state.includes(name)));
  $("open-count").textContent = waiting.length || "";
  document.title = (waiting.length ? "(" + waiting.length + ") " : "") + "Penstock live";
  const shown = state.alarms.filter(isShown);
  if (!shown.some((each) => each.id === state.chosen)) state.chosen = shown.length ? shown[0].id : null;
  fill($("alarm-rows"), shown.map((alarm) => {
    const opener = make("button", { type: "button" }, null, alarm.cause);
    const made = row(chip(alarm), alarm.asset, opener, showTime(alarm.since), showNumber(alarm.score));
    made.dataset.id = alarm.id;
    made.setAttribute("aria-selected", String(alarm.id === state.chosen));
    return made;
  }));
  $("no-alarms").hidden = shown.length > 0;
  $("no-alarms").textContent = shown.length ? "" : whyNone();
  $("shown").textContent = shown.length + " of " + state.alarms.length;
}

function choose(id) {
  state.chosen = id;
  for (const each of $("alarm-rows").children) {
    each.setAttribute("aria-selected", String(each.dataset.id === id));
    if (each.dataset.id === id) each.scrollIntoView({ block: "nearest" });
  }
}

async function openAlarm(id, { keep = false } = {}) {
  const alarm = await ask("alarms/" + encodeURIComponent(id));
  if (keep && state.opened !== id) return; // it was closed meanwhile
  const is = (name) => alarm.state.includes(name);
  state.opened = id;
  $("alarm-title").textContent = alarm.asset + ": " + alarm.cause;
  $("alarm-state").replaceChildren(chip(alarm), " since " + showTime(alarm.since) + (alarm.ended ? ", ended " + showTime(alarm.ended) : "") + (alarm.model ? ", scored by version " + alarm.model + " of the model" : ""));
  const like = alarm.looks_like && alarm.looks_like.label;
  $("alarm-words").textContent = alarm.words + (like ? "; like what was " + like.reason + " on " + showTime(like.since) + (like.comment ? " (“" + like.comment + "”)" : "") : "");
  const moved = alarm.sensors.slice().sort((a, b) => a.moved - b.moved), normal = alarm.nearest_normal;
  fill($("alarm-sensors"), moved.map((each) => row(
    each.name, showTime(each.moved), showNumber(each.value),
    showNumber(each.value !== null && each.residual !== null ? each.value - each.residual : null), showNumber(each.before),
    showNumber(normal && each.name in normal.sensors ? normal.sensors[each.name] : null),
  )));
  $("alarm-normal").textContent = !normal ? "" : "Nearest normal situation: " + (normal.time === null ? "of the training data" : showTime(normal.time))
    + "; the other sensors differ by " + showNumber(Number(normal.distance.toPrecision(2))) + " standard deviations on average.";
  fill($("history"), alarm.history.slice().reverse().map((each) => {
    const parts = [showTime(each.time), each.kind, each.who && "by " + each.who, each.reason, each.comment && "“" + each.comment + "”", each.quiet && "(" + each.quiet + ")"];
    return make("li", {}, null, parts.filter(Boolean).join(" · "));
  }));
  drawLabels(alarm);
  const may = state.status.role !== "viewer", engineer = state.status.role === "engineer";
  const buttons = [
    ["acknowledge", "Acknowledge", may && !is("acknowledged")],
    ["label", alarm.labels.some(holds) ? "Change the label" : "Label", may], ["comment", "Comment", may],
    ["confirm", "Confirm", may && is("acknowledged") && !is("confirmed")],
    ["reset", "Reset", may && is("latched") && !is("active") && is("acknowledged")],
    ["shelve", "Shelve for these hours", may], ["unshelve", "Unshelve", may && is("shelved")],
    ["suppress", "Suppress", engineer && !is("suppressed")], ["unsuppress", "End suppression", engineer && is("suppressed")],
    ["out_of_service", "Out of service", engineer && !is("out_of_service")], ["in_service", "In service again", engineer && is("out_of_service")],
  ].filter((each) => each[2] && (alarm.open || ["label", "comment"].includes(each[0])));
  $("actions").replaceChildren(...buttons.map(([action, text], i) =>
    make("button", { type: "button", "data-action": action, class: i ? "" : "first" }, null, text)));
  $("work").hidden = !buttons.length;
  for (const each of [$("hours-aside"), $("reasons").querySelector("[value='remind me']")]) each.closest("label").hidden = !alarm.open;
  if (keep) return;
  $("work-problem").textContent = "";
  $("comment").value = "";
  state.asking = null;
  const label = alarm.labels.find(holds);
  for (const each of $("reasons").querySelectorAll("input")) each.checked = Boolean(label) && each.value === label.reason;
  if (!$("alarm").open) $("alarm").showModal();
  $("alarm-title").focus();
  drawAlarmChart(alarm).catch(report);
}

function holds(label) {
  return !label.withdrawn_by;
}

// What people said of an alarm; what holds can be taken back.
function drawLabels(alarm) {
  fill($("labels"), alarm.labels.map((label) => {
    const line = make("li", {}), words = "Label: " + label.reason + " · by " + label.who + (label.comment ? " · “" + label.comment + "”" : "");
    make("span", { class: holds(label) ? "" : "gone" }, line, words);
    if (!holds(label)) make("span", { class: "soft" }, line, "taken back by " + label.withdrawn_by);
    else if (state.status.role !== "viewer") make("button", { type: "button", "data-label": label.id }, line, "Undo");
    return line;
  }));
}

// Says what is still to be given for an action, and goes there; then the action goes on by itself.
function missing(action, body) {
  const words = { acknowledge: "acknowledge it", label: "label it" }[action];
  let place = null;
  if (words && !body.reason) place = [$("reasons").querySelector("input"), "Why? Choose a reason (one key each) to " + words + "."];
  else if (!state.status.user && !body.name) place = [$("who"), "Your name, please; then Enter."];
  else if (action === "comment" && !body.comment) place = [$("comment"), "Write a comment; then Enter."];
  state.asking = place && action;
  if (place) {
    place[0].focus();
    $("work-problem").textContent = place[1];
  }
  return place;
}

async function act(action) {
  const chosen = $("reasons").querySelector("input:checked");
  const body = { reason: chosen ? chosen.value : "", comment: $("comment").value.trim() };
  if (!state.status.user) {
    body.name = $("who").value.trim();
    localStorage.setItem("who", body.name);
  }
  if (missing(action, body)) return;
  if (action === "shelve") body.hours = Number($("hours-aside").value);
  if (action === "acknowledge" && body.reason === "remind me") body.hours = Number($("hours-aside").value);
  try {
    await command("alarms/" + encodeURIComponent(state.opened) + "/" + action, body);
    $("comment").value = "";
    await done();
  } catch (error) {
    $("work-problem").textContent = error.message;
  }
}

async function undo(label) {
  const name = state.status.user ? {} : { name: $("who").value.trim() };
  try {
    await command("labels/" + encodeURIComponent(label) + "/withdraw", name);
    await done();
  } catch (error) {
    $("work-problem").textContent = error.message;
  }
}

async function done() {
  $("work-problem").textContent = "";
  await openAlarm(state.opened, { keep: true });
  loadAlarms();
}

// Charts.

function numbers(values) {
  return Float64Array.from(values, (each) => (each === null ? NaN : each));
}

function plot(box, title, view, height, remove) {
  const frame = make("div", { class: "plot" }, box), head = make("h4", {}, frame);
  make("span", {}, head, title);
  if (remove) make("button", { type: "button" }, head, "Remove").addEventListener("click", remove);
  const chart = new TimeChart(make("div", {}, frame), view, { clock: state.clock, label: title, height, top: 22 });
  return { frame, chart };
}

// Where a new stretch begins: after more than five usual steps without a row.
function begins(places) {
  const steps = Array.from(places.slice(1), (place, i) => place - places[i]);
  const usual = steps.slice().sort((a, b) => a - b)[steps.length >> 1] || 0;
  return steps.flatMap((step, i) => (step > 5 * usual ? [i + 1] : []));
}

function scoreData(found, places, bands) {
  const shared = { places, begins: begins(places) };
  return { bands, series: [
    { ...shared, values: numbers(found.threshold), color: "--orange", dash: [5, 4] },
    { ...shared, values: numbers(found.score), color: "--blue" },
  ] };
}

function sensorData(sensor, places, color, bands) {
  const shared = { places, begins: begins(places) }, series = [{ ...shared, values: numbers(sensor.value), color }];
  if (sensor.expected) series.unshift({ ...shared, values: numbers(sensor.expected), color: "--ink-soft", dash: [5, 4] });
  return { bands, series };
}

function bandsOf(asset, until) {
  return state.alarms.filter((each) => each.asset === asset)
    .map((each) => ({ from: each.since * 1000, to: (each.ended || until) * 1000, label: each.cause }));
}

async function drawAlarmChart(alarm) {
  const names = alarm.sensors.slice(0, 3).map((each) => each.name), known = state.assets.get(alarm.asset);
  for (const each of state.alarmCharts) each.chart.remove();
  state.alarmCharts = [];
  $("alarm-chart").replaceChildren();
  if (!known || known.time === null) return;
  const until = alarm.ended || known.time, length = Math.max(until - alarm.since, 600);
  const query = new URLSearchParams({ hours: (known.time - alarm.since + 2 * length) / 3600, points: 1500 });
  for (const name of names) query.append("sensor", name);
  const found = await ask("assets/" + encodeURI(alarm.asset) + "/series?" + query);
  if (state.opened !== alarm.id || !found.time.length) return;
  const places = Float64Array.from(found.time, (each) => each * 1000);
  const bands = [{ from: alarm.since * 1000, to: until * 1000, label: "alarm" }];
  const view = new TimeView([places[0], Math.max(places[0] + 1000, places[places.length - 1])]);
  const draw = (title, data, height) => {
    const made = plot($("alarm-chart"), title, view, height);
    made.chart.set(data);
    state.alarmCharts.push(made);
  };
  draw("Score, and its threshold (dashed)", scoreData(found, places, bands), 110);
  names.forEach((name, i) => draw(name + ", and what was expected (dashed)", sensorData(found.sensors[name], places, COLORS[i % COLORS.length], bands), 90));
  view.show((alarm.since - length) * 1000, (until + length) * 1000);
}

// Assets.

// The state of an asset in one sentence: does it fit, when did it last speak, what is it held against?
function sentence(each) {
  if (each.problem) return "not watched: " + each.problem;
  if (each.received === null || each.row === 0) return "no rows yet";
  const count = each.alarms + (each.alarms === 1 ? " alarm" : " alarms");
  const fits = each.alarms ? "does not fit (" + count + ")" : each.known ? "as is known, " + NORMAL : each.score === null ? "not scored (" + (each.reason || "no score") + ")"
    : each.score > each.threshold ? "above its threshold just now" : "fits";
  const version = Number.isInteger(each.model) ? " v" + each.model : "";
  const day = each.model_time ? showDay(state.clock.at(each.model_time * 1000)).replace(" " + new Date().getUTCFullYear(), "") : null;
  return [fits, "last row " + showAgo(each.received), day ? "model" + version + " of " + day : "model learns from the rows"].join(", ");
}

function showAssets() {
  const box = $("asset-list"), which = $("which"), before = which.value;
  box.replaceChildren();
  for (const each of state.assets.values()) {
    const silent = each.received === null || each.row === 0, unknown = each.problem || each.score === null;
    const link = make("a", { class: "asset" + (each.alarms ? " alarm" : silent || unknown ? " quiet" : ""), href: "#assets=" + encodeURIComponent(each.asset) }, box);
    make("b", {}, link, each.asset);
    make("span", {}, link, (each.alarms ? "● " : silent ? "‖ " : unknown ? "? " : "✓ ") + sentence(each));
    make("span", { class: "soft" }, make("div", {}, link), "score " + showNumber(each.score) + " of " + showNumber(each.threshold));
  }
  which.replaceChildren(make("option", { value: "" }, null, "all"), ...[...state.assets.keys()].map((name) => make("option", { value: name }, null, name)));
  which.value = state.assets.has(before) ? before : "";
  const known = state.assets.get(state.asset);
  $("file-anew").hidden = !(known && known.has_file && state.status && state.status.role === "engineer");
  if (known) $("asset-state").textContent = sentence(known) + "; " + showNumber(known.row) + " rows, the last of " + showTime(known.time);
  if (!state.asset && state.assets.size === 1 && state.page === "assets") chooseAsset([...state.assets.keys()][0]);
  if (state.page === "service") drawStatus();
}

async function chooseAsset(name) {
  if (name === state.asset) return;
  for (const each of state.charts.values()) each.chart.remove();
  state.charts.clear();
  $("charts").replaceChildren();
  Object.assign(state, { asset: name, view: null, sensors: [] });
  $("asset").hidden = !name;
  if (!name) return;
  $("asset-name").textContent = name;
  try {
    const { columns } = await ask("assets/" + encodeURI(name));
    const named = state.alarms.filter((each) => each.asset === name).flatMap((each) => each.sensors.map((sensor) => sensor.name));
    state.sensors = [...new Set([...named.filter((each) => columns.includes(each)), ...columns])].slice(0, 3);
    $("add-sensor").replaceChildren(make("option", { value: "" }, null, "add one …"), ...columns.map((each) => make("option", { value: each }, null, each)));
    loadSeries();
    await showModels();
  } catch (error) {
    report(error);
  }
}

// The versions of the model of an asset; an engineer puts another into use.
async function showModels() {
  const name = state.asset;
  if (!name) return;
  const versions = await ask("assets/" + encodeURI(name) + "/models");
  state.status ??= await ask("status"); // the page may open with an asset, before anything else was asked
  if (name !== state.asset) return;
  state.models = versions;
  fill($("models"), versions.slice().reverse().map((each) => {
    const button = make("button", { type: "button", "data-version": each.version }, null, "Use");
    const added = showTime(Math.round(each.added)) + " by " + each.who;
    return row((each.in_use ? "● " : "") + each.version, each.source || "learns from the rows", added, each.note,
      each.in_use ? "in use" : state.status.role === "engineer" ? button : "");
  }));
}

// Puts a version into use; one of other columns is used if that was said to be meant.
async function useModel(version, meant) {
  const [wanted, now] = [state.models.find((each) => each.version === version), state.models.find((each) => each.in_use)];
  const without = (one, other) => (one.names && other.names ? one.names.filter((each) => !other.names.includes(each)) : []);
  const [gone, come] = [without(now, wanted), without(wanted, now)], box = $("model-problem");
  if (!meant && (gone.length || come.length)) {
    const parts = [gone.length && "without " + gone.join(", "), come.length && "with " + come.join(", ")].filter(Boolean);
    box.textContent = "Version " + version + " has other columns: " + parts.join("; ") + ". From then on only its columns are kept; what is there stays. ";
    make("button", { type: "button", "data-meant": version }, box, "Use it nevertheless");
    return;
  }
  try {
    await command("assets/" + encodeURI(state.asset) + "/models/use", { version, ...myName(), ...(meant ? { other_columns: true } : {}) });
    box.textContent = "";
    loadAssets();
    await showModels();
  } catch (error) {
    box.textContent = error.message;
  }
}

async function showSeries() {
  const name = state.asset;
  if (!name) return;
  const query = new URLSearchParams({ hours: $("hours").value, points: 1200 });
  for (const sensor of state.sensors) query.append("sensor", sensor);
  const found = await ask("assets/" + encodeURI(name) + "/series?" + query);
  if (name !== state.asset || !found.time.length) return;
  const places = Float64Array.from(found.time, (each) => each * 1000);
  const extent = [places[0], Math.max(places[0] + 1000, places[places.length - 1])];
  if (state.view) state.view.extend(extent);
  else state.view = new TimeView(extent);
  const bands = bandsOf(name, extent[1] / 1000), wanted = ["", ...state.sensors];
  for (const [key, each] of state.charts) {
    if (wanted.includes(key)) continue;
    each.chart.remove();
    each.frame.remove();
    state.charts.delete(key);
  }
  wanted.forEach((key, i) => {
    if (key && !found.sensors[key]) return;
    if (!state.charts.has(key)) {
      const title = key ? key + ", and what was expected (dashed)" : "Score, and its threshold (dashed)";
      const remove = key && (() => {
        state.sensors = state.sensors.filter((each) => each !== key);
        loadSeries();
      });
      state.charts.set(key, plot($("charts"), title, state.view, key ? 110 : 160, remove));
    }
    const data = key ? sensorData(found.sensors[key], places, COLORS[(i - 1) % COLORS.length], bands) : scoreData(found, places, bands);
    state.charts.get(key).chart.set(data);
  });
}

// The load of alarms, and the service itself.

async function showLoad() {
  const load = await ask("load");
  const cards = load.figures.map((each) => {
    const card = make("div", { class: !each.target ? "open" : each.within ? "" : "over" });
    make("span", {}, card, each.name);
    make("b", {}, card, (!each.target ? "" : each.within ? "✓ " : "▲ ") + each.value);
    make("span", { class: "soft" }, card, each.target);
    return card;
  });
  const box = make("div", { class: "kpi" });
  box.append(...cards);
  $("kpis").replaceChildren(box);
  if (load.top.length) {
    make("h3", {}, $("kpis"), "Most frequent");
    const body = make("tbody", {}, make("table", {}, $("kpis")));
    fill(body, load.top.map((each) => row(each.name, each.count)));
  }
}

function drawStatus() {
  const status = state.status;
  if (!status) return;
  const known = [...state.assets.values()];
  const pairs = [
    ["Version", status.version], ["Running since", showTime(Math.round(status.started))],
    ["Last commit", showAgo(status.last_commit) + ", " + showNumber(status.commits) + " in all"],
    ["Waiting to be scored", showNumber(status.waiting)], ["Messages not yet taken", showNumber(status.messages_waiting)],
    ["Pages that listen", showNumber(status.listeners)], ["You", (status.user || "on this machine") + " (" + status.role + ")"],
  ];
  $("status").replaceChildren(...pairs.flatMap(([name, value]) => [make("dt", {}, null, name), make("dd", {}, null, value)]));
  fill($("inputs"), known.map((each) => row(
    each.asset, showNumber(each.row), showAgo(each.received), showNumber(each.counts.malformed || 0),
    showNumber(each.counts.quarantined || 0), showNumber(each.counts.unscored || 0), showNumber(each.counts.missing || 0),
  )));
  drawProblems();
  if (state.clock.zone !== status.zone.name) state.clock = new Clock({ origin: 0, offsets: status.zone.offsets, zone: status.zone.name });
  $("zone").textContent = "Times in " + status.zone.name + (status.zone.offsets.length ? "" : ", or as written without a zone");
  $("who-label").hidden = Boolean(status.user);
  if ($("reasons").children.length > 1) return;
  [...status.reasons, "remind me"].forEach((reason, i) => {
    const label = make("label", {}, $("reasons"));
    make("input", { type: "radio", name: "reason", value: reason, "data-key": i + 1 }, label);
    make("kbd", {}, label, String(i + 1));
    label.append(reason);
  });
  $("who").value = localStorage.getItem("who") || "";
}

// What is wrong with the service or its inputs, and rows that could not be scored: at the top of every page.
function drawProblems() {
  const problems = state.status ? state.status.problems.map((each) => [each.id + ": " + each.text, "bad"]) : [];
  const unscored = [...state.assets.values()].filter((each) => each.unscored_lately && each.unscored_lately[0]);
  const rows = unscored.map((each) => [each.asset + ": " + each.unscored_lately[0] + " of the last " + each.unscored_lately[1]
    + " rows have no score" + (each.reason ? " (" + each.reason + ")" : ""), ""]);
  $("problems").replaceChildren(...[...problems, ...rows].map(([text, kind]) => make("p", { class: "notice " + kind }, null, text)));
}

async function loadAudit() {
  try {
    const lines = await ask("audit");
    fill($("audit"), lines.map((each) => row(
      showTime(Math.round(each.details.time ?? each.at)), each.who, each.action, each.subject,
      [each.details.version && "version " + each.details.version + (each.details.row ? " from row " + each.details.row + " on" : ""),
        each.details.reason, each.details.comment, each.details.note].filter(Boolean).join(" · "),
    )));
  } catch (error) {
    report(error);
  }
}

function myName() {
  return state.status.user ? {} : { name: localStorage.getItem("who") || "" };
}

// Assets of which no messages are sent.
async function loadSilences() {
  try {
    const found = await ask("silences");
    state.status ??= await ask("status");
    const may = state.status.role !== "viewer";
    $("silence").hidden = !may;
    fill($("silences"), found.map((each) => row(each.pattern, showTime(Math.round(each.until)), each.who, each.reason,
      may ? make("button", { type: "button", "data-silence": each.id }, null, "End") : "")));
  } catch (error) {
    report(error);
  }
}

async function changeSilences(path, body) {
  try {
    await command(path, { ...body, ...myName() });
    $("silence-problem").textContent = "";
  } catch (error) {
    $("silence-problem").textContent = error.message;
  }
  await loadSilences();
  await loadAudit();
}

// What people do.

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input:not([type=radio]), select, [role=group]")) return;
  const open = $("alarm").open, rows = [...$("alarm-rows").children], at = rows.findIndex((each) => each.dataset.id === state.chosen);
  const work = (action, field) => {
    const go = () => {
      const button = $("actions").querySelector("[data-action=" + action + "]");
      if (button && field) $(field).focus();
      else if (button) missing(action, {}); // asks for the reason; its key does the rest
    };
    if (open) return go();
    if (state.page === "alarms" && state.chosen) openAlarm(state.chosen).then(go).catch(report);
  };
  const actions = {
    j: () => !open && rows[at + 1] && choose(rows[at + 1].dataset.id), k: () => !open && rows[at - 1] && choose(rows[at - 1].dataset.id),
    Enter: () => !open && state.page === "alarms" && state.chosen && event.target.tagName !== "A" && event.target.tagName !== "BUTTON" && openAlarm(state.chosen).catch(report),
    a: () => work("acknowledge"), l: () => work("label"), s: () => work("shelve", "hours-aside"), c: () => work("comment", "comment"),
  };
  PAGES.forEach((page, i) => (actions[i + 1] = () => (location.hash = page)));
  if (open) for (const each of $("reasons").querySelectorAll("input")) actions[each.dataset.key] = () => chooseReason(each);
  if (!actions[event.key]) return;
  if (event.key !== "Enter" || event.target === document.body) event.preventDefault();
  actions[event.key]();
}

function chooseReason(input) {
  input.checked = true;
  input.focus();
  if (state.asking) act(state.asking);
}

$("alarm-rows").addEventListener("click", (event) => {
  const found = event.target.closest("tr");
  if (!found) return;
  choose(found.dataset.id);
  openAlarm(found.dataset.id).catch(report);
});
$("alarm").addEventListener("close", () => {
  state.opened = null;
  if (location.hash.startsWith("#alarms=")) history.replaceState(null, "", "#alarms"); // the link of a message
  for (const each of state.alarmCharts) each.chart.remove();
  state.alarmCharts = [];
});
$("actions").addEventListener("click", (event) => event.target.dataset.action && act(event.target.dataset.action));
$("models").addEventListener("click", (event) => event.target.dataset.version && useModel(Number(event.target.dataset.version)));
$("model-problem").addEventListener("click", (event) => event.target.dataset.meant && useModel(Number(event.target.dataset.meant), true));
$("silences").addEventListener("click", (event) => event.target.dataset.silence && changeSilences("silences/" + encodeURIComponent(event.target.dataset.silence) + "/end", {}));
$("silence").addEventListener("submit", () => changeSilences("silences", {
  pattern: $("silence-pattern").value.trim(), hours: Number($("silence-hours").value), reason: $("silence-reason").value.trim(),
}));
$("file-anew").addEventListener("click", (event) => event.target.tagName === "BUTTON" &&
  command("assets/" + encodeURI(state.asset) + "/input/anew", myName()).then(loadAssets, (error) => { $("model-problem").textContent = error.message; }));
$("labels").addEventListener("click", (event) => event.target.dataset.label && undo(event.target.dataset.label));
$("work").addEventListener("keydown", (event) => {
  const action = state.asking || (event.target.id === "comment" && "comment");
  if (event.key === "Enter" && event.target.matches("input") && action) act(action);
});
$("reasons").addEventListener("click", (event) => event.target.tagName === "INPUT" && event.detail && state.asking && act(state.asking));
for (const form of document.querySelectorAll("form.bar")) form.addEventListener("submit", (event) => event.preventDefault());
$("show").addEventListener("change", loadAlarms);
for (const id of ["which", "words"]) $(id).addEventListener("input", drawAlarms);
$("hours").addEventListener("change", () => {
  state.view = null;
  for (const each of state.charts.values()) each.chart.remove();
  state.charts.clear();
  $("charts").replaceChildren();
  loadSeries();
});
$("add-sensor").addEventListener("change", () => {
  const name = $("add-sensor").value;
  if (name && !state.sensors.includes(name)) state.sensors.push(name);
  $("add-sensor").value = "";
  loadSeries();
});
$("token-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("token", $("token").value.trim());
  $("token").value = "";
  listen();
});
addEventListener("hashchange", turn);
addEventListener("keydown", onKey);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  forgetColors();
  for (const each of [...state.charts.values(), ...state.alarmCharts]) each.chart.draw();
});
setInterval(() => {
  if (state.page === "assets") drawAssets();
  if (state.page === "service") loadStatus();
}, 5000);
turn();
listen();
