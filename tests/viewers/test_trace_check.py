#!/usr/bin/env python3
"""Breaks a small trace in each way that trace_check.py must see."""
import copy
import sys

import trace_check

GOOD = {"traceEvents": [
    {"ph": "M", "pid": 0, "tid": 0, "name": "process_name", "args": {"name": "rank 0"}},
    {"ph": "M", "pid": 0, "tid": 1, "name": "thread_name", "args": {"name": "compute"}},
    {"ph": "M", "pid": 0, "tid": 2, "name": "thread_name", "args": {"name": "gather"}},
    {"ph": "X", "pid": 0, "tid": 1, "ts": 1.5, "dur": 4, "name": "work"},
    {"ph": "X", "pid": 0, "tid": 1, "ts": 2, "dur": 1.5, "name": "inner"},
    {"ph": "X", "pid": 0, "tid": 2, "ts": 1, "dur": 9, "name": "wait"},
    {"ph": "s", "pid": 0, "tid": 1, "ts": 5.499, "id": 1, "cat": "wait", "name": "wait"},
    {"ph": "f", "pid": 0, "tid": 2, "ts": 9.999, "id": 1, "cat": "wait", "name": "wait", "bp": "e"},
    {"ph": "C", "pid": 0, "ts": 3, "name": "allocated bytes", "args": {"activation": 3, "input": 2}},
    {"ph": "C", "pid": 0, "ts": 3, "name": "reserved bytes", "args": {"allocated": 5, "pending": 1, "cached": 2}},
    {"ph": "b", "pid": 0, "tid": 1, "ts": 1, "id": "0x1", "cat": "memory", "name": "x"},
    {"ph": "e", "pid": 0, "tid": 1, "ts": 2, "id": "0x1", "cat": "memory", "name": "x"},
]}
FAULTS = [  # which event, and what becomes of it
    (0, None), (1, None), (3, {"dur": None}), (3, {"ts": -1}), (3, {"ph": "Q"}), (4, {"dur": 100}), (6, None), (7, None),
    (6, {"ts": 7}), (6, {"ts": 5.5}), (7, {"ts": 1}), (7, {"bp": "s"}), (8, {"args": {"activation": "3"}}),
    (8, {"args": {"activation": 9}}), (9, {"args": {"allocated": 5}}), (10, None), (11, {"id": "0x2"}), (11, {"ts": 0}),
    (5, {"pid": 1}),
]


def is_refused(trace):
    try:
        trace_check.check(trace, 1)
    except trace_check.Bad:
        return True
    return False


def main():
    failures = ["the good trace is refused"] if is_refused(GOOD) else []
    for index, change in FAULTS:
        trace = copy.deepcopy(GOOD)
        if change is None:
            del trace["traceEvents"][index]
        else:
            trace["traceEvents"][index].update(change)
        if not is_refused(trace):
            failures.append(f"event {index} with {change} is accepted")
    sys.exit("\n".join(failures) or 0)


if __name__ == "__main__":
    main()
