// The stacked bands, what is reserved above them, the peak, and the crosshair.

const stackOf = (i) => d3.sum(visibleBands(), (band) => (band.tag === PENDING ? model.pending[i] : model.tags[band.tag][i]));

/** Beside bands that are hidden what is reserved would say nothing. */
const showsReserved = () => state.hidden.size === 0;

/** The highest value that the y axis must hold; reserved only where everything is shown. */
function stackTop() {
  let top = state.views && state.clock === "issue" ? d3.max(model.step.views.shares) || 1 : 1;
  const bands = visibleBands(), whole = showsReserved();
  for (let i = 0; i < model.count; ++i) {
    let sum = 0;
    for (const band of bands) sum += band.tag === PENDING ? model.pending[i] : model.tags[band.tag][i];
    top = Math.max(top, sum, whole ? model.totalReserved(i) : 0);
  }
  return top;
}

/** The instants worth drawing: of those in one pixel the highest, the lowest and the last, so that no peak is lost. */
function drawnInstants() {
  const first = model.at(scales.x.invert(scales.left)), last = model.at(scales.x.invert(scales.right)), drawn = [];
  const height = (i) => model.allocated[i] + model.pending[i];
  for (let i = first; i <= last;) {
    const column = Math.floor(scales.x(model.x[i]));
    let end = i, high = i, low = i;
    for (; end <= last && Math.floor(scales.x(model.x[end])) === column; ++end) {
      if (height(end) > height(high)) high = end;
      if (height(end) < height(low)) low = end;
    }
    drawn.push(...Array.from(new Set([high, low, end - 1])).sort((a, b) => a - b));
    i = end;
  }
  return drawn;
}

/** A path of steps: value(k) of instant drawn[k] from its x to the next one's. */
function steps(drawn, value, backwards) {
  const points = [];
  const x = (k) => (k < drawn.length ? Math.min(Math.max(scales.x(model.x[drawn[k]]), scales.left), scales.right) : scales.right);
  for (let k = 0; k < drawn.length; ++k) {
    const y = scales.y(value(k)).toFixed(1);
    points.push(`${x(k).toFixed(1)},${y}`, `${x(k + 1).toFixed(1)},${y}`);
  }
  return (backwards ? points.reverse() : points).join("L");
}

function drawStack() {
  const group = parts.stack, drawn = drawnInstants();
  group.selectAll("*").remove();
  let below = new Float64Array(drawn.length);
  for (const band of visibleBands()) {
    const bytes = band.tag === PENDING ? model.pending : model.tags[band.tag];
    const above = below.map((sum, k) => sum + bytes[drawn[k]]), under = below;
    group.append("path").attr("class", "band").attr("data-band", band.name).attr("fill", fillOf(band))
      .attr("d", `M${steps(drawn, (k) => above[k])}L${steps(drawn, (k) => under[k], true)}Z`);
    below = above;
  }
  if (!showsReserved()) return;
  if (state.views && state.clock === "issue") drawViews(group);
  group.append("path").attr("class", "reserved").attr("fill", "none").attr("stroke", INK).attr("stroke-width", 1.5).attr("stroke-dasharray", "5,2.5")
    .attr("d", `M${steps(drawn, (k) => model.totalReserved(drawn[k]))}`);
}

/** The union of live view ranges, and the naive sum of shares. */
function drawViews(group) {
  const { views } = model.step, count = views.event.length;
  const x = (k) => scales.x(k < count ? Math.max(views.event[k], model.range[0]) : model.range[1]);
  for (const [name, dashes] of [["union", null], ["shares", "1.5,2"]]) {
    const points = views.event.map((event, k) => `${x(k)},${scales.y(views[name][k])}L${x(k + 1)},${scales.y(views[name][k])}`);
    group.append("path").attr("class", "views").attr("data-curve", name).attr("fill", "none").attr("stroke", "#7a1fa2").attr("stroke-width", 1.2).attr("stroke-dasharray", dashes)
      .attr("d", `M${points.join("L")}`);
  }
}

