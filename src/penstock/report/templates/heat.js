// Residuals, variables × time around events, as coloured cells.

function startHeat(box, key) {
  const record = data.heat;
  const cells = new Int8Array(bytesOf(record.cells).buffer);
  const nBins = record.bins.length, gap = 4, headHeight = 22;
  let rowHeight = 18;
  const style = () => getComputedStyle(document.documentElement);
  const parse = (name) => style().getPropertyValue(name).trim().match(/[\da-f]{2}/gi).map((part) => parseInt(part, 16));

  const grid = make("div", { class: "heat-grid" }, box);
  make("div", { class: "heat-corner" }, grid);
  const names = make("ol", { class: "heat-names" }, grid);
  const holder = make("div", { class: "heat-canvas", role: "img", "aria-label": "Differences from what was " + data.expected }, grid);
  const canvas = make("canvas", {}, holder);
  const strongest = make("ol", { class: "heat-strongest" }, grid);
  for (const variable of record.variables) {
    make("bdi", { class: "name", "data-tip": variable.name }, make("li", {}, names), variable.name);
    const sign = variable.farthest < 0 ? "▼ " : "▲ ";
    make("li", {}, strongest, sign + withUnit(Math.abs(variable.farthest), shorten(variable.unit, 12)));
  }

  let layout = null;

  function place() {
    const width = Math.max(160, holder.clientWidth || 600), panels = record.panels;
    const gaps = Math.min(gap, (width * 0.25) / Math.max(1, panels.length));
    const cell = (width - gaps * (panels.length - 1)) / nBins;
    const left = new Float64Array(nBins + 1);
    panels.forEach((panel, i) => {
      for (let b = panel.first; b < panel.first + panel.count; b++) left[b] = b * cell + i * gaps;
    });
    return { width, cell, left, height: headHeight + rowHeight * record.variables.length };
  }

  function draw() {
    rowHeight = printWidth ? 15 : 18; // as --row in the style
    layout = place();
    const scale = printWidth ? 3 : window.devicePixelRatio || 1;
    canvas.width = Math.round(layout.width * scale);
    canvas.height = Math.round(layout.height * scale);
    canvas.style.height = layout.height + "px";
    const context = canvas.getContext("2d");
    context.scale(scale, scale);
    const colors = shades(parse("--below"), parse("--heat-middle"), parse("--above"));
    record.variables.forEach((_, row) => {
      for (let b = 0; b < nBins; b++) {
        const step = cells[row * nBins + b];
        context.fillStyle = step < -126 ? style().getPropertyValue("--missing") : colors[step + 126];
        const y = headHeight + row * rowHeight;
        context.fillRect(layout.left[b], y, layout.cell + 0.35, rowHeight - 1);
      }
    });
    label(context);
  }

  // A bracket over the rows of each event, with its number where there is room.
  function label(context) {
    context.fillStyle = style().getPropertyValue("--ink-soft");
    context.font = "600 11px " + style().getPropertyValue("--font");
    context.textAlign = "center";
    let free = -1;
    const runs = [];
    record.flagged.forEach((event, b) => {
      if (!event) return;
      const last = runs[runs.length - 1];
      if (last && last.event === event && last.to <= b) last.to = b;
      else runs.push({ event, from: b, to: b });
    });
    for (const run of runs) {
      const x0 = layout.left[run.from], x1 = layout.left[run.to] + layout.cell, middle = (x0 + x1) / 2;
      context.fillRect(x0, headHeight - 4, Math.max(1.5, x1 - x0), 2);
      const half = context.measureText(String(run.event)).width / 2 + 2;
      if (middle - half < free) continue;
      context.fillText(String(run.event), Math.min(Math.max(middle, half), layout.width - half), headHeight - 8);
      free = middle + half;
    }
  }

  function shades(below, middle, above) {
    const mix = (a, b, share) => "rgb(" + a.map((part, i) => Math.round(part + (b[i] - part) * share)).join(",") + ")";
    const list = [];
    for (let step = -126; step <= 126; step++) {
      list.push(mix(middle, step < 0 ? below : above, Math.pow(Math.abs(step) / 126, 0.8)));
    }
    return list;
  }

  function drawKey() {
    key.replaceChildren();
    make("span", {}, key, "▼ below " + data.expected);
    const bar = make("canvas", { width: 253, height: 1 }, key), context = bar.getContext("2d");
    shades(parse("--below"), parse("--heat-middle"), parse("--above")).forEach((color, i) => {
      context.fillStyle = color;
      context.fillRect(i, 0, 1, 1);
    });
    make("span", {}, key, "▲ above " + data.expected);
    make("span", { class: "chip none" }, key);
    make("span", {}, key, "no reading, or nothing to compare with");
    make("span", { class: "muted" }, key, "strongest colour from " + showNumber(Math.round(record.full * 1000) / 10) + " % of the variable’s range");
  }

  holder.addEventListener("pointermove", (event) => {
    const at = canvas.getBoundingClientRect();
    const x = ((event.clientX - at.left) / at.width) * layout.width;
    const row = Math.floor((((event.clientY - at.top) / at.height) * layout.height - headHeight) / rowHeight);
    let bin = nBins - 1;
    while (bin > 0 && layout.left[bin] > x) bin--;
    if (row < 0 || row >= record.variables.length) return hideTip();
    const variable = record.variables[row], step = cells[row * nBins + bin];
    const difference = (step / 126) * record.full * variable.range;
    const beyond = Math.abs(step) === 126 ? (step > 0 ? "at least " : "at most ") : "";
    const known = beyond + (difference > 0 ? "+" : "") + withUnit(difference, variable.unit) + " from " + data.expected;
    const words = step === -128 ? "no reading" : step === -127 ? "no " + data.expected + " value here" : known;
    const lines = [variable.name, showPlace(record.bins[bin]), words];
    if (record.flagged[bin]) lines.push("event " + record.flagged[bin]);
    showTip(lines, event.clientX, event.clientY);
  });
  holder.addEventListener("pointerleave", hideTip);
  holder.addEventListener("click", (event) => {
    const at = canvas.getBoundingClientRect(), x = ((event.clientX - at.left) / at.width) * layout.width;
    let bin = nBins - 1;
    while (bin > 0 && layout.left[bin] > x) bin--;
    if (record.flagged[bin]) location.hash = "#event-" + record.flagged[bin];
  });
  drawKey();
  return { draw, drawKey };
}

charts.heat = (box) => startHeat(box, document.getElementById("heat-key"));
