// A chart over time on a canvas. Shared by every page; it takes typed arrays and options, and knows nothing of reports.
//
//   const view = new TimeView([0, 1e6]);                     one for all charts that move together
//   const chart = new TimeChart(element, view, { clock, label: "Score over time", height: 200, axis: true });
//   chart.set({ series: [{ places, values, begins, color: "--blue" }], bands: [{ from, to, label: "3", key: 3 }] });
//
// series   kind "line" (default): places Float64Array in ascending order, values (NaN: no reading), color, width, dash;
//          kind "area": low and high instead of values; kind "dots": a dot for each value.
//          begins: indices, ascending, at which a new stretch begins; no line is drawn into it.
//          fits: false keeps a series out of the vertical range.
// levels   horizontal lines: { value, color, dash }
// bands    over the whole height: { from, to, color, label, key, strong }; onBand(band) when one is chosen
// lanes    rows of bands below the chart: { name, bands: [{ from, to, color, label, quiet }] }
// gaps     { from, to, label } where nothing was recorded: hatched
// marks    vertical lines: { place, color }
//
// onSelect(from, to) is called first with what was dragged over; if it returns true, that is not zoomed to.
//
// Of the points in one column of pixels only the first, the lowest, the highest and the last are drawn: no peak is lost,
// and a million points cost as much as the screen is wide. Drag to zoom; wheel with Ctrl, pinch, arrow keys, + and −;
// 0, Escape or a double click show all. Colours are names of CSS properties or colours.

const LANE = 18, LANE_GAP = 3;
const FONT = "12px system-ui, -apple-system, 'Segoe UI', Roboto, 'Helvetica Neue', Arial, 'Noto Sans', sans-serif";

// The first index whose place is at least `place`.
function firstAt(places, place) {
  let low = 0, high = places.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (places[middle] < place) low = middle + 1;
    else high = middle;
  }
  return low;
}

function nearestAt(places, place) {
  const after = Math.min(firstAt(places, place), places.length - 1);
  return after > 0 && place - places[after - 1] < places[after] - place ? after - 1 : after;
}

// Traces a line through the points from index `from` to before `to` into a path.
function traceLine(path, places, values, begins, from, to, toX, toY) {
  let next = firstAt(begins, from), column = NaN, pen = false, first = 0, low = 0, high = 0, last = 0, lowFirst = true;
  const flush = () => {
    if (Number.isNaN(column)) return;
    if (pen) path.lineTo(column, first);
    else path.moveTo(column, first);
    if (low !== high) {
      path.lineTo(column, lowFirst ? low : high);
      path.lineTo(column, lowFirst ? high : low);
      path.lineTo(column, last);
    } else if (!pen) path.lineTo(column + 0.01, first); // a lone point is seen as a dot
    pen = true;
    column = NaN;
  };
  for (let i = from; i < to; i++) {
    const value = values[i];
    if (begins[next] === i || value !== value) {
      flush();
      pen = false;
      if (begins[next] === i) next++;
      if (value !== value) continue;
    }
    const x = Math.round(toX(places[i]) * 2) / 2, y = toY(value);
    if (x !== column) {
      flush();
      column = x;
      first = low = high = y;
    } else if (y < low) {
      low = y;
      lowFirst = false;
    } else if (y > high) {
      high = y;
      lowFirst = true;
    }
    last = y;
  }
  flush();
}

