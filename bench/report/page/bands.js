// What is stacked, from the bottom, and in which colour; names of bytes, times and units.
const BANDS = report.bands.map(({ name, color }) => ({ name, color, tag: report.tags.indexOf(name), set: /^(parameter|gradient)_full/.test(name) }));
const RESIDENTS = ["parameter_shard", "gradient_shard", "optimizer_state"];
const PENDING_BAND = { name: "freed, pending", color: "#7b8794", tag: PENDING, set: false, hatched: true };
const bandOfTag = (tag) => (tag === PENDING ? PENDING_BAND : BANDS.find((band) => band.tag === tag));

const operationKinds = report.operation_kinds.map((kind) => report.kinds[kind]);

const SIZES = ["B", "KiB", "MiB", "GiB", "TiB"];
/** Three or four digits and a unit. */
function bytesText(bytes) {
  let value = bytes, size = 0;
  while (value >= 1024 && size + 1 < SIZES.length) { value /= 1024; ++size; }
  return size === 0 ? `${bytes} B` : `${d3.format(value >= 1000 ? ",.0f" : ".1f")(value)} ${SIZES[size]}`;
}
const exact = d3.format(",");

/** A linear scale's ticks at multiples of a power of two, in the unit that suits the largest. */
function byteTicks(maximum, count) {
  const size = Math.min(SIZES.length - 1, Math.max(0, Math.floor(Math.log2(Math.max(1, maximum)) / 10)));
  const unit = 1024 ** size, ticks = d3.ticks(0, maximum / unit, count);
  return { values: ticks.map((tick) => tick * unit), text: (bytes) => d3.format(",~r")(+(bytes / unit).toPrecision(6)), unit: SIZES[size] };
}

function timeText(ms) {
  if (Math.abs(ms) >= 1000) return `${d3.format(".3f")(ms / 1000)} s`;
  return Math.abs(ms) >= 1 ? `${d3.format(".3f")(ms)} ms` : `${d3.format(".1f")(ms * 1000)} µs`;
}

/** "h.0 … h.5, h.7": runs of neighbours shortened. */
function unitRuns(units) {
  const sorted = Array.from(new Set(units)).filter((unit) => unit >= 0).sort((a, b) => a - b), runs = [];
  for (const unit of sorted) {
    const run = runs[runs.length - 1];
    if (run && run[1] + 1 === unit) run[1] = unit;
    else runs.push([unit, unit]);
  }
  return runs.map(([a, b]) => (a === b ? unitName(a) : b === a + 1 ? `${unitName(a)}, ${unitName(b)}` : `${unitName(a)} … ${unitName(b)}`)).join(", ");
}
