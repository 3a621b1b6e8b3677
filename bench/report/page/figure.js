// The figure: legend, visits, stack, streams and lifetimes in one drawing on one x axis, so that it can be saved whole.
const FONT = '"Inter", "Segoe UI", "Helvetica Neue", "DejaVu Sans", Arial, sans-serif';
const MARGIN = { left: 84, right: 16 };
const INK = "#1d2329", SOFT = "#5b6670", LINE = "#d5dae0";

const state = { index: 0, clock: "issue", hidden: new Set(), views: false, hover: null, pinned: null, lit: null };
let model = null, scales = null, zoomed = d3.zoomIdentity, layout = null;

const svg = d3.select("#figure").attr("font-family", FONT).attr("font-size", 12).attr("fill", INK);
const parts = {};
for (const name of ["defs", "legend", "visits", "stack", "axes", "lanes", "lifetimes", "marks"]) {
  parts[name] = svg.append(name === "defs" ? "defs" : "g").attr("class", name);
}

/** Lines 45 degrees apart from what they stand on: waiting, or freed and still in use. */
function hatch(id, color, background) {
  const pattern = parts.defs.append("pattern").attr("id", id).attr("width", 6).attr("height", 6)
    .attr("patternUnits", "userSpaceOnUse").attr("patternTransform", "rotate(45)");
  pattern.append("rect").attr("width", 6).attr("height", 6).attr("fill", background);
  pattern.append("rect").attr("width", 2).attr("height", 6).attr("fill", color);
}
hatch("hatch-pending", "#7b8794", "#eef1f4");
hatch("hatch-wait", "#b04a2f", "#fbe9e2");

const fillOf = (band) => (band.hatched ? "url(#hatch-pending)" : band.color);

function text(parent, x, y, content, attributes = {}) {
  const node = parent.append("text").attr("x", x).attr("y", y).text(content);
  for (const [key, value] of Object.entries(attributes)) node.attr(key, value);
  return node;
}

/** The bands that this step has bytes in. */
function shownBands() {
  const bands = BANDS.filter((band) => model.tags[band.tag].some((bytes) => bytes > 0));
  if (model.pending.some((bytes) => bytes > 0)) bands.push(PENDING_BAND);
  return bands;
}
const visibleBands = () => shownBands().filter((band) => !state.hidden.has(band.name));

/** Draws the legend; returns its height. */
function drawLegend(width) {
  const group = parts.legend;
  group.selectAll("*").remove();
  let x = MARGIN.left, row = 0;
  const entry = (label, paint, band) => {
    const item = group.append("g").attr("class", "entry");
    paint(item);
    const words = text(item, 17, 10.5, label, { "font-size": 12 });
    const length = 17 + words.node().getComputedTextLength() + 16;
    if (x + length > width - MARGIN.right && x > MARGIN.left) { x = MARGIN.left; ++row; }
    item.attr("transform", `translate(${x},${row * 18 + 2})`);
    x += length;
    if (!band) return;
    const off = state.hidden.has(band.name);
    item.attr("opacity", off ? 0.35 : 1).style("cursor", "pointer").attr("data-band", band.name);
    if (off) words.attr("text-decoration", "line-through");
    item.insert("rect", ":first-child").attr("x", -3).attr("y", -2).attr("width", length - 8).attr("height", 17).attr("fill", "#fff");
    item.on("click", () => { toggleBand(band.name); })
      .on("mouseenter", () => { state.lit = band.name; lightBands(); })
      .on("mouseleave", () => { state.lit = null; lightBands(); });
    item.append("title").text("click: hide or show");
  };
  for (const band of shownBands()) {
    entry(band.name, (item) => item.append("rect").attr("width", 12).attr("height", 12).attr("rx", 2).attr("fill", fillOf(band))
      .attr("stroke", "rgba(0,0,0,0.25)").attr("stroke-width", 0.7), band);
  }
  const reserved = { name: "reserved" };
  entry("reserved", (item) => item.append("line").attr("x2", 13).attr("y1", 6).attr("y2", 6).attr("stroke", INK).attr("stroke-width", 1.6).attr("stroke-dasharray", "5,2.5"), reserved);
  return (row + 1) * 18 + 8;
}