// Traces the area between two series.
function traceArea(path, places, low, high, begins, from, to, toX, toY) {
  let next = firstAt(begins, from), column = NaN, top = 0, bottom = 0, upper = [], lower = [];
  const put = () => {
    if (Number.isNaN(column)) return;
    upper.push(column, top);
    lower.push(column, bottom);
    column = NaN;
  };
  const close = () => {
    put();
    if (upper.length) {
      path.moveTo(upper[0] - (upper.length === 2 ? 1 : 0), upper[1]);
      for (let i = 2; i < upper.length; i += 2) path.lineTo(upper[i], upper[i + 1]);
      for (let i = lower.length - 2; i >= 0; i -= 2) path.lineTo(lower[i], lower[i + 1]);
      path.closePath();
    }
    upper = [];
    lower = [];
  };
  for (let i = from; i < to; i++) {
    const known = low[i] === low[i] && high[i] === high[i];
    if (begins[next] === i || !known) {
      close();
      if (begins[next] === i) next++;
      if (!known) continue;
    }
    const x = Math.round(toX(places[i]) * 2) / 2, up = toY(high[i]), down = toY(low[i]);
    if (x !== column) {
      put();
      column = x;
      top = up;
      bottom = down;
    } else {
      if (up < top) top = up;
      if (down > bottom) bottom = down;
    }
  }
  close();
}

class TimeChart {
  constructor(box, view, options = {}) {
    this.box = box;
    this.view = view;
    this.options = { height: 120, left: 56, right: 10, top: 8, axis: true, ticks: 4, least: 0, ...options };
    this.clock = this.options.clock || new Clock({});
    this.data = {};
    this.frame = null;
    this.pointers = new Map();
    this.drag = null;
    this.pinch = null;
    Object.assign(box.style, { position: "relative", cursor: "crosshair", touchAction: "pan-y", userSelect: "none" });
    this.base = make("canvas", { "aria-hidden": "true" }, box);
    this.overlay = make("canvas", { "aria-hidden": "true" }, box);
    Object.assign(this.base.style, { display: "block", width: "100%" });
    Object.assign(this.overlay.style, { position: "absolute", top: 0, left: 0, width: "100%", pointerEvents: "none" });
    box.tabIndex = 0;
    box.setAttribute("role", "group");
    if (this.options.label) box.setAttribute("aria-label", this.options.label);
    this.listen();
    this.stop = view.follow((changed) => {
      if (changed.range) this.draw();
      else this.drawCursor();
    });
    this.sizes = new ResizeObserver(() => {
      if (this.box.clientWidth && (!this.frame || this.frame.width !== this.box.clientWidth)) this.draw();
    });
    this.sizes.observe(box);
  }

  remove() {
    this.stop();
    this.sizes.disconnect();
    this.box.replaceChildren();
  }

  set(data) {
    this.data = data;
    this.draw();
  }

  get height() {
    const { height, axis } = this.options, lanes = (this.data.lanes || []).length;
    return height + lanes * (LANE + LANE_GAP) + (lanes ? 6 : 0) + (axis ? 36 : 4);
  }

  // Draws everything; width and pixels per point are given for paper.
  draw(width = TimeChart.paper ? TimeChart.paper.width : this.box.clientWidth, scale = TimeChart.paper ? TimeChart.paper.scale : devicePixelRatio) {
    if (!width) return;
    const context = this.prepare(this.base, width, this.height, scale);
    this.prepare(this.overlay, width, this.height, scale);
    const { left, right, top, height } = this.options, narrow = width < 560;
    const frame = { width, scale, left: narrow ? Math.min(left, 46) : left, right: width - right, top, bottom: height };
    const [x0, x1] = this.view.range, wide = frame.right - frame.left, perPlace = wide / (x1 - x0 || 1);
    frame.toX = (place) => frame.left + (place - x0) * perPlace;
    frame.toPlace = (x) => x0 + (x - frame.left) / perPlace;
    const series = (this.data.series || []).map((each) => ({
      ...each,
      begins: each.begins || [],
      from: Math.max(0, firstAt(each.places, x0) - 1),
      to: Math.min(each.places.length, firstAt(each.places, x1) + 2),
    }));
    const [low, high] = this.verticalRange(series), perValue = (frame.bottom - frame.top) / (high - low || 1);
    frame.toY = (value) => frame.bottom - (value - low) * perValue;
    frame.range = [low, high];
    this.frame = frame;
    this.drawValueAxis(context, low, high);
    context.save();
    context.beginPath();
    context.rect(frame.left, 0, wide, this.height);
    context.clip();
    this.drawGaps(context);
    this.drawBands(context);
    context.beginPath();
    context.rect(frame.left, frame.top - 3, wide, frame.bottom - frame.top + 6);
    context.clip();
    for (const each of series) this.drawSeries(context, each);
    for (const level of this.data.levels || []) this.drawLevel(context, level);
    for (const mark of this.data.marks || []) this.drawMark(context, mark);
    context.restore();
    this.drawLanes(context);
    if (this.options.axis) this.drawTimeAxis(context);
    this.box.dataset.from = x0;
    this.box.dataset.to = x1;
    this.drawCursor();
  }

