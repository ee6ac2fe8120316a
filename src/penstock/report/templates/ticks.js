// Round numbers and round times for the axes.

const SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR;
const TIME_STEPS = [1, 2, 5, 10, 20, 50, 100, 200, 500]
  .concat([1, 2, 5, 10, 15, 30].map((n) => n * SECOND))
  .concat([1, 2, 5, 10, 15, 30].map((n) => n * MINUTE))
  .concat([1, 2, 3, 6, 12].map((n) => n * HOUR))
  .concat([1, 2, 7, 14].map((n) => n * DAY));
const MONTH_STEPS = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200, 2400, 6000];

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

// Places with a label each, and a second line where the day or year is new.
function placeTicks(low, high, count) {
  if (axis.origin === null) {
    return numberTicks(low, high, count, true).map((place) => ({ place, label: showNumber(place), below: "" }));
  }
  const span = high - low;
  const step = TIME_STEPS.find((each) => span / each <= count);
  const ticks = step ? clockTicks(low, high, step) : monthTicks(low, high, count);
  let before = null;
  for (const tick of ticks) {
    if (tick.below === before) tick.below = "";
    else before = tick.below;
  }
  return ticks;
}

function clockTicks(low, high, step) {
  const start = clockAt(low).getTime(), end = clockAt(high).getTime();
  // Weeks begin on Mondays: 5 January 1970 was one.
  const from = step >= 7 * DAY ? 4 * DAY : 0;
  const ticks = [];
  for (let clock = from + Math.ceil((start - from) / step) * step; clock <= end; clock += step) {
    const date = new Date(clock), place = placeOf(clock);
    if (place < low || place > high) continue;
    const days = date.getUTCDate() + " " + MONTHS[date.getUTCMonth()];
    ticks.push(step >= DAY
      ? { place, label: days, below: String(date.getUTCFullYear()) }
      : { place, label: showClock(date), below: days + " " + date.getUTCFullYear() });
  }
  return ticks;
}

function monthTicks(low, high, count) {
  const first = clockAt(low), last = clockAt(high);
  const from = first.getUTCFullYear() * 12 + first.getUTCMonth();
  const until = last.getUTCFullYear() * 12 + last.getUTCMonth();
  const step = MONTH_STEPS.find((each) => (until - from) / each <= count) || 12000;
  const ticks = [];
  for (let month = Math.ceil(from / step) * step; month <= until; month += step) {
    const date = new Date(0);
    date.setUTCFullYear(Math.floor(month / 12), month % 12, 1);
    const place = placeOf(date.getTime());
    if (place < low || place > high) continue;
    const year = String(date.getUTCFullYear());
    ticks.push(step >= 12 ? { place, label: year, below: "" } : { place, label: MONTHS[date.getUTCMonth()], below: year });
  }
  return ticks;
}
