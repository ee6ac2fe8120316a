// The explorer: any sensors over the whole time below the score, in one chart or one below the other.

const HUES = ["--blue", "--orange", "--green", "--purple", "--yellow", "--sky"];
const DASHES = [[], [6, 4], [2, 3]];
const MOST_CHOSEN = 12;

class Explorer {
  constructor(view, overview, changed) {
    this.view = view;
    this.overview = overview;
    this.changed = changed;
    this.columns = [];
    this.layout = "stack";
    this.charts = [];
    this.holder = document.getElementById("explorer-charts");
    this.search = document.getElementById("sensor-search");
    this.list = document.getElementById("sensor-list");
    this.listen();
    view.follow((change) => change.cursor && this.read());
  }

  listen() {
    const { search, list } = this;
    let active = -1;
    const close = () => {
      list.hidden = true;
      search.setAttribute("aria-expanded", "false");
      search.removeAttribute("aria-activedescendant");
    };
    const mark = (place) => {
      active = place;
      [...list.children].forEach((item, i) => item.setAttribute("aria-selected", String(i === active)));
      if (list.children[active]) {
        search.setAttribute("aria-activedescendant", list.children[active].id);
        list.children[active].scrollIntoView({ block: "nearest" });
      }
    };
    const fill = () => {
      const wanted = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const found = data.explorer.order.filter((column) => {
        const name = data.explorer.sensors[column].name.toLowerCase();
        return !this.columns.includes(column) && wanted.every((word) => name.includes(word));
      });
      list.replaceChildren();
      for (const column of found.slice(0, 200)) {
        const item = make("li", { role: "option", id: "option-" + column, "data-column": column, "aria-selected": "false" }, list);
        make("bdi", { class: "name" }, item, data.explorer.sensors[column].name);
        make("span", { class: "muted" }, item, unitOf(column));
      }
      if (!found.length) make("li", { class: "muted", role: "option", "aria-disabled": "true", id: "option-none" }, list, "no such sensor");
      list.hidden = false;
      search.setAttribute("aria-expanded", "true");
      mark(search.value ? 0 : -1);
    };
    const choose = (item) => {
      if (!item || !item.dataset.column) return;
      this.set([...this.columns, Number(item.dataset.column)].slice(-MOST_CHOSEN), this.layout);
      search.value = "";
      close();
    };
    search.addEventListener("input", fill);
    search.addEventListener("focus", fill);
    search.addEventListener("blur", () => setTimeout(close, 150));
    search.addEventListener("keydown", (event) => {
      if (event.key === "Escape") return close();
      if (event.key === "Enter") {
        event.preventDefault();
        choose(list.children[Math.max(active, 0)]);
      }
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (!step) return;
      event.preventDefault();
      if (list.hidden) fill();
      mark(Math.min(Math.max(active + step, 0), list.children.length - 1));
    });
    list.addEventListener("pointerdown", (event) => {
      event.preventDefault();
      choose(event.target.closest("li"));
    });
    for (const radio of document.querySelectorAll('input[name="layout"]')) {
      radio.addEventListener("change", () => radio.checked && this.set(this.columns, radio.value));
    }
    document.getElementById("chosen").addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (button) this.set(this.columns.filter((column) => column !== Number(button.dataset.column)), this.layout);
    });
    document.getElementById("copy-csv").addEventListener("click", () => this.copyCsv());
    document.getElementById("copy-picture").addEventListener("click", () => this.copyPicture());
    document.getElementById("copy-link").addEventListener("click", () => {
      this.changed();
      copyText(location.href, "The link is copied.");
    });
  }

  look(i) {
    return { color: HUES[i % HUES.length], dash: DASHES[Math.floor(i / HUES.length) % DASHES.length] };
  }

  // Which sensors are shown, and how.
  set(columns, layout, silent) {
    this.columns = columns;
    this.layout = layout;
    for (const chart of this.charts) chart.remove();
    this.charts = [];
    this.holder.replaceChildren();
    for (const radio of document.querySelectorAll('input[name="layout"]')) radio.checked = radio.value === layout;
    this.addChart({ ...this.overview, marks: [] }, { height: 80, label: "Score", ticks: 2, zero: true, top: 20, axis: !columns.length }, "Score");
    if (layout === "overlay" && columns.length) this.overlay(columns);
    else columns.forEach((column, i) => this.stack(column, i === columns.length - 1));
    const chosen = document.getElementById("chosen");
    chosen.replaceChildren();
    columns.forEach((column, i) => {
      const sensor = data.explorer.sensors[column], item = make("li", {}, chosen);
      if (layout === "overlay") this.swatch(item, i);
      make("bdi", { class: "name" }, item, sensor.name);
      make("span", { class: "value muted", "data-column": column }, item);
      make("button", { type: "button", "data-column": column, "aria-label": "Remove " + sensor.name }, item, "×");
    });
    this.read();
    if (!silent) this.changed();
  }

  swatch(item, i) {
    const { color, dash } = this.look(i), svg = make("svg", { class: "swatch", viewBox: "0 0 24 12", "aria-hidden": "true" }, item);
    make("path", { d: "M1 6H23", fill: "none", stroke: colorOf(color), "stroke-width": 2.5, "stroke-dasharray": dash.join(" ") }, svg);
  }

  addChart(content, options, title) {
    const box = make("div", { class: "strip" }, this.holder);
    const name = make("p", { class: "strip-name" }, box);
    make("bdi", { class: "name" }, name, title);
    const chart = new TimeChart(make("div", { class: "plot" }, box), this.view, { clock, left: 84, ...options });
    chart.set(content);
    this.charts.push(chart);
    return chart;
  }

  shared() {
    return { bands: this.overview.bands.map((band) => ({ ...band, label: "" })), gaps: this.overview.gaps };
  }

  stack(column, isLast) {
    const sensor = data.explorer.sensors[column];
    this.addChart(
      { ...this.shared(), series: [{ ...curveOf(column), color: "--blue" }] },
      { height: 92, axis: isLast, ticks: 3, label: sensor.name + " over time" },
      sensor.name + unitOf(column),
    );
  }

  // Sensors of one unit on one scale; else each between its own lowest and highest reading.
  overlay(columns) {
    const sensors = columns.map((column) => data.explorer.sensors[column]), unit = sensors[0].unit;
    const alike = sensors.every((sensor) => sensor.unit === unit && (unit || sensors.length === 1));
    const series = columns.map((column, i) => {
      const curve = curveOf(column);
      if (alike) return { ...curve, ...this.look(i) };
      let low = Infinity, high = -Infinity;
      for (const value of curve.values) {
        if (value < low) low = value;
        if (value > high) high = value;
      }
      const values = Float64Array.from(curve.values, (value) => (100 * (value - low)) / (high - low || 1));
      return { places: curve.places, begins: curve.begins, values, ...this.look(i) };
    });
    this.addChart({ ...this.shared(), series }, { height: 260, ticks: 5, label: "Sensors over time in one chart" },
      alike ? unit : "each in % of its own range");
  }

  read() {
    const place = this.view.cursor;
    document.getElementById("readout").textContent = place === null ? "" : clock.show(place);
    for (const value of document.querySelectorAll("#chosen .value")) {
      const column = Number(value.dataset.column), { places, values } = curveOf(column);
      value.textContent = place === null ? "" : " " + withUnit(values[nearestAt(places, place)], unitBeside(data.explorer.sensors[column]));
    }
  }

  draw() {
    for (const chart of this.charts) chart.draw();
  }

  // The rows in view: the time, then each sensor (where these are thinned differently, the nearest reading).
  csv() {
    const [low, high] = this.view.range, score = { ...this.overview.series[0] };
    const main = this.columns.length ? curveOf(this.columns[0]) : score, all = this.columns.map(curveOf);
    const names = ["time", "score", ...this.columns.map((column) => data.explorer.sensors[column].name + unitOf(column))];
    const lines = [names.map(csvField).join(",")];
    for (let i = firstAt(main.places, low); i < main.places.length && main.places[i] <= high; i++) {
      const place = main.places[i], cell = ({ places, values }) => {
        const value = values[places === main.places ? i : nearestAt(places, place)];
        return Number.isNaN(value) ? "" : String(Number(value.toPrecision(6)));
      };
      lines.push([clock.iso(place), cell(score), ...all.map(cell)].join(","));
    }
    return lines.join("\r\n") + "\r\n";
  }

  copyCsv() {
    const text = this.csv(), count = text.split("\r\n").length - 2;
    copyText(text, showNumber(count) + (count === 1 ? " row is" : " rows are") + " copied as CSV.", "penstock.csv");
  }

  // All charts one below the other, with their names.
  picture() {
    const scale = 2, width = 1000, line = 22, paper = document.createElement("canvas");
    const heights = this.charts.map((chart) => chart.height + line);
    paper.width = width * scale;
    paper.height = (heights.reduce((sum, each) => sum + each, 0) + line) * scale;
    const context = paper.getContext("2d");
    context.fillStyle = colorOf("--paper");
    context.fillRect(0, 0, paper.width, paper.height);
    context.font = "600 26px sans-serif";
    let top = 10;
    const names = [...this.holder.querySelectorAll(".strip-name")].map((name) => name.textContent);
    this.charts.forEach((chart, i) => {
      chart.draw(width, scale);
      context.fillStyle = colorOf("--ink");
      const overlaid = this.layout === "overlay" && i ? this.columns.map((column) => data.explorer.sensors[column].name).join(", ") + ", " : "";
      context.fillText(overlaid + names[i], 12, (top + 14) * scale);
      context.drawImage(chart.base, 0, (top + line - 2) * scale);
      top += heights[i];
      chart.draw();
    });
    return paper;
  }

  copyPicture() {
    this.picture().toBlob((blob) => {
      const save = () => saveFile(blob, "penstock.png");
      if (!navigator.clipboard || !window.ClipboardItem) return save();
      navigator.clipboard.write([new ClipboardItem({ "image/png": blob })]).then(() => say("The picture is copied."), save);
    });
  }
}

// The unit of a sensor in brackets, unless its name says it.
function unitOf(column) {
  const unit = unitBeside(data.explorer.sensors[column]);
  return unit && " [" + unit + "]";
}

// A cell of a CSV file; a text that a spreadsheet would take for a formula gets a single quote in front.
function csvField(text) {
  const safe = /^(?:[\t\r\n]|[\s'"]*[=+\-@＝＋－＠])/.test(text) ? "'" + text : text;
  return /[,;\t"\r\n]/.test(safe) ? '"' + safe.replace(/"/g, '""') + '"' : safe;
}

function say(text) {
  document.getElementById("copied").textContent = text;
}

// To the clipboard; where the browser does not allow that, as a file.
function copyText(text, done, name = "penstock.txt") {
  const save = () => saveFile(new Blob([text], { type: "text/plain" }), name);
  if (!navigator.clipboard) return save();
  navigator.clipboard.writeText(text).then(() => say(done), save);
}

function saveFile(blob, name) {
  const link = make("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  say("Saved as " + name + ".");
}