  prepare(canvas, width, height, scale) {
    const wide = Math.round(width * scale), high = Math.round(height * scale);
    if (canvas.width !== wide || canvas.height !== high) {
      canvas.width = wide;
      canvas.height = high;
      canvas.style.height = height + "px";
      this.box.style.height = height + "px";
    }
    const context = canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = FONT;
    return context;
  }

  // From the lowest to the highest value in view with a margin; at least `options.least` high.
  verticalRange(series) {
    if (this.options.range) return this.options.range;
    let low = Infinity, high = -Infinity;
    const take = (values, from, to) => {
      for (let i = from; i < to; i++) {
        const value = values[i];
        if (value < low) low = value;
        if (value > high) high = value;
      }
    };
    for (const each of series) {
      if (each.fits === false) continue;
      for (const values of each.kind === "area" ? [each.low, each.high] : [each.values]) take(values, each.from, each.to);
    }
    for (const level of this.data.levels || []) take([level.value], 0, 1);
    if (this.options.zero) take([0], 0, 1);
    if (!(low <= high)) [low, high] = [0, 1];
    const room = Math.max((high - low) * 0.08, this.options.least / 2, Math.abs(high) * 1e-9) || 1;
    return [this.options.zero && low >= 0 ? 0 : low - room, high + room];
  }

  drawValueAxis(context, low, high) {
    const frame = this.frame;
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.lineWidth = 1;
    for (const tick of numberTicks(low, high, this.options.ticks)) {
      const y = Math.round(frame.toY(tick)) + 0.5;
      if (y < frame.top || y > frame.bottom + 1) continue;
      context.strokeStyle = colorOf("--rule-soft");
      context.beginPath();
      context.moveTo(frame.left, y);
      context.lineTo(frame.right, y);
      context.stroke();
      context.fillStyle = colorOf("--ink-soft");
      context.fillText(showNumber(tick), frame.left - 6, y);
    }
  }

  drawTimeAxis(context) {
    const frame = this.frame, bottom = this.height - 34;
    const count = Math.max(2, Math.floor((frame.right - frame.left) / 90));
    context.strokeStyle = context.fillStyle = colorOf("--ink-soft");
    context.textBaseline = "alphabetic";
    context.lineWidth = 0.8;
    context.beginPath();
    context.moveTo(frame.left, bottom);
    context.lineTo(frame.right, bottom);
    let free = -Infinity, freeBelow = -Infinity;
    for (const tick of this.clock.ticks(this.view.range[0], this.view.range[1], count)) {
      const x = frame.toX(tick.place);
      context.moveTo(x, bottom);
      context.lineTo(x, bottom + 4);
      const put = (text, y, from) => {
        const width = context.measureText(text).width;
        const at = Math.min(Math.max(x - width / 2, frame.left - 30), frame.right - width);
        if (at < from) return from;
        context.textAlign = "left";
        context.fillText(text, at, y);
        return at + width + 8;
      };
      free = put(tick.label, bottom + 16, free);
      if (tick.below) freeBelow = put(tick.below, bottom + 30, freeBelow);
    }
    context.stroke();
  }

