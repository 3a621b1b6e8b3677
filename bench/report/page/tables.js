// Everything around the figure: what run it was, the peak in words, the steps, the regions, and the numbers by name.

/** [name, value] of what was run, as far as the recording's notes say. */
function runFacts() {
  const facts = [["rank", `${report.rank} of ${report.world}`]], { notes } = report;
  if (notes.command) facts.unshift(["command", notes.command]);
  if (!notes.config) return facts;
  const config = JSON.parse(notes.config), of = (...keys) => keys.map((key) => `${key} ${config[key]}`).join(", ");
  facts.push(["device", config.device], ["model", `${config.workload}, ${of("layers", "width", "seq")}, micro-batch ${config["micro-batch"]}`]);
  facts.push(["sharding", `${config.shard}, ${config.buffers} buffers, gathered ${config.gathered}, recompute ${config.recompute}`]);
  facts.push(["schedule", of("backward-prefetch", "forward-prefetch", "limit-all-gathers", "limit-reduce-scatters", "keep-after-forward")]);
  return facts;
}

function showHeader() {
  const { peak } = report;
  d3.select("#subtitle").text("live memory of a training run");
  if (peak) document.title = `Headroom: peak ${bytesText(peak.bytes)}`;
  const facts = runFacts();
  const entries = d3.select("#facts").selectAll("div").data(facts).enter().append("div");
  entries.append("dt").text((fact) => fact[0]);
  entries.append("dd").text((fact) => fact[1]);
  if (!peak) { d3.select("#peak").attr("hidden", ""); return; }
  const words = d3.select("#peak").attr("data-bytes", peak.bytes).attr("title", `${exact(peak.bytes)} bytes at event ${exact(peak.event)}`);
  words.append("strong").text(`Peak ${bytesText(peak.bytes)}`);
  words.append("span").text(` (${peak.statistic})${peak.text.replace(/^peak \S+ \S+/, "")}.`);
}

/** Peak bytes of every step; only where there are several. */
function drawOverview() {
  const { overview } = report, count = overview.step.length, svg = d3.select("#overview");
  svg.selectAll("*").remove();
  if (count <= 2) { svg.style("display", "none"); return; }
  const width = Math.max(480, document.getElementById("charts").clientWidth), height = 84, top = 16, bottom = 64;
  svg.attr("viewBox", `0 0 ${width} ${height}`).style("height", `${height}px`).attr("font-family", FONT).attr("font-size", 11).attr("fill", INK);
  const x = d3.scaleBand().domain(d3.range(count)).range([MARGIN.left, width - MARGIN.right]).paddingInner(count > 200 ? 0 : 0.12);
  const y = d3.scaleLinear().domain([0, d3.max(overview.reserved) * 1.05]).range([bottom, top]);
  text(svg, MARGIN.left, 10, "Peak of each step: allocated (bars; dark where this page has detail) and reserved (line). Click selects.", { fill: SOFT });
  const kept = new Map(report.steps.map((step, i) => [step.step, i])), current = report.steps[state.index].step;
  const { values, text: tickText, unit } = byteTicks(d3.max(overview.reserved), 2);
  for (const tick of values) text(svg, MARGIN.left - 8, y(tick) + 4, tick === 0 ? "0" : `${tickText(tick)} ${unit}`, { "text-anchor": "end" });
  overview.step.forEach((step, i) => {
    const color = step === current ? "#c2410c" : kept.has(step) ? "#4a7fa8" : "#bcd0e0";
    svg.append("rect").attr("x", x(i)).attr("y", y(overview.allocated[i])).attr("width", Math.max(0.6, x.bandwidth())).attr("height", bottom - y(overview.allocated[i])).attr("fill", color)
      .attr("data-step", step);
  });
  const line = overview.reserved.map((bytes, i) => `${x(i)},${y(bytes)}L${x(i) + x.bandwidth()},${y(bytes)}`).join("L");
  svg.append("path").attr("d", `M${line}`).attr("fill", "none").attr("stroke", INK).attr("stroke-dasharray", "5,2.5");
  const ticks = new Set(count <= 16 ? overview.step : d3.ticks(overview.step[0], overview.step[count - 1], width / 90));
  overview.step.forEach((step, i) => {
    if (!ticks.has(step)) return;
    text(svg, x(i) + x.bandwidth() / 2, bottom + 14, step === 0 ? "set-up" : step, { "text-anchor": "middle" });
  });
  const indexAt = (px) => Math.max(0, Math.min(count - 1, Math.floor((px - MARGIN.left) / x.step())));
  const catcher = svg.append("rect").attr("x", MARGIN.left).attr("width", width - MARGIN.left - MARGIN.right).attr("y", top).attr("height", bottom - top + 16)
    .attr("fill", "transparent").style("cursor", "pointer");
  catcher.on("mousemove", () => {
    const i = indexAt(d3.mouse(svg.node())[0]);
    showTip([stepName(overview.step[i]), `peak allocated ${bytesText(overview.allocated[i])}`, `peak reserved ${bytesText(overview.reserved[i])}`,
      kept.has(overview.step[i]) ? "click to show it" : "without detail here"]);
  }).on("mouseleave", hideTip).on("click", () => chooseStep(overview.step[indexAt(d3.mouse(svg.node())[0])]));
}

