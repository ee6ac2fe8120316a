// What Python packed, unpacked; numbers and times as people write them; elements.

const data = JSON.parse(document.getElementById("data").textContent);
const axis = data.axis;
const charts = {}; // by the id of its element, what starts a chart; each adds itself
const SVG = "http://www.w3.org/2000/svg";
const MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");

function bytesOf(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

function unpackPlaces(packed) {
  const steps = new Uint32Array(bytesOf(packed.data).buffer);
  return Float64Array.from(steps, (step) => packed.first + packed.step * step);
}

function unpackCurve(packed) {
  const steps = new Uint16Array(bytesOf(packed.data).buffer);
  const share = 1 / 65534;
  return Float64Array.from(steps, (step) =>
    step === 65535 ? NaN : packed.low * (1 - step * share) + packed.high * step * share);
}

function unpackNumbers(text) {
  return new Float32Array(bytesOf(text).buffer);
}

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

function two(number) {
  return String(number).padStart(2, "0");
}

// The clock of the table's zone at a place, as a Date whose UTC fields are that clock.
function clockAt(place) {
  let ahead = 0;
  for (const [from, offset] of axis.offsets) if (place >= from || from === axis.offsets[0][0]) ahead = offset;
  return new Date(axis.origin + place + ahead);
}

function placeOf(clock) {
  const guess = clock - axis.origin;
  const ahead = clockAt(guess) - axis.origin - guess;
  const better = guess - ahead;
  return better - (clockAt(better) - clock);
}

function showClock(date) {
  const text = two(date.getUTCHours()) + ":" + two(date.getUTCMinutes());
  const seconds = date.getUTCSeconds() + date.getUTCMilliseconds() / 1000;
  return seconds ? text + ":" + (seconds < 10 ? "0" : "") + String(Math.round(seconds * 1000) / 1000) : text;
}

function showDay(date) {
  return date.getUTCDate() + " " + MONTHS[date.getUTCMonth()] + " " + date.getUTCFullYear();
}

function showPlace(place) {
  if (axis.origin === null) return "row " + showNumber(Math.round(place));
  const date = clockAt(place);
  return showDay(date) + ", " + showClock(date);
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

function shorten(text, most) {
  const signs = Array.from(text);
  return signs.length <= most ? text : signs.slice(0, most - 1).join("") + "…";
}

const calm = window.matchMedia("(prefers-reduced-motion: reduce)");

// One tooltip for the whole page: lines of text, the first in bold.
const tip = document.getElementById("tip");

function showTip(lines, x, y) {
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
  tip.hidden = true;
}
