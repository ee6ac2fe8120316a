// The score of all rows over time, with incidents, gaps, modes and known faults. Shared by every page.
//
//   overviewView(data.overview)                                      the part of the time in view
//   overviewContent(data.overview, places, begins, values, looks)    what a TimeChart shows; looks(number): of an incident

const LANE_COLORS = ["--m1", "--m2", "--m3", "--m4", "--m5", "--m6"];

function overviewView({ extent: [first, last], rows }) {
  const edge = (last - first) * 0.008 || 1; // so that the first and last row are seen
  return new TimeView([first - edge, last + edge], { least: Math.max((last - first) / Math.max(4, rows / 4), 0) });
}

function overviewContent(record, places, begins, values, looks) {
  return {
    series: [{ places, begins, values, color: "--blue", width: 1.1 }],
    levels: record.threshold === null ? [] : [{ value: record.threshold }],
    bands: record.cases.slice().sort((a, b) => a[3] - b[3]).map(([number, from, to]) => ({ from, to, label: String(number), key: number, ...looks(number) })),
    gaps: record.gaps.map(([from, to, label]) => ({ from, to, label })),
    lanes: record.lanes.map((lane) => ({
      name: lane.name,
      bands: lane.bands.map(([from, to, label, hue]) => ({
        from, to, label, color: hue < 0 ? "--missing" : lane.name === "faults" ? "--fault" : LANE_COLORS[hue % LANE_COLORS.length],
      })),
    })),
  };
}
