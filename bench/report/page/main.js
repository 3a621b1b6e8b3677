// What buttons, keys and the pointer do.
const byId = (id) => document.getElementById(id);

function showTip(lines) {
  const tip = byId("tip"), event = d3.event.touches ? d3.event.touches[0] : d3.event;
  tip.innerHTML = "";
  lines.forEach((line, i) => {
    const node = document.createElement(i === 0 ? "b" : "div");
    node.textContent = line;
    tip.appendChild(node);
  });
  tip.hidden = false;
  const right = event.clientX + 14 + tip.offsetWidth > window.innerWidth, below = event.clientY + 16 + tip.offsetHeight > window.innerHeight;
  tip.style.left = `${right ? event.clientX - 14 - tip.offsetWidth : event.clientX + 14}px`;
  tip.style.top = `${below ? event.clientY - 12 - tip.offsetHeight : event.clientY + 16}px`;
}
function hideTip() { byId("tip").hidden = true; }

function note(message) {
  byId("note").hidden = message === "";
  byId("note").textContent = message;
}

/** Draws anew, from the whole step, after the clock or the step changed. */
function restart() {
  state.hover = state.pinned = null;
  zoomed = d3.zoomIdentity;
  svg.node().__zoom = zoomed;
  draw();
  drawOverview();
  drawRegions();
  byId("clock-issue").setAttribute("aria-pressed", state.clock === "issue");
  byId("clock-device").setAttribute("aria-pressed", state.clock === "device");
  byId("views").disabled = state.clock !== "issue" || model.step.views.event.length === 0;
  byId("step").value = state.index;
  byId("step-before").disabled = state.index === 0;
  byId("step-after").disabled = state.index + 1 === report.steps.length;
  const { step } = model;
  note(step.whole ? "" : `This step is too long to show whole: events ${exact(step.begin_event)} to ${exact(step.end_event - 1)} around its peak are shown.`);
}

function setClock(clock) {
  if (clock === "device" && !hasDeviceClock) return;
  state.clock = clock;
  restart();
}

function setStep(index) {
  if (index < 0 || index >= report.steps.length) return;
  state.index = index;
  restart();
}

/** By its number, where this page has its detail. */
function chooseStep(step) {
  const index = report.steps.findIndex((candidate) => candidate.step === step);
  if (index >= 0) { setStep(index); return; }
  const kept = report.steps.map((candidate) => candidate.step), i = report.overview.step.indexOf(step);
  note(`This page keeps no detail of ${stepName(step)} (peak allocated ${bytesText(report.overview.allocated[i])}, reserved ${bytesText(report.overview.reserved[i])}). It has that of ${kept.length} steps: the peak's, the first and the last ones.`);
}

function toggleBand(name) {
  if (state.hidden.has(name)) state.hidden.delete(name);
  else state.hidden.add(name);
  for (const id of ["no-residents", "only-sets"]) byId(id).setAttribute("aria-pressed", "false");
  draw();
}

/** Hides what a button is for, or shows everything again. */
function toggleHidden(button, names) {
  const on = byId(button).getAttribute("aria-pressed") !== "true";
  state.hidden = new Set(on ? names : []);
  for (const id of ["no-residents", "only-sets"]) byId(id).setAttribute("aria-pressed", on && id === button);
  draw();
}
function toggleViews() {
  if (byId("views").disabled) return;
  state.views = !state.views;
  byId("views").setAttribute("aria-pressed", state.views);
  draw();
}
const toggleResidents = () => toggleHidden("no-residents", RESIDENTS);
const toggleSets = () => toggleHidden("only-sets", [...BANDS.filter((band) => !band.set).map((band) => band.name), PENDING_BAND.name]);

function pin(i) {
  state.pinned = i;
  moveCrosshair();
}

function goToPeak() {
  if (report.peak) {
    const index = report.steps.findIndex((step) => step.step === report.peak.step);
    if (index >= 0 && index !== state.index) setStep(index);
  }
  svg.call(zoom.transform, d3.zoomIdentity);
  pin(peakInstant());
}

const zoom = d3.zoom().scaleExtent([1, 4000])
  .filter(() => (d3.event.type === "wheel" ? d3.event.ctrlKey || d3.event.metaKey : !d3.event.button && d3.event.type !== "dblclick"))
  .on("zoom", () => {
    if (!model) return;
    const { left, right } = scales, t = d3.event.transform;
    const x = Math.min(left * (1 - t.k) + 0, Math.max(right * (1 - t.k), t.x));
    zoomed = d3.zoomIdentity.translate(x, 0).scale(t.k);
    svg.node().__zoom = zoomed;
    draw();
  });
const zoomBy = (factor) => {
  const centre = scales.x(model.x[selected()]);
  const at = centre >= scales.left && centre <= scales.right ? centre : (scales.left + scales.right) / 2;
  svg.call(zoom.scaleBy, factor, [at, 0]);
};

