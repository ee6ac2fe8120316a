// The horizontal range and the cursor that several charts share. Shared by every page; knows nothing of data.
//
//   const view = new TimeView([first, last], { least: 1000 });   all of it is shown; no zoom below `least`
//   view.follow(listener)          listener({range, cursor}) once a frame after changes; returns a function that stops it
//   view.show(from, to), view.zoom(factor, place), view.pan(share), view.reset()
//   view.pointAt(place)            the cursor; null for none
//   view.extend([first, last])     more data; a view that showed all of it, or its end, goes on doing so

class TimeView {
  constructor(extent, { least = 0 } = {}) {
    this.extent = extent.slice();
    this.range = extent.slice();
    this.least = least;
    this.cursor = null;
    this.listeners = new Set();
    this.changed = null;
  }

  get isWhole() {
    return this.range[0] <= this.extent[0] && this.range[1] >= this.extent[1];
  }

  follow(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  show(from, to) {
    const [first, last] = this.extent;
    const width = Math.min(Math.max(to - from, this.least), last - first);
    const middle = (from + to) / 2;
    const start = Math.min(Math.max(to - from < this.least ? middle - width / 2 : from, first), last - width);
    if (start === this.range[0] && start + width === this.range[1]) return;
    this.range = [start, start + width];
    this.tell("range");
  }

  zoom(factor, place = (this.range[0] + this.range[1]) / 2) {
    this.show(place - (place - this.range[0]) * factor, place + (this.range[1] - place) * factor);
  }

  pan(share) {
    const by = (this.range[1] - this.range[0]) * share;
    this.show(this.range[0] + by, this.range[1] + by);
  }

  reset() {
    this.show(this.extent[0], this.extent[1]);
  }

  extend(extent) {
    const whole = this.isWhole, atEnd = this.range[1] >= this.extent[1], width = this.range[1] - this.range[0];
    this.extent = extent.slice();
    if (whole) this.range = extent.slice();
    else if (atEnd) this.range = [extent[1] - width, extent[1]];
    this.tell("range");
  }

  pointAt(place) {
    if (place === this.cursor) return;
    this.cursor = place;
    this.tell("cursor");
  }

  tell(kind) {
    if (!this.changed) {
      this.changed = { range: false, cursor: false };
      requestAnimationFrame(() => this.flush());
    }
    this.changed[kind] = true;
  }

  // Tells all listeners now what has changed.
  flush() {
    const changed = this.changed;
    this.changed = null;
    if (changed) for (const listener of this.listeners) listener(changed);
  }
}
