// A row a unit: above, its gathered parameters; below, its gradients, each by state. What overlaps, one sees standing.
let lifetimeRows = [], lifetimeHeight = 0;

/** For each unit, the stretches {begin, end, band, block} of its full parameters and gradients. */
function stretches() {
  const { changes, device_spans: spans, blocks } = model.step, [from, to] = model.range, byUnit = new Map();
  const add = (block, tag, begin, end) => {
    const band = tag >= 0 ? bandOfTag(tag) : null, unit = blocks.unit[block];
    if (!band || !band.set || end <= from || begin >= to || end <= begin) return;
    if (!byUnit.has(unit)) byUnit.set(unit, []);
    byUnit.get(unit).push({ begin: Math.max(begin, from), end: Math.min(end, to), band, block });
  };
  if (state.clock === "device") {
    spans.block.forEach((block, i) => add(block, spans.tag[i], deviceMs(model.step, spans.begin[i]), deviceMs(model.step, spans.end[i])));
  } else {
    changes.block.forEach((block, i) => add(block, changes.tag[i], changes.event[i], changes.block[i + 1] === block ? changes.event[i + 1] : to));
  }
  return byUnit;
}

function drawLifetimes(y) {
  const group = parts.lifetimes.attr("transform", `translate(0,${y})`);
  group.selectAll("*").remove();
  const byUnit = stretches();
  lifetimeRows = Array.from(byUnit.keys()).sort((a, b) => a - b).map((unit) => ({ unit, bars: byUnit.get(unit) }));
  if (lifetimeRows.length === 0) return 0;
  text(group, scales.left, 10, "Lifetimes by unit: gathered parameters above, gradients below", { "font-weight": 600 });
  const row = lifetimeRows.length <= 12 ? 20 : lifetimeRows.length <= 26 ? 13 : 9, half = (row - 2) / 2;
  const every = row >= 13 ? 1 : 2;
  lifetimeRows.forEach(({ unit, bars }, i) => {
    const top = 18 + i * row;
    group.append("rect").attr("x", scales.left).attr("y", top).attr("width", scales.right - scales.left).attr("height", row - 2).attr("fill", "#f5f7f9");
    if (i % every === 0) text(group, scales.left - 8, top + row / 2 + 3, unitName(unit), { "text-anchor": "end", "font-size": row >= 13 ? 11 : 9.5 });
    for (const bar of bars) {
      const x0 = Math.max(scales.x(bar.begin), scales.left), x1 = Math.min(scales.x(bar.end), scales.right);
      if (x1 <= scales.left || x0 >= scales.right) continue;
      const below = bar.band.name.startsWith("gradient");
      group.append("rect").attr("x", x0).attr("y", top + (below ? half : 0)).attr("width", Math.max(0.8, x1 - x0)).attr("height", half).attr("fill", bar.band.color);
    }
    lifetimeRows[i].top = y + top;
  });
  lifetimeHeight = row;
  return 18 + lifetimeRows.length * row;
}

/** What the stretch at a point says; null where there is none. */
function lifetimeTip(px, py) {
  const row = lifetimeRows.find((candidate) => py >= candidate.top && py < candidate.top + lifetimeHeight - 2);
  if (!row) return null;
  const below = py >= row.top + (lifetimeHeight - 2) / 2, x = scales.x.invert(px);
  const bar = row.bars.find((candidate) => candidate.band.name.startsWith("gradient") === below && candidate.begin <= x && candidate.end >= x);
  if (!bar) return null;
  const span = state.clock === "issue" ? `events ${exact(bar.begin)} to ${exact(bar.end)}` : `for ${timeText(bar.end - bar.begin)}`;
  return [`${below ? "gradients" : "parameters"} of ${unitName(row.unit)}`, `${bar.band.name}, ${bytesText(model.step.blocks.bytes[bar.block])}`, span];
}
