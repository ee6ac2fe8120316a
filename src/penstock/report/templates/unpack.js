// Arrays as Python packs them (`penstock.report.axis`). Shared by every page.
//
//   unpackPlaces(level.places), unpackCurve(sensor.curve)   typed arrays for a chart

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
  if (packed.numbers) return new Float32Array(bytesOf(packed.numbers).buffer);
  const steps = new Uint16Array(bytesOf(packed.data).buffer), values = new Float64Array(steps.length);
  const share = 1 / 65534;
  for (let i = 0; i < steps.length; i++) {
    const step = steps[i];
    values[i] = step === 65535 ? NaN : packed.low * (1 - step * share) + packed.high * step * share;
  }
  return values;
}
