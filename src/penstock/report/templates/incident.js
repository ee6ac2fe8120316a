// An incident that is opened: a chart for each sensor on one time axis, the values at the cursor, and the heat map.

const PAPER_HEIGHT = 54;
const SIDE = 264; // pixels that the words next to a chart take, as in the style

// What a chart of one sensor shows: the usual band, a normal situation, what was expected, and the readings.
function sensorContent(record, packed, places) {
  const actual = unpackCurve(packed.actual), expected = unpackCurve(packed.expected), begins = record.begins;
  const normal = packed.normal ? unpackCurve(packed.normal) : null, series = [];
  if (packed.band) {
    const around = record.around ? expected : new Float64Array(places.length);
    const shift = (by) => Float64Array.from(around, (value) => value + by);
    series.push({ kind: "area", places, begins, low: shift(packed.band[0]), high: shift(packed.band[1]), color: "--orange", alpha: 0.22 });
  }
  if (normal) series.push({ places, begins, values: normal, color: "--ink-soft", dash: [1.5, 4], width: 1.6, fits: false });
  const few = expected.filter((value) => value === value).length < 3; // of methods that expect something of findings alone
  series.push({ places, begins, values: expected, color: "--orange", dash: [5, 4], width: few ? 3 : 1.6, kind: few ? "dots" : "line" });
  series.push({ places, begins, values: actual, color: "--blue", width: 2 });
  const content = {
    series,
    bands: [{ from: record.span[0], to: record.span[1] }],
    gaps: record.gaps.map(([from, to]) => ({ from, to })),
    marks: packed.onset === null ? [] : [{ place: packed.onset }],
  };
  return { content, actual, expected, normal };
}

function incidentView(record) {
  const [first, last] = record.extent, edge = (last - first) * 0.01 || 1;
  return new TimeView([first - edge, last + edge], { least: (last - first) / 60 });
}

// One small chart for a list: of the sensor to look at first.
function drawSpark(box, record) {
  const packed = record.charts[record.first], places = unpackPlaces(record.places);
  const chart = new TimeChart(box, incidentView(record), {
    clock: new Clock(record.axis), height: 64, ticks: 2, top: 4, axis: false, least: packed.range * 0.02, label: packed.name + " around the " + data.word,
  });
  chart.set(sensorContent(record, packed, places).content);
}

class IncidentCharts {
  constructor(article, record) {
    this.article = article;
    this.record = record;
    this.charts = [];
    this.view = incidentView(record);
    this.clock = new Clock(record.axis);
    const places = unpackPlaces(record.places);
    const items = [...article.querySelectorAll("li.sensor")].slice(0, record.charts.length);
    items.forEach((item, i) => this.add(item, record.charts[i], places, i === items.length - 1));
    for (const late of [...article.querySelectorAll("li.sensor")].slice(record.charts.length)) {
      late.querySelector(".plot").hidden = true;
    }
    this.view.follow(() => this.read());
    const note = article.querySelector(".normal-note");
    if (note && record.normal) note.textContent = "The dotted line is what these sensors read in a similar normal situation, " + record.normal + " and after.";
    article.querySelectorAll(".normal-key").forEach((key) => { key.hidden = !record.normal; });
    if (record.heat) this.addHeat(article.querySelector(".heat"), record.heat);
  }

  add(item, packed, places, isLast) {
    const chart = new TimeChart(item.querySelector(".plot"), this.view, {
      clock: this.clock, axis: isLast, height: TimeChart.paper ? PAPER_HEIGHT : 84, ticks: 3, top: 6, left: 52, least: packed.range * 0.02,
      label: packed.name + " around the " + data.word,
    });
    const { content, actual, expected, normal } = sensorContent(this.record, packed, places);
    chart.set(content);
    const reading = item.querySelector(".reading");
    this.charts.push({ chart, packed, places, actual, expected, normal, reading, rest: [...reading.childNodes] });
  }

  // The values of all sensors at the cursor; without one, those at the worst time.
  read() {
    const place = this.view.cursor;
    for (const { packed, places, actual, expected, normal, reading, rest } of this.charts) {
      if (place === null) {
        reading.replaceChildren(...rest);
        continue;
      }
      const i = nearestAt(places, place);
      reading.replaceChildren();
      make("strong", {}, reading, showNumber(actual[i]));
      let text = unitBeside(packed) && " " + unitBeside(packed);
      if (!Number.isNaN(expected[i])) text += " · " + data.expected + " " + showNumber(expected[i]);
      if (normal && !Number.isNaN(normal[i])) text += " · normally " + showNumber(normal[i]);
      make("span", { class: "muted" }, reading, text);
    }
    const note = this.article.querySelector(".cursor-time") || make("p", { class: "cursor-time" }, this.article.querySelector(".sensors"));
    note.textContent = place === null ? "" : this.clock.show(this.charts[0].places[nearestAt(this.charts[0].places, place)]);
  }

  addHeat(holder, packed) {
    holder.hidden = false;
    const times = data.by_evidence;
    this.heat = new HeatMap(holder.querySelector(".heat-map"), this.view, {
      clock: this.clock, full: packed.full, left: SIDE + 52, label: "Sensors over time around the " + data.word,
      show: (value, row) => times
        ? showNumber(Math.round(Math.abs(value) * 10) / 10) + " × the usual limit, " + (value < 0 ? "below" : "above") + " " + data.expected
        : withUnit(value * packed.ranges[row], packed.units[row]) + " from " + data.expected,
    });
    this.heat.set({
      names: packed.names, edges: unpackPlaces(packed.edges), cells: new Int8Array(bytesOf(packed.cells).buffer),
    });
    this.heatKey = () => {
      const full = packed.full, percent = (share) => showNumber(Math.round(share * 1000) / 10) + " %";
      drawHeatLegend(holder.querySelector(".heat-key"), {
        ticks: times ? ["▼ 6 ×", "3 ×", "0", "3 ×", "6 × ▲"] : ["▼ " + percent(full), percent(full / 2), "0", percent(full / 2), percent(full) + " ▲"],
        unit: times ? "times the usual limit below and above " + data.expected + "; 1 is its edge" : "of the sensor’s range below and above " + data.expected,
        missing: "no reading, or nothing to compare with",
      });
    };
    this.heatKey();
  }

  draw() {
    for (const { chart } of this.charts) {
      chart.options.height = TimeChart.paper ? PAPER_HEIGHT : 84;
      chart.draw();
    }
    if (this.heat) {
      this.heat.draw();
      this.heatKey();
    }
  }
}