function lightBands() {
  parts.stack.selectAll(".band").attr("opacity", function () {
    return state.lit === null || this.dataset.band === state.lit ? 1 : 0.35;
  });
  d3.select("#panel").selectAll("tr.band").classed("lit", function () { return this.dataset.category === state.lit; });
}

/** The band at an instant and a height; null above all of them. */
function bandAt(i, bytes) {
  let sum = 0;
  for (const band of visibleBands()) {
    sum += band.tag === PENDING ? model.pending[i] : model.tags[band.tag][i];
    if (bytes < sum) return band.name;
  }
  return null;
}

/** The instant of the peak: of the run, where this step has it on this clock; else of this step. */
function peakInstant() {
  const { step } = model;
  return state.clock === "issue" ? model.at(step.peak.event) : model.peak;
}
/** What the pointer means: the peak near its mark; else, of the instants in its pixel, the highest. */
function instantAt(px) {
  if (Math.abs(px - scales.x(model.x[peakInstant()])) <= 4) return peakInstant();
  const first = model.at(scales.x.invert(px - 0.5)), last = model.at(scales.x.invert(px + 0.5));
  if (last - first <= 1) return model.at(scales.x.invert(px));
  return first + d3.scan(model.allocated.slice(first, last + 1), (a, b) => b - a);
}
const isRunPeak = () => report.peak !== null && state.clock === "issue" && model.step.step === report.peak.step;

function drawMarks() {
  const group = parts.marks;
  group.selectAll("*").remove();
  const peak = peakInstant(), x = scales.x(model.x[peak]);
  if (x >= scales.left && x <= scales.right) {
    const y = scales.y(stackOf(peak)), left = x > (scales.left + scales.right) / 2;
    const mark = group.append("g").attr("class", "peak").attr("data-bytes", model.allocated[peak]);
    mark.append("line").attr("x1", x).attr("x2", x).attr("y1", y).attr("y2", layout.bottom).attr("stroke", "#c2410c").attr("stroke-dasharray", "3,3");
    mark.append("circle").attr("cx", x).attr("cy", y).attr("r", 4.5).attr("fill", "#fff").attr("stroke", "#c2410c").attr("stroke-width", 2.2);
    const words = `${isRunPeak() ? "peak" : state.clock === "issue" ? "peak of this step" : "highest in device time"} ${bytesText(model.allocated[peak])}${state.hidden.size > 0 ? `, shown ${bytesText(stackOf(peak))}` : ""}`;
    text(mark, x + (left ? -10 : 10), y - 8, words, {
      "text-anchor": left ? "end" : "start", "font-weight": 600, fill: "#9a3409", stroke: "#fff", "stroke-width": 3.5, "paint-order": "stroke",
    });
  }
  group.append("line").attr("class", "crosshair").attr("stroke", INK).attr("stroke-width", 1).attr("y1", layout.top - 18).attr("y2", layout.height).attr("visibility", "hidden");
  group.append("circle").attr("class", "crosshair").attr("r", 3.2).attr("fill", INK).attr("visibility", "hidden");
  moveCrosshair();
}

/** Where the crosshair stands: what is pinned, else what is under the pointer, else the peak. */
const selected = () => (state.pinned !== null ? state.pinned : state.hover !== null ? state.hover : peakInstant());

function moveCrosshair() {
  const i = selected();
  const middle = i + 1 < model.count && state.clock === "issue" ? (model.x[i] + Math.min(model.x[i + 1], model.x[i] + 1)) / 2 : model.x[i];
  const x = scales.x(middle), seen = x >= scales.left && x <= scales.right && (state.hover !== null || state.pinned !== null);
  const cross = parts.marks.selectAll(".crosshair").attr("visibility", seen ? "visible" : "hidden");
  cross.filter("line").attr("x1", x).attr("x2", x).attr("stroke-dasharray", state.pinned !== null ? null : "2,2");
  cross.filter("circle").attr("cx", x).attr("cy", scales.y(stackOf(i)));
  showPanel(i);
}