/** Reserved and live bytes of each region over the step that is shown. */
function drawRegions() {
  const section = d3.select("#regions");
  section.selectAll("*").remove();
  section.append("h2").text(`Reserved against live, by region: ${stepName(model.step.step)}`);
  const charts = section.append("div").attr("class", "charts"), width = 420, height = 120;
  report.regions.forEach((name, region) => {
    const live = model.live[region], reserved = model.reserved[region], top = Math.max(1, d3.max(live), d3.max(reserved));
    const card = charts.append("div").attr("data-region", name);
    card.append("h3").text(name);
    const ratio = d3.max(live) > 0 ? `, ratio ${d3.format(".2f")(d3.max(reserved) / d3.max(live))}` : "";
    card.append("p").text(`at most ${bytesText(d3.max(live))} live, ${bytesText(d3.max(reserved))} reserved${ratio}`);
    const picture = card.append("svg").attr("viewBox", `0 0 ${width} ${height}`).attr("preserveAspectRatio", "none");
    const x = d3.scaleLinear().domain(model.range).range([0, width]), y = d3.scaleLinear().domain([0, top * 1.05]).range([height - 1, 2]);
    const path = (values) => values.map((bytes, i) => `${x(model.x[i]).toFixed(1)},${y(bytes).toFixed(1)}L${x(i + 1 < model.count ? model.x[i + 1] : model.range[1]).toFixed(1)},${y(bytes).toFixed(1)}`).join("L");
    picture.append("rect").attr("width", width).attr("height", height).attr("fill", "#f5f7f9");
    picture.append("path").attr("d", `M${x(model.x[0])},${height - 1}L${path(live)}L${width},${height - 1}Z`).attr("fill", ["#8d98a4", "#56b4e9", "#1b9e77"][region]);
    picture.append("path").attr("d", `M${path(reserved)}`).attr("fill", "none").attr("stroke", INK).attr("stroke-width", 1.5).attr("stroke-dasharray", "5,2.5").attr("vector-effect", "non-scaling-stroke");
  });
}

/** A titled table, its rows in `parts` tables side by side; returns all rows. */
function table(title, heads, rows, parts) {
  const section = d3.select("#tables");
  section.append("h2").text(title);
  const side = section.append("div").attr("class", "side"), length = Math.ceil(rows.length / parts);
  for (let part = 0; part < parts; ++part) {
    const element = side.append("div").append("table");
    element.append("thead").append("tr").selectAll("th").data(heads).enter().append("th").attr("class", (head) => (head === "value" || head === "bytes" ? "number" : null)).text((head) => head);
    element.append("tbody").selectAll("tr").data(rows.slice(part * length, (part + 1) * length)).enter().append("tr");
  }
  return side.selectAll("tbody tr");
}

function showTables() {
  const isBytes = (name) => /bytes|block|limit/.test(name) && !/num_|count/.test(name);
  const lines = table("Statistics of the run", ["name", "value", "", "meaning"], report.statistics, window.innerWidth >= 1700 ? 2 : 1).attr("data-statistic", (row) => row.name).attr("data-value", (row) => row.value);
  lines.append("td").append("code").text((row) => row.name);
  lines.append("td").attr("class", "number").text((row) => exact(row.value));
  lines.append("td").attr("class", "number soft").text((row) => (isBytes(row.name) && row.value >= 1024 ? bytesText(row.value) : ""));
  lines.append("td").attr("class", "soft").text((row) => row.meaning);
  const external = report.notes.external ? Object.entries(JSON.parse(report.notes.external)).map(([name, { bytes, source }]) => ({ name, bytes, source })) : [];
  if (external.length === 0) return;
  const rows = table("Bytes of the process outside the allocators, all its ranks together", ["name", "bytes", "", "source"], external, 1).attr("data-external", (row) => row.name).attr("data-value", (row) => row.bytes);
  rows.append("td").append("code").text((row) => row.name);
  rows.append("td").attr("class", "number").text((row) => exact(row.bytes));
  rows.append("td").attr("class", "number soft").text((row) => (row.bytes >= 1024 ? bytesText(row.bytes) : ""));
  rows.append("td").attr("class", "soft").text((row) => row.source);
}
