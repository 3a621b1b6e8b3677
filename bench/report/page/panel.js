// What lives at the selected instant: every category, its buffers below it. Buffers of one name are one row, except full
// parameters and gradients, which are told one by one.

/** Rows {name, units, count, bytes} of blocks. */
function bufferRows(band, members) {
  const { blocks } = model.step, rows = new Map();
  for (const { block } of members) {
    const unit = blocks.unit[block], own = report.names[blocks.name[block]] || "";
    const name = !band.set && own === unitName(unit) ? "of units" : own;
    const key = band.set ? block : name;
    if (!rows.has(key)) rows.set(key, { name, units: [], count: 0, bytes: 0 });
    const row = rows.get(key);
    row.units.push(unit);
    row.count += 1;
    row.bytes += blocks.bytes[block];
  }
  return Array.from(rows.values()).sort((a, b) => b.bytes - a.bytes || a.units[0] - b.units[0]);
}

function whenText(i) {
  const { step } = model;
  if (state.clock === "issue") return [`event ${exact(model.x[i])}`, `${stepName(step.step)}, ${placeOf(step, model.x[i])}`];
  const visit = visitSpans().find((span) => span.begin <= model.x[i] && span.end > model.x[i]);
  return [timeText(model.x[i] - model.range[0]), `${stepName(step.step)}${visit ? `, ${visit.phase} of ${unitName(visit.unit)}` : ""}`];
}

function showPanel(i) {
  const panel = d3.select("#panel"), scroll = panel.node().scrollTop;
  panel.selectAll("*").remove();
  const [title, place] = whenText(i), reserved = model.totalReserved(i);
  const when = panel.append("div").attr("class", "when");
  when.append("b").text(title + (state.pinned !== null ? " (pinned)" : state.hover === null ? " (the peak)" : ""));
  when.append("div").text(place);
  when.append("div").attr("id", "live-total").attr("data-bytes", model.allocated[i])
    .text(`allocated ${bytesText(model.allocated[i])}${model.pending[i] > 0 ? `, pending ${bytesText(model.pending[i])}` : ""}, reserved ${bytesText(reserved)}`);
  panel.attr("data-instant", i).attr("data-clock", state.clock).attr("data-x", model.x[i]);
  const body = panel.append("table").append("tbody");
  const live = d3.nest().key((member) => member.tag).object(model.liveAt(i));
  for (const band of [PENDING_BAND, ...BANDS.slice().reverse()]) {
    const members = live[band.tag];
    if (!members) continue;
    const bytes = d3.sum(members, (member) => model.step.blocks.bytes[member.block]);
    const row = body.append("tr").attr("class", "band").attr("data-category", band.name).attr("data-bytes", bytes).classed("lit", state.lit === band.name);
    row.append("td").call((cell) => {
      cell.append("span").attr("class", "swatch").style("background", band.hatched ? "repeating-linear-gradient(45deg, #7b8794 0 2px, #eef1f4 2px 5px)" : band.color);
      cell.append("span").text(band.name);
    });
    if (bytes === 0) { row.remove(); continue; }
    row.append("td").attr("title", `${exact(bytes)} bytes`).text(bytesText(bytes));
    for (const buffer of bufferRows(band, members)) {
      const line = body.append("tr").attr("class", "buffer").attr("data-category", band.name).attr("data-name", buffer.name)
        .attr("data-unit", buffer.count === 1 ? unitName(buffer.units[0]) : null).attr("data-count", buffer.count).attr("data-bytes", buffer.bytes);
      const units = unitRuns(buffer.units), cell = line.append("td");
      cell.append("span").text(buffer.name + (buffer.count > 1 ? ` ×${buffer.count}` : ""));
      if (units && units !== buffer.name) cell.append("span").attr("class", "units").text(`  ${units}`);
      line.append("td").attr("title", `${exact(buffer.bytes)} bytes`).text(bytesText(buffer.bytes));
    }
  }
  panel.node().scrollTop = scroll;
}