  drawGaps(context) {
    const frame = this.frame;
    context.strokeStyle = colorOf("--gap");
    context.lineWidth = 1;
    for (const gap of this.data.gaps || []) {
      const from = Math.max(frame.left, frame.toX(gap.from)), to = Math.min(frame.right, frame.toX(gap.to));
      if (to - from < 1) continue;
      context.save();
      context.beginPath();
      context.rect(from, frame.top, to - from, frame.bottom - frame.top);
      context.clip();
      context.beginPath();
      const high = frame.bottom - frame.top;
      for (let x = from - high; x < to; x += 6) {
        context.moveTo(x, frame.bottom);
        context.lineTo(x + high, frame.top);
      }
      context.stroke();
      context.restore();
    }
  }

  // Bands are at least two pixels wide; labels are left out where they would touch, `bands` being in order of importance.
  drawBands(context) {
    const frame = this.frame, taken = [];
    context.textAlign = "center";
    context.textBaseline = "alphabetic";
    for (const band of this.data.bands || []) {
      const [x, wide] = this.bandPlace(band);
      if (x + wide < frame.left || x > frame.right) continue;
      context.globalAlpha = band.strong ? 0.42 : 0.22;
      context.fillStyle = colorOf(band.color || "--band");
      context.fillRect(x, frame.top - 4, wide, frame.bottom - frame.top + 4);
      context.globalAlpha = 1;
      if (!band.label) continue;
      const half = context.measureText(band.label).width / 2 + 3;
      const middle = Math.min(Math.max(x + wide / 2, frame.left + half), frame.right - half);
      if (taken.some(([at, other]) => Math.abs(at - middle) < half + other)) continue;
      taken.push([middle, half]);
      context.fillStyle = colorOf("--ink");
      context.font = (band.strong ? "700 " : "600 ") + FONT;
      context.fillText(band.label, middle, frame.top - 7);
      context.font = FONT;
    }
  }

  bandPlace(band) {
    const x = this.frame.toX(band.from), wide = this.frame.toX(band.to) - x;
    return wide < 3 ? [x + wide / 2 - 1.5, 3] : [x, wide];
  }

  drawSeries(context, series) {
    const { toX, toY } = this.frame;
    context.beginPath();
    context.lineJoin = context.lineCap = "round";
    context.setLineDash(series.dash || []);
    context.lineWidth = series.width || 1.3;
    context.strokeStyle = context.fillStyle = colorOf(series.color || "--blue");
    if (series.kind === "area") {
      traceArea(context, series.places, series.low, series.high, series.begins, series.from, series.to, toX, toY);
      context.globalAlpha = series.alpha || 0.16;
      context.fill();
      context.globalAlpha = 1;
    } else if (series.kind === "dots") {
      for (let i = series.from; i < series.to; i++) {
        if (Number.isNaN(series.values[i])) continue;
        context.moveTo(toX(series.places[i]) + 2.5, toY(series.values[i]));
        context.arc(toX(series.places[i]), toY(series.values[i]), series.width || 2.5, 0, 7);
      }
      context.fill();
    } else {
      traceLine(context, series.places, series.values, series.begins, series.from, series.to, toX, toY);
      context.stroke();
    }
    context.setLineDash([]);
  }

  drawLevel(context, level) {
    const y = this.frame.toY(level.value);
    context.beginPath();
    context.setLineDash(level.dash || [7, 5]);
    context.lineWidth = 1.3;
    context.strokeStyle = colorOf(level.color || "--ink");
    context.moveTo(this.frame.left, y);
    context.lineTo(this.frame.right, y);
    context.stroke();
    context.setLineDash([]);
  }

  drawMark(context, mark) {
    const x = this.frame.toX(mark.place);
    context.beginPath();
    context.lineWidth = 1.6;
    context.strokeStyle = colorOf(mark.color || "--orange");
    context.moveTo(x, this.frame.top);
    context.lineTo(x, this.frame.bottom);
    context.stroke();
  }

  laneTop(number) {
    return this.frame.bottom + 6 + number * (LANE + LANE_GAP);
  }

