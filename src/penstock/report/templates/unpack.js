// Arrays as Python packs them (`penstock.report.axis`). Shared by every page.
//
//   unpackPlaces(level.places), unpackCurve(sensor.curve)   typed arrays for a chart

function bytesOf(text) {
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

function unpackNumbers(text) {
  return new Float32Array(bytesOf(text).buffer);
}

function unpackPlaces(packed) {
  const steps = new Uint32Array(bytesOf(packed.data).buffer);
  return Float64Array.from(steps, (step) => packed.first + packed.step * step);
}

function unpackCurve(packed) {
  if (packed.numbers) return unpackNumbers(packed.numbers);
  if (packed.deltas) return unpackDeltas(packed);
  const steps = new Uint16Array(bytesOf(packed.data).buffer), values = new Float64Array(steps.length);
  const share = 1 / 65534;
  for (let i = 0; i < steps.length; i++) {
    const step = steps[i];
    values[i] = step === 65535 ? NaN : packed.low * (1 - step * share) + packed.high * step * share;
  }
  return values;
}

// A byte is the difference from the step before plus 127; 254: missing; 255: a step of 16 bits follows.
function unpackDeltas(packed) {
  const bytes = bytesOf(packed.deltas), values = new Float64Array(packed.count), share = 1 / packed.steps;
  for (let i = 0, at = 0, step = 0; i < values.length; i++) {
    const byte = bytes[at++];
    if (byte === 255) {
      step = bytes[at] + 256 * bytes[at + 1];
      at += 2;
    } else if (byte < 254) step += byte - 127;
    values[i] = byte === 254 ? NaN : packed.low * (1 - step * share) + packed.high * step * share;
  }
  return values;
}
