// Streams and host below the stack, on the same axis: in device time where operations ran, in issue order when the host
// issued them.
const LANE = 20;
let laneRows = [];

/** Host time to event number, between the events that are known: blocks' changes and marks. */
function issueClock(step) {
  const known = [];
  for (let i = 0; i < step.changes.event.length; ++i) known.push([step.changes.host[i], step.changes.event[i]]);
  for (let i = 0; i < step.marks.event.length; ++i) known.push([step.marks.host[i], step.marks.event[i]]);
  known.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const times = known.map((pair) => pair[0]);
  return (ns) => {
    const i = d3.bisectLeft(times, ns);
    if (i === 0) return known.length > 0 ? known[0][1] : step.begin_event;
    if (i === known.length) return step.end_event;
    const [t0, e0] = known[i - 1], [t1, e1] = known[i];
    return t1 > t0 ? e0 + ((e1 - e0) * (ns - t0)) / (t1 - t0) : e1;
  };
}

/** Each stream's operations as {begin, end, ...} in the unit of the x axis, in order. */
function rowsOf(step) {
  const { operations, spans } = step, rows = new Map();
  for (const stream of report.streams) rows.set(stream.id, { name: stream.name, bars: [] });
  const issue = state.clock === "issue" ? issueClock(step) : null;
  for (let i = 0; i < operations.start.length; ++i) {
    const row = rows.get(operations.stream[i]), wait = operations.wait[i] >= 0;
    if (!row || (issue && wait)) continue;
    const kind = operationKinds[operations.name[i]];
    row.bars.push({
      begin: issue ? issue(operations.issued[i]) : deviceMs(step, operations.start[i]), end: issue ? null : deviceMs(step, operations.end[i]),
      key: wait ? "wait" : kind.name, color: wait ? "url(#hatch-wait)" : kind.color, operation: i, wait,
    });
  }
  const host = { name: "host", bars: [] };
  for (let i = 0; i < spans.start.length; ++i) {
    const { name: cause, color } = report.causes[spans.cause[i]];
    host.bars.push({
      begin: issue ? issue(spans.start[i]) : deviceMs(step, spans.start[i]), end: issue ? issue(spans.end[i]) : deviceMs(step, spans.end[i]),
      key: cause, color, span: i,
    });
  }
  const all = [...rows.values(), host].filter((row) => row.bars.length > 0);
  for (const row of all) {
    row.bars.sort((a, b) => a.begin - b.begin || (a.end || 0) - (b.end || 0));
    row.bars.forEach((bar, i) => {
      if (bar.end !== null) return;
      const next = i + 1 < row.bars.length ? row.bars[i + 1].begin : Infinity;
      bar.end = Math.min(next, bar.begin + 2.5);
    });
  }
  return all;
}

/** Draws a row; bars that share a pixel and a colour are one. */
function drawRow(group, row, y, height) {
  let open = null;
  const close = () => {
    if (open === null) return;
    group.append("rect").attr("x", open.x0).attr("y", y).attr("width", Math.max(0.7, open.x1 - open.x0)).attr("height", height).attr("fill", open.bar.color)
      .attr("stroke", open.x1 - open.x0 > 3 ? "#fff" : "none").attr("stroke-width", 0.5);
    const name = open.bar.operation === undefined || open.merged ? "" : unitName(model.step.operations.unit[open.bar.operation]);
    if (name && !open.bar.wait && open.x1 - open.x0 > name.length * 6.2 + 6) {
      const dark = ["update", "backward"].includes(open.bar.key);
      text(group, (open.x0 + open.x1) / 2, y + height - 4.5, name, { "text-anchor": "middle", "font-size": 10.5, fill: dark ? "#fff" : INK });
    }
    open = null;
  };
  for (const bar of row.bars) {
    const x0 = Math.max(scales.x(bar.begin), scales.left), x1 = Math.min(scales.x(bar.end), scales.right);
    if (x1 < scales.left || x0 > scales.right) continue;
    if (open !== null && open.bar.key === bar.key && x0 - open.x1 < 0.6 && x1 - x0 < 2) {
      open.x1 = Math.max(open.x1, x1);
      open.merged = true;
      continue;
    }
    close();
    open = { bar, x0, x1, merged: false };
  }
  close();
}

function drawLanes(y) {
  const group = parts.lanes.attr("transform", `translate(0,${y})`);
  group.selectAll("*").remove();
  laneRows = rowsOf(model.step);
  const title = state.clock === "issue" ? "Streams, in the order of issue" : "Streams, in device time";
  text(group, scales.left, 10, title, { "font-weight": 600, "font-size": 12 });
  drawLaneKey(group, title.length * 7 + 26);
  laneRows.forEach((row, i) => {
    const top = 18 + i * LANE;
    group.append("rect").attr("x", scales.left).attr("y", top).attr("width", scales.right - scales.left).attr("height", LANE - 3).attr("fill", "#f5f7f9");
    text(group, scales.left - 8, top + 13, row.name, { "text-anchor": "end", "font-size": 11.5 });
    drawRow(group, row, top, LANE - 3);
    row.top = y + top;
  });
  return 18 + laneRows.length * LANE;
}

function drawLaneKey(group, offset) {
  const keys = new Map();
  for (const row of laneRows) for (const bar of row.bars) if (!keys.has(bar.key)) keys.set(bar.key, bar.color);
  let x = scales.left + offset;
  const causes = report.causes.map((cause) => cause.name);
  for (const name of [...report.kinds.map((kind) => kind.name), "wait", ...causes]) {
    if (!keys.has(name) || x > scales.right - 70) continue;
    group.append("rect").attr("x", x).attr("y", 0.5).attr("width", 11).attr("height", 11).attr("rx", 2).attr("fill", keys.get(name)).attr("stroke", "rgba(0,0,0,0.25)").attr("stroke-width", 0.7);
    x += 16 + text(group, x + 16, 10, causes.includes(name) ? `host: ${name}` : name, { "font-size": 11.5, fill: SOFT }).node().getComputedTextLength() + 14;
  }
}

/** What the bar at a point says; null where there is none. */
function laneTip(px, py) {
  const row = laneRows.find((candidate) => py >= candidate.top && py < candidate.top + LANE - 3);
  if (!row) return null;
  const slack = Math.abs(scales.x.invert(px + 1.5) - scales.x.invert(px)), x = scales.x.invert(px);
  let best = null;
  for (const bar of row.bars) {
    if (bar.begin - slack > x) break;
    if (bar.end + slack >= x && (best === null || Math.abs(bar.begin - x) <= Math.abs(best.begin - x) || bar.end >= x)) best = bar;
  }
  if (best === null) return null;
  const { operations, spans } = model.step, from = model.step.device[0];
  const lines = (begin, end) => [`${timeText((end - begin) / 1e6)}`, `${timeText((begin - from) / 1e6)} to ${timeText((end - from) / 1e6)} after the step's first operation`];
  if (best.span !== undefined) return [`host: ${best.key}`, ...lines(spans.start[best.span], spans.end[best.span])];
  const i = best.operation, unit = unitName(operations.unit[i]);
  const producer = report.streams.find((stream) => stream.id === operations.wait[i]);
  const name = best.wait ? `wait for ${producer ? producer.name : "another stream"}` : report.operation_names[operations.name[i]];
  return [name + (unit ? `, ${unit}` : ""), ...lines(operations.start[i], operations.end[i]), ...(best.wait ? [] : [`issued ${timeText((operations.start[i] - operations.issued[i]) / 1e6)} before it began`])];
}