function hover() {
  const [px, py] = d3.mouse(svg.node());
  if (px < scales.left || px > scales.right) { leave(); return; }
  state.hover = instantAt(px);
  const inStack = py >= layout.top && py <= layout.bottom;
  state.lit = inStack && state.pinned === null ? bandAt(state.hover, scales.y.invert(py)) : null;
  moveCrosshair();
  lightBands();
  const lines = laneTip(px, py) || lifetimeTip(px, py) || (state.lit ? [state.lit, bytesText(bandBytes(state.lit, state.hover))] : null);
  if (lines) showTip(lines);
  else hideTip();
}
const bandBytes = (name, i) => {
  const band = name === PENDING_BAND.name ? PENDING_BAND : BANDS.find((candidate) => candidate.name === name);
  return band.tag === PENDING ? model.pending[i] : model.tags[band.tag][i];
};
function leave() {
  state.hover = state.lit = null;
  hideTip();
  moveCrosshair();
  lightBands();
}

/** The figure as a PNG, at twice its size on the screen. */
function savePng() {
  const clone = svg.node().cloneNode(true);
  clone.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const image = new Image(), { width, height } = layout, scale = 2;
  image.onload = () => {
    const canvas = document.createElement("canvas");
    canvas.width = width * scale;
    canvas.height = height * scale;
    const context = canvas.getContext("2d");
    context.fillStyle = "#fff";
    context.fillRect(0, 0, canvas.width, canvas.height);
    context.drawImage(image, 0, 0, canvas.width, canvas.height);
    const link = document.createElement("a");
    link.download = `headroom-${stepName(model.step.step).replace(" ", "-")}-${state.clock}.png`;
    link.href = canvas.toDataURL("image/png");
    link.click();
  };
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(new XMLSerializer().serializeToString(clone))}`;
}

const KEYS = {
  p: goToPeak, c: () => setClock(state.clock === "issue" ? "device" : "issue"), r: toggleResidents, s: toggleSets, v: toggleViews,
  "[": () => setStep(state.index - 1), "]": () => setStep(state.index + 1),
  "+": () => zoomBy(2), "=": () => zoomBy(2), "-": () => zoomBy(0.5), "0": () => svg.call(zoom.transform, d3.zoomIdentity),
  Escape: () => { state.pinned = null; moveCrosshair(); },
  ArrowLeft: (event) => pin(Math.max(0, selected() - (event.shiftKey ? 20 : 1))),
  ArrowRight: (event) => pin(Math.min(model.count - 1, selected() + (event.shiftKey ? 20 : 1))),
};

function start() {
  showHeader();
  showTables();
  if (report.steps.length === 0) { note("The log has no events."); return; }
  const options = d3.select("#step").selectAll("option").data(report.steps).enter().append("option");
  options.attr("value", (step, i) => i).text((step) => stepName(step.step) + (report.peak && step.step === report.peak.step ? " (peak)" : ""));
  byId("step").onchange = (event) => setStep(Number(event.target.value));
  byId("step-before").onclick = () => setStep(state.index - 1);
  byId("step-after").onclick = () => setStep(state.index + 1);
  byId("clock-issue").onclick = () => setClock("issue");
  byId("clock-device").onclick = () => setClock("device");
  byId("clock-device").disabled = !hasDeviceClock;
  byId("zoom-in").onclick = () => zoomBy(2);
  byId("zoom-out").onclick = () => zoomBy(0.5);
  byId("zoom-all").onclick = () => svg.call(zoom.transform, d3.zoomIdentity);
  byId("go-peak").onclick = goToPeak;
  byId("only-sets").onclick = toggleSets;
  byId("views").onclick = toggleViews;
  byId("no-residents").onclick = toggleResidents;
  byId("save").onclick = savePng;
  svg.call(zoom).on("dblclick.zoom", null).on("mousemove", hover).on("mouseleave", leave)
    .on("click", () => { if (!d3.event.defaultPrevented) pin(state.pinned === null && state.hover !== null ? state.hover : null); });
  document.addEventListener("keydown", (event) => {
    const typing = /^(SELECT|INPUT|TEXTAREA)$/.test(event.target.tagName) || event.ctrlKey || event.metaKey || event.altKey;
    const action = KEYS[event.key];
    if (typing || !action) return;
    event.preventDefault();
    action(event);
  });
  state.index = Math.max(0, report.steps.findIndex((step) => report.peak && step.step === report.peak.step));
  restart();
  let waiting = null;
  window.addEventListener("resize", () => {
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => { draw(); drawOverview(); });
  });
}
/** Selects the instant of an event, as a click on it does; for those who read this page by script. */
report.select = (event) => {
  if (state.clock !== "issue") setClock("issue");
  pin(model.at(event));
};
start();
