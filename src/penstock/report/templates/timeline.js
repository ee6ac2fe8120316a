// The score over time: zoom by drag, Ctrl and wheel, pinch and keys; point at a row to read it.

function startTimeline(box) {
  const record = data.timeline;
  const places = unpackPlaces(record.places), scores = unpackNumbers(record.scores);
  const begins = new Set(record.begins);
  const eventAt = new Map(record.marked[0].map((index, i) => [index, record.marked[1][i]]));
  const edge = (record.extent[1] - record.extent[0]) * 0.008 || 1; // so that the first and last row are seen
  const whole = [record.extent[0] - edge, record.extent[1] + edge];
  const buttons = ["zoom-in", "zoom-out", "zoom-reset"].map((id) => document.getElementById(id));
  const least = (whole[1] - whole[0]) / Math.max(4, record.rows / 4);
  let view = whole.slice(), frame = null, pointers = new Map(), drag = null, pinch = null;
  if (!places.length) return { draw: () => {} };

  function draw() {
    const width = widthOf(box, 900), narrow = width < 560;
    const from = Math.max(0, firstAt(places, view[0]) - 1), to = Math.min(places.length, firstAt(places, view[1]) + 2);
    let highest = Math.max(record.threshold || 0, 0), lowest = Math.min(record.threshold || 0, 0); // scores may be below 0
    for (let i = from; i < to; i++) {
      if (scores[i] > highest) highest = scores[i];
      if (scores[i] < lowest) lowest = scores[i];
    }
    const margin = (highest - lowest) * 0.06;
    frame = makeFrame(box, {
      width, height: narrow ? 260 : 320, left: narrow ? 44 : 56, right: 10, top: 34, bottom: 38,
      x: view, y: [lowest && lowest - margin, highest + margin || 1], rows: 5,
    });
    const svg = frame.svg;
    const clip = make("clipPath", { id: "timeline-clip" }, make("defs", {}, svg));
    make("rect", { x: frame.left, y: 0, width: frame.right - frame.left, height: frame.bottom + 1 }, clip);
    const layer = make("g", { "clip-path": "url(#timeline-clip)" }, svg);
    drawEvents(layer);
    make("path", { class: "line-score", d: linePath(frame, places, scores, begins, from, to) }, layer);
    if (record.threshold !== null) {
      const y = frame.toY(record.threshold).toFixed(1);
      make("path", { class: "line-threshold", d: "M" + frame.left + " " + y + "H" + frame.right }, layer);
    }
    drawFindings(layer, from, to);
    make("text", { class: "axis-name", x: frame.left - 6, y: frame.top - 8, "text-anchor": "end" }, svg, "score");
    make("path", { class: "cross", d: "" }, svg);
    make("circle", { class: "cross-dot", r: 5, cx: -20, cy: -20 }, svg);
    make("rect", { class: "selection", x: 0, y: frame.top, width: 0, height: frame.bottom - frame.top }, svg);
    const all = view[0] <= whole[0] && view[1] >= whole[1];
    buttons[0].disabled = view[1] - view[0] <= least * 1.01;
    buttons[1].disabled = buttons[2].disabled = all;
    box.dataset.from = view[0];
    box.dataset.to = view[1];
  }

  // A band for each event, a mark above its start; the most severe are numbered where there is room.
  function drawEvents(layer) {
    const taken = [];
    const shown = record.events.filter((event) => event[2] >= view[0] && event[1] <= view[1]);
    shown.sort((a, b) => a[3] - b[3]);
    for (const [number, first, last] of shown) {
      const x = frame.toX(first), width = Math.max(2, frame.toX(last) - x);
      make("rect", { class: "band-event", x: (x - 0.5).toFixed(1), y: frame.top - 6, width: width.toFixed(1), height: frame.bottom - frame.top + 6 }, layer);
      const at = frame.toX(Math.max(first, view[0]));
      const link = make("a", { href: "#event-" + number, tabindex: "-1", "data-event": number }, layer);
      make("path", { class: "mark-event", d: "M" + (at - 4).toFixed(1) + " " + (frame.top - 14) + "h8l-4 7z" }, link);
      const half = 5 + 3.6 * String(number).length;
      if (at - half > frame.left && taken.every((other) => Math.abs(other[0] - at) > other[1] + half)) {
        make("text", { class: "mark-number", x: at.toFixed(1), y: frame.top - 18, "text-anchor": "middle" }, link, String(number));
        taken.push([at, half]);
      }
    }
  }

  function drawFindings(layer, from, to) {
    const dots = [];
    for (const index of eventAt.keys()) {
      if (index < from || index >= to) continue;
      dots.push("M" + frame.toX(places[index]).toFixed(1) + " " + frame.toY(scores[index]).toFixed(1) + "h0.01");
    }
    make("path", { class: "dots-finding", d: dots.join("") }, layer);
  }

  function show(from, to) {
    let width = Math.min(Math.max(to - from, least), whole[1] - whole[0]);
    const start = Math.min(Math.max(from, whole[0]), whole[1] - width);
    view = [start, start + width];
    hide();
    draw();
  }

  function zoom(factor, place) {
    show(place - (place - view[0]) * factor, place + (view[1] - place) * factor);
  }

  const middle = () => (view[0] + view[1]) / 2;

  function point(event) {
    const at = pointIn(frame.svg, event);
    if (at.x < frame.left - 4 || at.x > frame.right + 4) return hide();
    const index = nearestAt(places, frame.toPlace(at.x));
    const x = frame.toX(places[index]).toFixed(1);
    frame.svg.querySelector(".cross").setAttribute("d", "M" + x + " " + frame.top + "V" + frame.bottom);
    const dot = frame.svg.querySelector(".cross-dot");
    dot.setAttribute("cx", x);
    dot.setAttribute("cy", frame.toY(scores[index]).toFixed(1));
    const lines = [showPlace(places[index]), "score " + showNumber(scores[index])];
    const own = eventAt.get(index);
    if (own) lines.push("finding, event " + own);
    showTip(lines, event.clientX, event.clientY);
  }

  function hide() {
    hideTip();
    if (!frame) return;
    frame.svg.querySelector(".cross").setAttribute("d", "");
    frame.svg.querySelector(".cross-dot").setAttribute("cx", -20);
  }

  box.addEventListener("pointerdown", (event) => {
    if (event.pointerType === "mouse" && event.button !== 0) return;
    pointers.set(event.pointerId, event);
    if (pointers.size === 2) {
      const [a, b] = [...pointers.values()].map((each) => pointIn(frame.svg, each).x);
      pinch = { from: frame.toPlace(Math.min(a, b)), to: frame.toPlace(Math.max(a, b)) };
      drag = null;
    } else drag = { start: pointIn(frame.svg, event).x, moved: false, link: event.target.closest("a") };
  });
  box.addEventListener("pointermove", (event) => {
    if (pointers.has(event.pointerId)) pointers.set(event.pointerId, event);
    if (pinch && pointers.size === 2) return pinchTo();
    if (!drag) return point(event);
    const x = Math.min(Math.max(pointIn(frame.svg, event).x, frame.left), frame.right);
    if (!drag.moved && Math.abs(x - drag.start) < 5) return;
    if (!drag.moved) box.setPointerCapture(event.pointerId);
    drag.moved = true;
    drag.end = x;
    hide();
    const selection = frame.svg.querySelector(".selection");
    selection.setAttribute("x", Math.min(x, drag.start));
    selection.setAttribute("width", Math.abs(x - drag.start));
  });

  function pinchTo() {
    const [a, b] = [...pointers.values()].map((each) => pointIn(frame.svg, each).x).sort((c, d) => c - d);
    const perPixel = (pinch.to - pinch.from) / Math.max(8, b - a);
    const from = pinch.from - (a - frame.left) * perPixel;
    show(from, from + (frame.right - frame.left) * perPixel);
  }

  function release(event) {
    pointers.delete(event.pointerId);
    if (pinch) {
      if (pointers.size === 0) pinch = null;
      drag = null;
      return;
    }
    const done = drag;
    drag = null;
    if (done && done.moved && event.type === "pointerup") {
      const ends = [done.start, done.end].map((x) => frame.toPlace(x)).sort((a, b) => a - b);
      show(ends[0], ends[1]);
    } else if (done) frame.svg.querySelector(".selection").setAttribute("width", 0);
  }
  box.addEventListener("pointerup", release);
  box.addEventListener("pointercancel", release);
  box.addEventListener("pointerleave", hide);

  // The wheel alone scrolls the page, as everywhere else; a pinch on a touchpad arrives as a wheel event with ctrlKey.
  box.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const x = Math.min(Math.max(pointIn(frame.svg, event).x, frame.left), frame.right);
    zoom(event.deltaY > 0 ? 1.25 : 0.8, frame.toPlace(x));
  }, { passive: false });

  box.addEventListener("keydown", (event) => {
    const width = view[1] - view[0];
    const actions = {
      "+": () => zoom(0.6, middle()), "=": () => zoom(0.6, middle()), "-": () => zoom(1 / 0.6, middle()),
      ArrowLeft: () => show(view[0] - width / 5, view[1] - width / 5),
      ArrowRight: () => show(view[0] + width / 5, view[1] + width / 5),
      0: () => show(whole[0], whole[1]), Escape: () => show(whole[0], whole[1]),
    };
    if (!actions[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    actions[event.key]();
  });
  buttons[0].addEventListener("click", () => zoom(0.5, middle()));
  buttons[1].addEventListener("click", () => zoom(2, middle()));
  buttons[2].addEventListener("click", () => show(whole[0], whole[1]));
  return { draw };
}