  drawLanes(context) {
    const frame = this.frame;
    (this.data.lanes || []).forEach((lane, number) => {
      const top = this.laneTop(number);
      context.fillStyle = colorOf("--rule-soft");
      context.fillRect(frame.left, top, frame.right - frame.left, LANE);
      context.textBaseline = "middle";
      context.save();
      context.beginPath();
      context.rect(frame.left, top, frame.right - frame.left, LANE);
      context.clip();
      for (const band of lane.bands) {
        const [x, wide] = this.bandPlace(band);
        if (x + wide < frame.left || x > frame.right) continue;
        const from = Math.max(x, frame.left), room = Math.min(x + wide, frame.right) - from;
        context.fillStyle = colorOf(band.color || "--blue");
        context.fillRect(x, top, Math.max(wide - (wide > 6 ? 1 : 0), 2), LANE);
        if (!band.label || room < 24) continue;
        const text = fitText(context, band.label, room - 8);
        context.fillStyle = colorOf(band.ink || "--ink");
        context.textAlign = "left";
        if (text) context.fillText(text, from + 4, top + LANE / 2 + 0.5);
      }
      context.restore();
      context.fillStyle = colorOf("--ink-soft");
      context.textAlign = "right";
      context.fillText(fitText(context, lane.name, frame.left - 8), frame.left - 6, top + LANE / 2 + 0.5);
    });
  }

  drawCursor() {
    const frame = this.frame;
    if (!frame) return;
    const context = this.prepare(this.overlay, frame.width, this.height, frame.scale);
    if (this.drag && this.drag.moved) {
      const from = Math.min(this.drag.start, this.drag.end), wide = Math.abs(this.drag.start - this.drag.end);
      context.fillStyle = colorOf("--blue");
      context.globalAlpha = 0.18;
      context.fillRect(from, frame.top, wide, frame.bottom - frame.top);
      context.globalAlpha = 1;
    }
    const place = this.view.cursor;
    if (place === null || place < this.view.range[0] || place > this.view.range[1]) return;
    const x = Math.round(frame.toX(place)) + 0.5;
    context.strokeStyle = colorOf("--ink-soft");
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(x, frame.top);
    context.lineTo(x, this.height - (this.options.axis ? 34 : 2));
    context.stroke();
    for (const series of this.data.series || []) {
      if ((series.kind && series.kind !== "line") || !series.places.length) continue;
      const i = nearestAt(series.places, place), value = series.values[i], at = frame.toX(series.places[i]);
      if (Number.isNaN(value) || Math.abs(at - x) > 30) continue;
      context.fillStyle = colorOf(series.color || "--blue");
      context.beginPath();
      context.arc(at, frame.toY(value), 3.2, 0, 7);
      context.fill();
    }
  }

  pointIn(event) {
    const box = this.box.getBoundingClientRect();
    return { x: event.clientX - box.left, y: event.clientY - box.top };
  }

  clamp(x) {
    return Math.min(Math.max(x, this.frame.left), this.frame.right);
  }

  // The narrowest band at a point, a little around it included; of lanes too.
  bandAt(x, y) {
    const over = (list) => list
      .map((band) => ({ band, place: this.bandPlace(band) }))
      .filter(({ place }) => x >= place[0] - 4 && x <= place[0] + place[1] + 4)
      .sort((a, b) => a.place[1] - b.place[1]);
    const lane = (this.data.lanes || []).find((_, i) => y >= this.laneTop(i) && y < this.laneTop(i) + LANE);
    const found = over(lane ? lane.bands : y <= this.frame.bottom ? this.data.bands || [] : [])[0];
    return found ? { ...found.band, lane: lane ? lane.name : null } : null;
  }

  gapAt(place) {
    return (this.data.gaps || []).find((gap) => place > gap.from && place < gap.to) || null;
  }

