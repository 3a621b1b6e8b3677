#!/usr/bin/env python3
"""Checks a Chrome trace by the rules of Perfetto's JSON importer: trace_check.py FILE.json RANKS.

Each phase has the keys that it needs; slices of a thread nest; each flow has one start and one end, in that order and each
inside a slice of its thread; counters are numbers; asynchronous begins and ends pair; processes and threads have names.
Beyond the importer's rules: one process a rank, aligned in time, and the parts of a counter agree with each other.
"""
import collections
import json
import sys

TIMED = {"X", "C", "s", "f", "b", "e"}
KEYS = {"X": ("tid", "dur", "name"), "C": ("name", "args"), "s": ("tid", "id", "name", "cat"),
        "f": ("tid", "id", "name", "cat", "bp"), "b": ("id", "name", "cat"), "e": ("id", "name", "cat"), "M": ("name", "args")}


class Bad(Exception):
    pass


def expect(condition, what, event=None):
    if not condition:
        raise Bad(what if event is None else f"{what}: {json.dumps(event)}")


def nanoseconds(value):
    return round(value * 1000)


def check_keys(event):
    expect(event.get("ph") in KEYS, "expected a known phase", event)
    expect(isinstance(event.get("pid"), int), "expected a process", event)
    for key in KEYS[event["ph"]]:
        expect(key in event, f"expected the key {key}", event)
    expect(isinstance(event["name"], str), "expected a name that is text", event)
    for key in ("ts", "dur") if event["ph"] in TIMED else ():
        number = event.get(key, 0 if key == "dur" else None)
        expect(isinstance(number, (int, float)) and number >= 0, f"expected {key} >= 0", event)


def check_nesting(slices):
    """`slices` of one thread; returns them by start."""
    slices.sort(key=lambda each: (each[0], -each[1]))
    open_slices = []
    for start, end, event in slices:
        while open_slices and open_slices[-1] <= start:
            open_slices.pop()
        expect(not open_slices or end <= open_slices[-1], "expected slices that nest", event)
        open_slices.append(end)


def check_flows(flows, slices):
    for key, ends in flows.items():
        expect([end["ph"] for end in ends] in (["s", "f"], ["f", "s"]), f"expected one start and one end of flow {key}", ends[0])
        start, end = sorted(ends, key=lambda each: each["ph"], reverse=True)
        expect(start["ts"] <= end["ts"], "expected a flow that ends after it starts", end)
        expect(end["bp"] == "e", "expected an end bound to the slice around it", end)
        for each in ends:
            at = nanoseconds(each["ts"])
            of_thread = slices[each["pid"], each["tid"]]
            expect(any(begin <= at < last for begin, last, _ in of_thread), "expected a flow's end inside a slice", each)


def check_lives(lives):
    for key, ends in lives.items():
        expect([end["ph"] for end in ends] == ["b", "e"], f"expected one begin and one end of {key}", ends[0])
        begin, end = ends
        expect(begin["ts"] <= end["ts"] and begin["name"] == end["name"] and begin["pid"] == end["pid"],
               "expected an end that belongs to its begin", end)


def check_counters(counters):
    last = {}
    for event in counters:
        values = event["args"].values()
        expect(values and all(isinstance(value, (int, float)) and value >= 0 for value in values), "expected numbers", event)
        last[event["pid"], event["name"]] = event
        if event["name"] == "reserved bytes":
            expect(set(event["args"]) == {"allocated", "pending", "cached"}, "expected the parts of what is reserved", event)
            allocated = last[event["pid"], "allocated bytes"]
            expect(allocated["ts"] == event["ts"] and sum(allocated["args"].values()) == event["args"]["allocated"],
                   "expected categories that sum to allocated", event)


def check_names(events, threads):
    named = {(event["pid"], event["tid"]) for event in events if event["ph"] == "M" and event["name"] == "thread_name"}
    expect(threads <= named, f"expected names of all threads, not of {threads - named}")
    processes = [event["pid"] for event in events if event["ph"] == "M" and event["name"] == "process_name"]
    expect(sorted(processes) == sorted({event["pid"] for event in events}), f"expected each process named once: {processes}")


def check(trace, ranks):
    """Raises Bad. Returns the number of events by phase."""
    expect(isinstance(trace, dict) and isinstance(trace.get("traceEvents"), list), "expected an object with traceEvents")
    events = trace["traceEvents"]
    slices, flows, lives = (collections.defaultdict(list) for _ in range(3))
    spans = {}
    for event in events:
        check_keys(event)
        if event["ph"] == "X":
            start = nanoseconds(event["ts"])
            slices[event["pid"], event["tid"]].append((start, start + nanoseconds(event["dur"]), event))
            first, last = spans.get(event["pid"], (start, start))
            spans[event["pid"]] = (min(first, start), max(last, start))
        elif event["ph"] in "sf":
            flows[event["cat"], event["id"]].append(event)
        elif event["ph"] in "be":
            lives[event["cat"], event["id"]].append(event)
    for of_thread in slices.values():
        check_nesting(of_thread)
    check_flows(flows, slices)
    check_lives(lives)
    check_counters([event for event in events if event["ph"] == "C"])
    check_names(events, set(slices))
    expect(sorted(spans) == list(range(ranks)), f"expected slices of {ranks} ranks, found those of {sorted(spans)}")
    expect(max(first for first, _ in spans.values()) < min(last for _, last in spans.values()), "expected ranks at one time")
    return collections.Counter(event["ph"] for event in events)


def main():
    path, ranks = sys.argv[1], int(sys.argv[2])
    with open(path, encoding="utf-8") as file:
        try:
            print("OK", path, dict(check(json.load(file), ranks)))
        except Bad as bad:
            sys.exit(f"{path}: {bad}")


if __name__ == "__main__":
    main()
