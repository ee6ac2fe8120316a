// Numbers, times and round ticks as people write them; small elements; colours of the page. Shared by every page.
//
//   showNumber(12345.678)            "12,346"; four significant digits, "–" for what is not a finite number
//   withUnit(3.25, "m³/s")           "3.25 m³/s"
//   numberTicks(0, 9, 4)             [0, 2, 4, 6, 8]
//   new Clock({origin, offsets})     places on the horizontal axis ↔ times of a wall clock, and ticks
//   make("p", {class: "x"}, parent, "text never read as markup")
//   colorOf("--blue")                a colour of the style sheet; forgetColors() when the scheme changes
//   showTip(["first line in bold", "second"], x, y), hideTip()   need an element with the id "tip"

const SVG = "http://www.w3.org/2000/svg";
const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const TIME_STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500]
  .concat([1, 2, 5, 10, 15, 30].map((n) => n * SECOND))
  .concat([1, 2, 5, 10, 15, 30].map((n) => n * MINUTE))
  .concat([1, 2, 3, 6, 12].map((n) => n * HOUR))
  .concat([1, 2, 7, 14].map((n) => n * DAY));
const MONTH_STEPS = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 2400, 6000];

// Four significant digits, all digits of whole numbers, thousands apart.
function showNumber(value) {
  if (value === null || !Number.isFinite(value)) return "–";
  const size = Math.abs(value);
  if (size && (size < 1e-4 || size >= 1e9)) {
    return String(Number(value.toExponential(3)).toExponential()).replace("e+", "e").replace(/-/g, "−");
  }
  const places = size ? Math.max(0, 3 - Math.floor(Math.log10(size))) : 0;
  const [whole, part] = Math.abs(Number(value.toFixed(places))).toString().split(".");
  const text = whole.replace(/\B(?=(\d{3})+$)/g, ",") + (part ? "." + part : "");
  return (value < 0 && Number(text.replace(/,/g, "")) !== 0 ? "−" : "") + text;
}

function withUnit(value, unit) {
  return unit && Number.isFinite(value) ? showNumber(value) + " " + unit : showNumber(value);
}

// The unit to write after a value that stands beside the name of its sensor: none if the name says it.
function unitBeside({ name, unit }) {
  return unit && ["[" + unit + "]", "(" + unit + ")", "/ " + unit].some((end) => name.endsWith(end)) ? "" : unit;
}


function two(number) {
  return String(number).padStart(2, "0");
}

function numberTicks(low, high, count, whole) {
  const rough = (high - low) / Math.max(1, count);
  if (!(rough > 0) || !Number.isFinite(rough)) return Number.isFinite(low) ? [low] : [];
  const power = Math.pow(10, Math.floor(Math.log10(rough)));
  let step = [1, 2, 5, 10].map((n) => n * power).find((n) => n >= rough * 0.999);
  if (whole) step = Math.max(1, Math.round(step));
  const ticks = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + step * 1e-9; i++) ticks.push(i * step + 0); // no −0
  return ticks;
}

function showClock(date) {
  const text = two(date.getUTCHours()) + ":" + two(date.getUTCMinutes());
  const seconds = date.getUTCSeconds() + date.getUTCMilliseconds() / 1000;
  return seconds ? text + ":" + (seconds < 10 ? "0" : "") + String(Math.round(seconds * 1000) / 1000) : text;
}

function showDay(date) {
  return date.getUTCDate() + " " + MONTHS[date.getUTCMonth()] + " " + date.getUTCFullYear();
}

// A length of time in its two largest units.
function showDuration(milliseconds) {
  const units = [["d", DAY], ["h", HOUR], ["min", MINUTE], ["s", SECOND]];
  const largest = units.findIndex(([, size]) => milliseconds >= size);
  if (largest < 0) return showNumber(milliseconds) + " ms";
  const parts = [];
  let rest = milliseconds;
  for (const [name, size] of units.slice(largest, largest + 2)) {
    const count = Math.floor(rest / size + 1e-9);
    if (count) parts.push(showNumber(count) + " " + name);
    rest -= count * size;
  }
  return parts.join(" ");
}

// Places are milliseconds from the first row, or row numbers (`origin` null). From each `offsets[i][0]` on the wall
// clock is `offsets[i][1]` ahead of origin + place: time zones, changes of the clocks, and gaps that are drawn narrow.
class Clock {
  constructor({ origin = null, offsets = [], zone = "", ordered = true }) {
    this.origin = origin;
    this.ordered = ordered; // false where groups that overlap in time are drawn one after the other
    this.offsets = offsets.length ? offsets : [[0, 0]];
    this.zone = zone;
  }

