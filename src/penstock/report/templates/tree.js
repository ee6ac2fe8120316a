// The spanning tree: lines between rows that are alike, findings marked, time and score of a row on pointing at it.

function startTree(box) {
  const record = data.trees[Number(box.dataset.tree)];
  const steps = new Uint16Array(bytesOf(record.positions).buffer), edges = new Uint16Array(bytesOf(record.edges).buffer);
  const scores = unpackNumbers(record.scores), count = scores.length;
  let points = [], svg = null;

  function draw() {
    const width = Math.round(box.clientWidth || 900), margin = 14;
    const [x0, x1] = extentOf([steps.filter((_, i) => i % 2 === 0)]), [y0, y1] = extentOf([steps.filter((_, i) => i % 2)]);
    const natural = ((width - 2 * margin) * (y1 - y0)) / (x1 - x0 || 1) + 2 * margin;
    const height = Math.round(Math.min(Math.max(natural, 160), 680));
    const scale = Math.min((width - 2 * margin) / (x1 - x0 || 1), (height - 2 * margin) / (y1 - y0 || 1));
    const left = (width - (x1 - x0) * scale) / 2, top = (height - (y1 - y0) * scale) / 2;
    points = Array.from({ length: count }, (_, i) => [left + (steps[2 * i] - x0) * scale, top + (steps[2 * i + 1] - y0) * scale]);
    svg = make("svg", { viewBox: "0 0 " + width + " " + height, class: "chart", "aria-hidden": "true" });
    const text = (i) => points[i][0].toFixed(1) + " " + points[i][1].toFixed(1);
    let lines = "", dots = "";
    for (let i = 0; i < edges.length; i += 2) lines += "M" + text(edges[i]) + "L" + text(edges[i + 1]);
    for (let i = 0; i < count; i++) if (!record.events[i]) dots += "M" + text(i) + "h0.01";
    make("path", { class: "tree-line", d: lines }, svg);
    make("path", { class: "tree-dots", d: dots }, svg);
    for (let i = 0; i < count; i++) {
      if (!record.events[i]) continue;
      const [x, y] = points[i];
      make("path", { class: "tree-finding", d: "M" + (x - 4.5).toFixed(1) + " " + (y + 3.5).toFixed(1) + "h9l-4.5 -8z" }, svg);
    }
    make("circle", { class: "cross-dot", r: 7, cx: -20, cy: -20 }, svg);
    box.replaceChildren(svg);
  }

  function nearest(event) {
    const at = pointIn(svg, event);
    let best = -1, least = 24 * 24;
    for (let i = 0; i < count; i++) {
      // Findings are reached from a little farther away.
      const distance = ((points[i][0] - at.x) ** 2 + (points[i][1] - at.y) ** 2) * (record.events[i] ? 0.6 : 1);
      if (distance < least) [best, least] = [i, distance];
    }
    return best;
  }

  box.addEventListener("pointermove", (event) => {
    const i = nearest(event), ring = svg.querySelector(".cross-dot");
    ring.setAttribute("cx", i < 0 ? -20 : points[i][0]);
    ring.setAttribute("cy", i < 0 ? -20 : points[i][1]);
    if (i < 0) return hideTip();
    const lines = [clock.show(record.places[i]), "score " + showNumber(scores[i])];
    if (record.events[i]) lines.push("finding");
    if (record.weights[i] > 1) lines.push("stands for " + showNumber(record.weights[i]) + " rows alike");
    showTip(lines, event.clientX, event.clientY);
  });
  box.addEventListener("pointerleave", () => {
    svg.querySelector(".cross-dot").setAttribute("cx", -20);
    hideTip();
  });
  const holder = box.closest("details");
  if (holder) holder.addEventListener("toggle", draw);
  return { draw };
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

// Where a pointer is inside a drawing, in the drawing's own units.
function pointIn(svg, event) {
  const box = svg.getBoundingClientRect(), view = svg.viewBox.baseVal;
  return { x: ((event.clientX - box.left) / box.width) * view.width, y: ((event.clientY - box.top) / box.height) * view.height };
}
