// The numbers of this page; all that it shows is computed from them.
const report = JSON.parse(document.getElementById("data").textContent);
window.headroom = report;

const PENDING = -1, GONE = -2;

/** Milliseconds of the device's clock after the step's first operation. */
const deviceMs = (step, ns) => (ns - step.device[0]) / 1e6;

/** A step on one clock: bytes of each tag at each instant. An instant holds until the next one. */
class StepModel {
  constructor(step, clock) {
    this.step = step;
    this.clock = clock;
    this.range = clock === "issue" ? [step.begin_event, step.end_event] : [0, deviceMs(step, step.device[1])];
    if (this.range[1] <= this.range[0]) this.range[1] = this.range[0] + 1;
    this.#order();
    this.#fold();
  }

  /** What happens, in order: a block turns `to` a tag, PENDING or GONE; or a region's reserved bytes change. */
  #order() {
    const { changes, device_spans: spans, reserved } = this.step, [begin, end] = this.range, items = [];
    if (this.clock === "issue") {
      for (let i = 0; i < changes.block.length; ++i)
        items.push({ x: changes.event[i], event: changes.event[i], block: changes.block[i], to: changes.tag[i] });
    } else {
      for (let i = 0; i < spans.block.length; ++i) {
        items.push({ x: deviceMs(this.step, spans.begin[i]), event: 0, block: spans.block[i], to: spans.tag[i] });
        const goes_on = spans.block[i + 1] === spans.block[i] && spans.begin[i + 1] === spans.end[i];
        if (!goes_on) items.push({ x: deviceMs(this.step, spans.end[i]), event: 0, block: spans.block[i], to: GONE });
      }
    }
    for (let i = 0; i < reserved.event.length; ++i) {
      const x = this.clock === "issue" ? reserved.event[i] : Math.min(end, deviceMs(this.step, reserved.host[i]));
      items.push({ x, event: reserved.event[i], reserved: i });
    }
    for (const item of items) item.x = Math.max(begin, item.x);
    this.items = items.filter((item) => item.x <= end).sort((a, b) => a.x - b.x || a.event - b.event);
  }

  #fold() {
    const { blocks, reserved } = this.step;
    const state = new Int8Array(blocks.bytes.length).fill(GONE);
    const now = { tags: new Float64Array(report.tags.length), pending: 0, allocated: 0, live: [0, 0, 0], reserved: [0, 0, 0] };
    this.x = [];
    this.ends = []; // of items: how many have happened at each instant
    this.tags = report.tags.map(() => []);
    this.pending = [];
    this.allocated = [];
    this.live = [[], [], []];
    this.reserved = [[], [], []];
    const add = (block, tag, sign) => {
      const bytes = sign * blocks.bytes[block];
      if (tag === PENDING) now.pending += bytes;
      if (tag < 0) return;
      now.tags[tag] += bytes;
      now.allocated += bytes;
      now.live[blocks.region[block]] += bytes;
    };
    this.items.forEach((item, i) => {
      if (item.reserved !== undefined) {
        now.reserved[reserved.region[item.reserved]] = reserved.bytes[item.reserved];
      } else {
        add(item.block, state[item.block], -1);
        add(item.block, item.to, 1);
        state[item.block] = item.to;
      }
      if (i + 1 === this.items.length || this.items[i + 1].x > item.x) this.#push(item.x, i + 1, now);
    });
    this.peak = d3.scan(this.allocated, (a, b) => b - a);
  }

  #push(x, end, now) {
    this.x.push(x);
    this.ends.push(end);
    now.tags.forEach((bytes, tag) => this.tags[tag].push(bytes));
    this.pending.push(now.pending);
    this.allocated.push(now.allocated);
    for (let region = 0; region < 3; ++region) {
      this.live[region].push(now.live[region]);
      this.reserved[region].push(now.reserved[region]);
    }
  }

  get count() { return this.x.length; }
  totalReserved(i) { return this.reserved[0][i] + this.reserved[1][i] + this.reserved[2][i]; }
  /** The instant that holds at x. */
  at(x) { return Math.max(0, d3.bisectRight(this.x, x) - 1); }

  /** The blocks that live at instant i, with their tag (or PENDING). */
  liveAt(i) {
    const state = new Map();
    for (const { block, to } of this.items.slice(0, this.ends[i])) {
      if (to === GONE) state.delete(block);
      else if (to !== undefined) state.set(block, to);
    }
    return Array.from(state, ([block, tag]) => ({ block, tag }));
  }
}

const models = new Map();
function modelOf(index, clock) {
  const key = `${index} ${clock}`;
  if (!models.has(key)) models.set(key, new StepModel(report.steps[index], clock));
  return models.get(key);
}

const hasDeviceClock = report.steps.some((step) => step.operations.start.length > 0);
const unitName = (unit) => (unit >= 0 && unit < report.units.length ? report.units[unit] : "");
const stepName = (step) => (step === 0 ? "set-up" : `step ${d3.format(",")(step)}`);

/** A step's visits: a unit's forward or backward, from its mark to the next one's, by event and by host time. */
function visitsOf(step) {
  const { marks } = step, visits = [];
  for (let i = 0; i < marks.event.length; ++i) {
    const [phase, operation] = report.names[marks.name[i]].split(" ");
    const begins = phase === operation, between = ["all_gather", "reduce_scatter", "all_reduce"].includes(operation);
    const last = visits[visits.length - 1];
    if (begins) visits.push({ phase, unit: marks.unit[i], event: marks.event[i], host: marks.host[i], end: null, hostEnd: null });
    if (last && last.end === null && (begins || between)) {
      last.end = marks.event[i];
      last.hostEnd = marks.host[i];
    }
  }
  for (const visit of visits) {
    visit.end = visit.end === null ? step.end_event : visit.end;
    visit.hostEnd = visit.hostEnd === null ? step.host[1] : visit.hostEnd;
  }
  return visits;
}

/** "backward of h.5 (mlp)": the last mark up to an event. */
function placeOf(step, event) {
  const { marks } = step, i = d3.bisectRight(marks.event, event) - 1;
  if (i < 0) return "";
  const [phase, operation] = report.names[marks.name[i]].split(" ");
  const unit = unitName(marks.unit[i]);
  return phase + (unit ? ` of ${unit}` : "") + (operation && operation !== phase ? ` (${operation})` : "");
}
