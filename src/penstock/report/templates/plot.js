// A chart's frame: scales, axes, grid; and paths that lose no peak.

let printWidth = 0; // while the page is printed, all charts are drawn this wide

function widthOf(box, fallback) {
  return Math.round(printWidth || box.clientWidth || fallback);
}

// Draws the axes into the box, which is emptied, and returns the scales.
function makeFrame(box, options) {
  const width = options.width, height = options.height;
  const left = options.left, right = width - options.right, top = options.top, bottom = height - options.bottom;
  const [x0, x1] = options.x, [y0, y1] = options.y;
  const svg = make("svg", { viewBox: "0 0 " + width + " " + height, class: "chart", "aria-hidden": "true" });
  const toX = (place) => left + ((place - x0) / (x1 - x0 || 1)) * (right - left);
  const toY = (value) => bottom - ((value - y0) / (y1 - y0 || 1)) * (bottom - top);
  const toPlace = (x) => x0 + ((x - left) / (right - left)) * (x1 - x0);
  const frame = { svg, left, right, top, bottom, width, height, toX, toY, toPlace };
  drawValueAxis(frame, options);
  drawPlaceAxis(frame, options);
  box.replaceChildren(svg);
  return frame;
}

function drawValueAxis(frame, options) {
  for (const tick of numberTicks(options.y[0], options.y[1], options.rows || 4)) {
    const y = frame.toY(tick).toFixed(1);
    make("path", { class: "grid", d: "M" + frame.left + " " + y + "H" + frame.right }, frame.svg);
    make("text", { class: "tick", x: frame.left - 6, y, dy: "0.32em", "text-anchor": "end" }, frame.svg, showNumber(tick));
  }
}

function drawPlaceAxis(frame, options) {
  make("path", { class: "base", d: "M" + frame.left + " " + frame.bottom + "H" + frame.right }, frame.svg);
  const count = Math.max(2, Math.floor((frame.right - frame.left) / (options.spacing || 90)));
  for (const tick of placeTicks(options.x[0], options.x[1], count)) {
    const x = frame.toX(tick.place);
    make("path", { class: "base", d: "M" + x.toFixed(1) + " " + frame.bottom + "v4" }, frame.svg);
    const anchor = x > frame.right - 24 ? "end" : x < frame.left + 14 ? "start" : "middle";
    make("text", { class: "tick", x: x.toFixed(1), y: frame.bottom + 16, "text-anchor": anchor }, frame.svg, tick.label);
    if (tick.below) {
      make("text", { class: "tick faint", x: x.toFixed(1), y: frame.bottom + 30, "text-anchor": anchor }, frame.svg, tick.below);
    }
  }
}

// A line through the points from index `from` to before `to`; of points in one column of pixels only the first, the
// lowest, the highest and the last. It stops at NaN and at each index in `begins`.
function linePath(frame, places, values, begins, from, to) {
  const parts = [];
  let column = null, pen = false;
  const flush = () => {
    if (!column) return;
    const inner = column.lowAt < column.highAt ? [column.low, column.high] : [column.high, column.low];
    for (const y of new Set([column.first, ...inner, column.last])) {
      parts.push((pen ? "L" : "M") + column.x + " " + y.toFixed(1));
      pen = true;
    }
    column = null;
  };
  for (let i = from; i < to; i++) {
    if (begins.has(i) || Number.isNaN(values[i])) {
      flush();
      if (pen) parts.push("h0.01"); // a lone point is seen as a dot
      pen = false;
      if (Number.isNaN(values[i])) continue;
    }
    const x = frame.toX(places[i]).toFixed(1), y = frame.toY(values[i]);
    if (column && column.x !== x) flush();
    if (!column) column = { x, first: y, low: y, high: y, lowAt: i, highAt: i };
    if (y < column.high) Object.assign(column, { high: y, highAt: i });
    if (y > column.low) Object.assign(column, { low: y, lowAt: i });
    column.last = y;
  }
  flush();
  if (pen) parts.push("h0.01");
  return parts.join("");
}

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

// Where a pointer is inside a drawing, in the drawing's own units.
function pointIn(svg, event) {
  const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
  return { x: ((event.clientX - box.left) / box.width) * view.width, y: ((event.clientY - box.top) / box.height) * view.height };
}

function extentOf(list) {
  let low = Infinity, high = -Infinity;
  for (const values of list) {
    for (const value of values) {
      if (value < low) low = value;
      if (value > high) high = value;
    }
  }
  return low <= high ? [low, high] : [0, 1];
}