  listen() {
    const box = this.box, view = this.view;
    box.addEventListener("pointerdown", (event) => {
      if (!this.frame || (event.pointerType === "mouse" && event.button !== 0)) return;
      this.pointers.set(event.pointerId, this.pointIn(event).x);
      if (this.pointers.size === 2) {
        const [a, b] = [...this.pointers.values()].sort((c, d) => c - d);
        this.pinch = { from: this.frame.toPlace(a), to: this.frame.toPlace(b) };
        this.drag = null;
      } else this.drag = { start: this.clamp(this.pointIn(event).x), end: 0, moved: false };
    });
    box.addEventListener("pointermove", (event) => {
      if (!this.frame) return;
      const at = this.pointIn(event);
      if (this.pointers.has(event.pointerId)) this.pointers.set(event.pointerId, at.x);
      if (this.pinch && this.pointers.size === 2) return this.pinchTo();
      const x = this.clamp(at.x);
      if (this.drag && event.pointerType !== "touch" && (this.drag.moved || Math.abs(x - this.drag.start) > 4)) {
        if (!this.drag.moved) box.setPointerCapture(event.pointerId);
        this.drag.moved = true;
        this.drag.end = x;
        hideTip();
        return this.drawCursor();
      }
      this.hover(at, event);
    });
    const release = (event) => {
      this.pointers.delete(event.pointerId);
      const done = this.drag;
      this.drag = null;
      if (this.pinch) {
        if (!this.pointers.size) this.pinch = null;
        return;
      }
      if (!done) return;
      if (done.moved && event.type === "pointerup") {
        const ends = [done.start, done.end].sort((a, b) => a - b);
        const range = ends.map((x) => this.frame.toPlace(x));
        if (!this.options.onSelect || !this.options.onSelect(...range)) view.show(...range);
      } else if (event.type === "pointerup" && this.options.onBand) {
        const at = this.pointIn(event), band = this.bandAt(at.x, at.y);
        if (band && band.key !== undefined) this.options.onBand(band);
      }
      this.drawCursor();
    };
    box.addEventListener("pointerup", release);
    box.addEventListener("pointercancel", release);
    box.addEventListener("pointerleave", () => this.leave());
    box.addEventListener("dblclick", () => view.reset());
    // The wheel alone scrolls the page, as everywhere else; a pinch on a touchpad arrives as a wheel event with ctrlKey.
    box.addEventListener("wheel", (event) => {
      if ((!event.ctrlKey && !event.metaKey) || !this.frame) return;
      event.preventDefault();
      view.zoom(event.deltaY > 0 ? 1.25 : 0.8, this.frame.toPlace(this.clamp(this.pointIn(event).x)));
    }, { passive: false });
    box.addEventListener("keydown", (event) => {
      const actions = {
        "+": () => view.zoom(0.6), "=": () => view.zoom(0.6), "-": () => view.zoom(1 / 0.6),
        ArrowLeft: () => view.pan(-0.2), ArrowRight: () => view.pan(0.2), 0: () => view.reset(), Escape: () => view.reset(),
      };
      if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      actions[event.key]();
    });
  }

  hover(at, event) {
    const inside = at.x >= this.frame.left - 4 && at.x <= this.frame.right + 4;
    if (!inside) return this.leave();
    const place = this.frame.toPlace(this.clamp(at.x));
    this.view.pointAt(place);
    if (!this.options.tip) return;
    const lines = this.options.tip(place, this.bandAt(at.x, at.y), this.gapAt(place));
    if (lines) showTip(lines, event.clientX, event.clientY);
    else hideTip();
  }

  leave() {
    this.view.pointAt(null);
    hideTip();
  }

  pinchTo() {
    const [a, b] = [...this.pointers.values()].sort((c, d) => c - d);
    const perPixel = (this.pinch.to - this.pinch.from) / Math.max(8, b - a);
    const from = this.pinch.from - (a - this.frame.left) * perPixel;
    this.view.show(from, from + (this.frame.right - this.frame.left) * perPixel);
  }
}

TimeChart.paper = null; // { width, scale } while the page is printed

function fitText(context, text, room) {
  if (context.measureText(text).width <= room) return text;
  const signs = Array.from(text);
  while (signs.length > 1 && context.measureText(signs.join("") + "…").width > room) signs.pop();
  return signs.length > 1 ? signs.join("") + "…" : "";
}