  ahead(place) {
    let low = 0, high = this.offsets.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.offsets[middle][0] <= place) low = middle;
      else high = middle - 1;
    }
    return this.offsets[low][1];
  }

  // The wall clock at a place, as a Date whose UTC fields are that clock.
  at(place) {
    return new Date(this.origin + place + this.ahead(place));
  }

  show(place) {
    if (this.origin === null) return "row " + showNumber(Math.round(place));
    const date = this.at(place);
    return showDay(date) + ", " + showClock(date);
  }

  // The time in ISO 8601 to the second, without a zone; the row number where there is no time.
  iso(place) {
    return this.origin === null ? String(Math.round(place)) : this.at(place).toISOString().slice(0, 19);
  }

  // A text for links that `parse` finds back: the time, or the place itself where times are not in order.
  mark(place) {
    return this.ordered ? this.iso(place) : "p" + Math.round(place);
  }

  // The place of such a text; in a gap, its end. NaN for what is none.
  parse(text) {
    if (!this.ordered) return /^p-?\d+$/.test(text) ? Number(text.slice(1)) : NaN;
    if (this.origin === null) return /^-?\d+$/.test(text) ? Number(text) : NaN;
    const clock = Date.parse(/T/.test(text) ? text + "Z" : text + "T00:00:00Z");
    if (Number.isNaN(clock)) return NaN;
    let found = NaN;
    this.offsets.forEach(([from, ahead], i) => {
      const place = clock - this.origin - ahead;
      const until = i + 1 < this.offsets.length ? this.offsets[i + 1][0] : Infinity;
      if (Number.isNaN(found) && (place < until || until === Infinity)) found = i ? Math.max(place, from) : place;
    });
    return found;
  }

  // About `count` places from low to high with a label each, and a second line where the day or year is new.
  ticks(low, high, count) {
    if (this.origin === null) {
      return numberTicks(low, high, count, true).map((place) => ({ place, label: showNumber(place), below: "" }));
    }
    const span = high - low, step = TIME_STEPS.find((each) => span / each <= count);
    const ticks = [];
    this.offsets.forEach(([from, ahead], i) => {
      const until = i + 1 < this.offsets.length ? this.offsets[i + 1][0] : Infinity;
      const start = Math.max(low, i ? from : -Infinity), end = Math.min(high, until);
      if (start >= end) return;
      const shift = this.origin + ahead;
      if (step) clockTicks(ticks, start, end, step, shift);
      else monthTicks(ticks, start, end, Math.max(1, span / count / (30.4 * DAY)), shift);
    });
    const kept = ticks.filter((tick, i) => i === 0 || tick.place - ticks[i - 1].place > span / count / 3 || tick.major);
    let before = null;
    for (const tick of kept) {
      if (tick.below === before) tick.below = "";
      else before = tick.below;
    }
    return kept;
  }
}

function clockTicks(ticks, low, high, step, shift) {
  const from = step >= 7 * DAY ? 4 * DAY : 0; // weeks begin on Mondays: 5 January 1970 was one
  for (let clock = from + Math.ceil((low + shift - from) / step) * step; clock <= high + shift; clock += step) {
    const date = new Date(clock), days = date.getUTCDate() + " " + MONTHS[date.getUTCMonth()];
    ticks.push(step >= DAY
      ? { place: clock - shift, label: days, below: String(date.getUTCFullYear()) }
      : { place: clock - shift, label: showClock(date), below: days + " " + date.getUTCFullYear() });
  }
}

function monthTicks(ticks, low, high, months, shift) {
  const step = MONTH_STEPS.find((each) => each >= months) || 12000;
  const first = new Date(low + shift), last = new Date(high + shift);
  const until = last.getUTCFullYear() * 12 + last.getUTCMonth();
  for (let month = Math.ceil((first.getUTCFullYear() * 12 + first.getUTCMonth()) / step) * step; month <= until; month += step) {
    const date = new Date(0);
    date.setUTCFullYear(Math.floor(month / 12), month % 12, 1);
    const place = date.getTime() - shift, year = String(date.getUTCFullYear());
    if (place < low || place > high) continue;
    ticks.push(step >= 12 ? { place, label: year, below: "" } : { place, label: MONTHS[date.getUTCMonth()], below: year });
  }
}

// An element; attributes as a map, texts never as markup.
function make(tag, attributes, parent, text) {
  const isDrawn = parent instanceof SVGElement || tag === "svg";
  const element = isDrawn ? document.createElementNS(SVG, tag) : document.createElement(tag);
  for (const name in attributes) element.setAttribute(name, attributes[name]);
  if (text !== undefined) element.textContent = text;
  if (parent) parent.appendChild(element);
  return element;
}

const knownColors = new Map();

function colorOf(name) {
  if (!name.startsWith("--")) return name;
  if (!knownColors.has(name)) {
    knownColors.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  }
  return knownColors.get(name);
}

function forgetColors() {
  knownColors.clear();
}

// One tooltip for the whole page: lines of text, the first in bold.
function showTip(lines, x, y) {
  const tip = document.getElementById("tip");
  tip.replaceChildren();
  lines.forEach((line, i) => make("bdi", { class: i ? "line" : "line first" }, tip, line));
  tip.hidden = false;
  const box = tip.getBoundingClientRect();
  const left = Math.min(Math.max(8, x + 14), document.documentElement.clientWidth - box.width - 8);
  const above = y - box.height - 14;
  tip.style.left = Math.max(8, left) + "px";
  tip.style.top = (above > 8 ? above : y + 18) + "px";
}

function hideTip() {
  document.getElementById("tip").hidden = true;
}
