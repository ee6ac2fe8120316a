// A heat map, names × time, on a canvas that follows a TimeView. Shared by every page; knows nothing of reports.
//
//   const map = new HeatMap(element, view, { clock, full: 6, show: (value) => "3.2 times", label: "Sensors over time" });
//   map.set({ names: ["flow"], edges: Float64Array (m + 1), cells: Int8Array (names × m) });
//
// A cell is −126 … 126 steps of `full`, the value with the strongest colour; what is beyond has that colour too. −128
// means no reading, −127 nothing to compare it with. Colours go evenly from --below over --heat-middle to --above, and the
// legend shows the same colours at their true values. `names` are drawn into the left margin of the chart.

const ROW = 18;

class HeatMap {
  constructor(box, view, options) {
    this.box = box;
    this.view = view;
    this.options = { left: 56, right: 10, full: 1, ...options };
    this.data = null;
    this.canvas = make("canvas", { "aria-hidden": "true" }, box);
    Object.assign(this.canvas.style, { display: "block", width: "100%" });
    if (this.options.label) {
      box.setAttribute("role", "img");
      box.setAttribute("aria-label", this.options.label);
    }
    this.stop = view.follow((changed) => changed.range && this.draw());
    this.sizes = new ResizeObserver(() => {
      if (this.box.clientWidth && this.width !== this.box.clientWidth) this.draw();
    });
    this.sizes.observe(box);
    box.addEventListener("pointermove", (event) => this.hover(event));
    box.addEventListener("pointerleave", () => {
      view.pointAt(null);
      hideTip();
    });
  }

  set(data) {
    this.data = data;
    this.draw();
  }

  remove() {
    this.stop();
    this.sizes.disconnect();
    this.box.replaceChildren();
  }

  get height() {
    return this.data ? this.data.names.length * ROW : 0;
  }

  draw() {
    const paper = TimeChart.paper, width = paper ? paper.width : this.box.clientWidth;
    if (!width || !this.data) return;
    const scale = paper ? paper.scale : devicePixelRatio, narrow = width < 560;
    this.width = width;
    this.left = narrow ? Math.min(this.options.left, 110) : this.options.left;
    this.right = width - this.options.right;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(this.height * scale);
    this.canvas.style.height = this.box.style.height = this.height + "px";
    const context = this.canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    context.font = FONT;
    const { names, edges, cells } = this.data, m = edges.length - 1, [x0, x1] = this.view.range;
    const toX = (place) => this.left + ((place - x0) / (x1 - x0 || 1)) * (this.right - this.left);
    const colors = heatColors(), missing = colorOf("--missing");
    const first = Math.max(0, firstAt(edges, x0) - 1), last = Math.min(m, firstAt(edges, x1) + 1);
    for (let b = first; b < last; b++) {
      const from = Math.max(this.left, toX(edges[b])), to = Math.min(this.right, toX(edges[b + 1]));
      if (to <= from) continue;
      for (let row = 0; row < names.length; row++) {
        const step = cells[row * m + b];
        context.fillStyle = step < -126 ? missing : colors[step + 126];
        context.fillRect(from, row * ROW, to - from + 0.35, ROW - 1);
      }
    }
    context.fillStyle = colorOf("--ink");
    context.textAlign = "right";
    context.textBaseline = "middle";
    names.forEach((name, row) => context.fillText(fitText(context, name, this.left - 10), this.left - 6, row * ROW + ROW / 2));
  }

  hover(event) {
    if (!this.data || !this.width) return;
    const box = this.box.getBoundingClientRect(), x = event.clientX - box.left;
    const row = Math.floor((event.clientY - box.top) / ROW), { names, edges, cells } = this.data, m = edges.length - 1;
    if (row < 0 || row >= names.length) return hideTip();
    if (x < this.left) return showTip([names[row]], event.clientX, event.clientY);
    const [x0, x1] = this.view.range, place = x0 + ((x - this.left) / (this.right - this.left)) * (x1 - x0);
    const bin = Math.min(m - 1, Math.max(0, firstAt(edges, place) - 1)), step = cells[row * m + bin];
    this.view.pointAt(place);
    const beyond = Math.abs(step) === 126 ? "at least " : "";
    const words = step === -128 ? "no reading" : step === -127 ? "nothing to compare it with"
      : beyond + this.options.show((step / 126) * this.options.full, row);
    showTip([names[row], this.options.clock.show(edges[bin]), words], event.clientX, event.clientY);
  }
}

function rgbOf(name) {
  return colorOf(name).match(/[\da-f]{2}/gi).map((part) => parseInt(part, 16));
}

// The 253 colours of the steps −126 … 126: an even mixture.
function heatColors() {
  const below = rgbOf("--below"), middle = rgbOf("--heat-middle"), above = rgbOf("--above");
  return Array.from({ length: 253 }, (_, i) => {
    const share = Math.abs(i - 126) / 126, end = i < 126 ? below : above;
    return "rgb(" + middle.map((part, k) => Math.round(part + (end[k] - part) * share)).join(",") + ")";
  });
}

// The legend: a bar of all colours from −full to full with numbers at their true places, in words what they count.
function drawHeatLegend(box, words) {
  box.replaceChildren();
  const holder = make("div", { class: "heat-bar" }, box);
  const bar = make("canvas", { width: 253, height: 1 }, holder), context = bar.getContext("2d");
  heatColors().forEach((color, i) => {
    context.fillStyle = color;
    context.fillRect(i, 0, 1, 1);
  });
  const scale = make("div", { class: "heat-scale" }, holder);
  words.ticks.forEach((text) => make("span", {}, scale, text));
  make("span", {}, box, words.unit);
  make("span", { class: "chip none" }, box);
  make("span", {}, box, words.missing);
}
