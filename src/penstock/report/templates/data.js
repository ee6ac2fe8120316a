// What Python packed into the page, unpacked when it is first needed.

const data = JSON.parse(document.getElementById("data").textContent);
const clock = new Clock(data.axis);
const calm = window.matchMedia("(prefers-reduced-motion: reduce)");

const levels = data.explorer.levels.map((level) => ({ packed: level, places: null, begins: level.begins }));

function levelAt(number) {
  const level = levels[number];
  if (!level.places) level.places = unpackPlaces(level.packed.places);
  return level;
}

// The readings of a sensor over the whole time, by its number.
const curves = new Map();

function curveOf(column) {
  if (!curves.has(column)) {
    const sensor = data.explorer.sensors[column], { places, begins } = levelAt(sensor.level);
    curves.set(column, { places, begins, values: unpackCurve(sensor.curve) });
  }
  return curves.get(column);
}