/** A unit's visits as a strip above the stack. */
function drawVisits(y) {
  const group = parts.visits.attr("transform", `translate(0,${y})`);
  group.selectAll("*").remove();
  const tints = { forward: ["#d9efe5", "#bfe3d2"], backward: ["#e6def2", "#d3c6e8"] };
  visitSpans().forEach((span, i) => {
    const x0 = Math.max(scales.x(span.begin), scales.left), x1 = Math.min(scales.x(span.end), scales.right);
    if (x1 <= x0) return;
    group.append("rect").attr("x", x0).attr("width", Math.max(0.5, x1 - x0)).attr("height", 15).attr("fill", (tints[span.phase] || ["#eee", "#ddd"])[i % 2]);
    const label = unitName(span.unit);
    if (x1 - x0 > label.length * 6.4 + 6) text(group, (x0 + x1) / 2, 11.5, label, { "text-anchor": "middle", "font-size": 11 });
  });
  text(group, MARGIN.left - 8, 11.5, "visit", { "text-anchor": "end", fill: SOFT, "font-size": 11 });
}

/** The visits of the step on the clock that is shown. */
function visitSpans() {
  const { step } = model, visits = visitsOf(step);
  if (state.clock === "issue") return visits.map((visit) => ({ ...visit, begin: visit.event }));
  const begins = visits.map((visit) => visit.host), { operations } = step;
  const compute = report.streams.filter((stream) => stream.role === "compute").map((stream) => stream.id);
  for (let i = 0; i < operations.start.length; ++i) {
    const visit = visits[d3.bisectRight(begins, operations.issued[i]) - 1];
    if (!visit || operations.wait[i] >= 0 || operations.issued[i] >= visit.hostEnd || !compute.includes(operations.stream[i])) continue;
    visit.from = Math.min(visit.from === undefined ? Infinity : visit.from, deviceMs(step, operations.start[i]));
    visit.to = Math.max(visit.to === undefined ? -Infinity : visit.to, deviceMs(step, operations.end[i]));
  }
  return visits.filter((visit) => visit.from !== undefined).map((visit) => ({ ...visit, begin: visit.from, end: visit.to }));
}

function drawAxes(top, height) {
  const group = parts.axes;
  group.selectAll("*").remove();
  const { values, text: tickText, unit } = byteTicks(scales.y.domain()[1], Math.max(4, height / 60));
  for (const tick of values) {
    const y = Math.round(scales.y(tick)) + 0.5;
    group.append("line").attr("x1", scales.left).attr("x2", scales.right).attr("y1", y).attr("y2", y).attr("stroke", tick === 0 ? "#68737d" : LINE)
      .attr("stroke-dasharray", tick === 0 ? null : "1,3");
    text(group, scales.left - 8, y + 4, tickText(tick), { "text-anchor": "end" });
  }
  text(group, 14, top + height / 2, `live memory, ${unit}`, { transform: `rotate(-90,14,${top + height / 2})`, "text-anchor": "middle", fill: SOFT });
  const bottom = top + height, axis = state.clock === "issue" ? d3.format(",d") : d3.format(",~r");
  const ticks = scales.x.ticks(Math.max(4, (scales.right - scales.left) / 95)).filter((tick) => state.clock !== "issue" || Number.isInteger(tick));
  for (const tick of ticks) {
    const x = Math.round(scales.x(tick)) + 0.5;
    group.append("line").attr("x1", x).attr("x2", x).attr("y1", bottom).attr("y2", bottom + 5).attr("stroke", "#68737d");
    text(group, x, bottom + 17, axis(+tick.toPrecision(9)), { "text-anchor": "middle" });
  }
  const name = state.clock === "issue" ? "allocator event, in issue order" : "device time, ms";
  text(group, (scales.left + scales.right) / 2, bottom + 33, name, { "text-anchor": "middle", fill: SOFT });
}

/** Draws all of it for the state as it is. */
function draw() {
  const width = Math.max(480, document.getElementById("charts").clientWidth);
  model = modelOf(state.index, state.clock);
  scales = { left: MARGIN.left, right: width - MARGIN.right };
  const base = d3.scaleLinear().domain(model.range).range([scales.left, scales.right]);
  scales.x = zoomed.rescaleX(base);
  const legend = drawLegend(width), top = legend + 20;
  const height = Math.round(Math.min(470, Math.max(240, window.innerHeight * 0.42)));
  scales.y = d3.scaleLinear().domain([0, stackTop() * 1.06]).range([top + height, top]);
  drawVisits(legend);
  drawStack(top, height);
  drawAxes(top, height);
  const lanes = top + height + 44;
  const lifetimes = lanes + drawLanes(lanes) + 14;
  const total = lifetimes + drawLifetimes(lifetimes) + 6;
  layout = { width, height: total, top, bottom: top + height, lanes, lifetimes };
  svg.attr("viewBox", `0 0 ${width} ${total}`).attr("width", width).attr("height", total).style("height", `${total}px`);
  svg.attr("data-clock", state.clock).attr("data-step", model.step.step);
  drawMarks();
}
