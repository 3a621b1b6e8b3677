#!/usr/bin/env python3
"""Runs headroom train over options that change only issue order, storage or launcher, and demands one parameters_crc32c.

equivalence.py HEADROOM [--world 2] [--all] [--mpirun "mpirun ..."]

By default over a pairwise covering array (every value of every option with every value of every other); --all runs the
full product, for hours. Prints the array's size and seed; exits 1 naming the first run that differs.
"""
import argparse
import json
import random
import subprocess
import sys

import covering_array

MODEL = ("--layers 3 --width 32 --heads 2 --seq 32 --micro-batch 2 --accumulate 2 --steps 10 --lr 5e-3 --clip 0.3 "
         "--quiet --json -").split()
FACTORS = {
    "backward-prefetch": ["none", "pre", "post"],
    "forward-prefetch": ["0", "1", "2", "3"],
    "limit-all-gathers": ["off", "1", "2", "3"],
    "limit-reduce-scatters": ["off", "1", "2", "3"],
    "keep-after-forward": ["none", "last", "all", "h.1"],
    "shard": ["full_shard", "shard_grad_op"],
    "buffers": ["planned", "observed"],
    "communicators": ["1", "2"],
    "recompute": ["none", "unit"],
    "verify": ["off", "on"],
    "launcher": ["threads", "mpirun"],
    "executor": ["threads"] + [f"seeded {seed}" for seed in range(1, 21)],
}


def command(arguments, row):
    options = dict(zip(FACTORS, row))
    launcher = options.pop("launcher")
    verify = ["--verify"] if options.pop("verify") == "on" else []
    executor, _, seed = options.pop("executor").partition(" ")
    spelled = [word for key, value in options.items() for word in (f"--{key}", value)]
    spelled += verify + ["--executor", executor] + (["--executor-seed", seed] if seed else [])
    if launcher == "mpirun":
        head = arguments.mpirun.split() + ["-n", str(arguments.world), arguments.headroom, "train"]
    else:
        head = [arguments.headroom, "train", "--ranks", str(arguments.world)]
    return head + MODEL + spelled


def checksum(arguments, row):
    line = command(arguments, row)
    run = subprocess.run(line, capture_output=True, text=True, timeout=120)
    if run.returncode != 0:
        sys.exit(f"exit code {run.returncode}: {' '.join(line)}\n{run.stderr}")
    report = json.loads(run.stdout)
    planned = report["config"]["buffers"] == "planned"
    if planned and report["memory"]["sets_peak"]["parameters"] > report["schedule"]["bound"]["parameter_sets"]:
        sys.exit(f"more live parameter sets than the schedule's bound: {' '.join(line)}")
    return report["parameters_crc32c"], [step["loss"] for step in report["steps"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headroom")
    parser.add_argument("--world", type=int, default=2)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--mpirun", default="mpirun --oversubscribe --allow-run-as-root --bind-to none")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rows = (covering_array.product(FACTORS) if arguments.all
            else covering_array.pairwise(FACTORS, random.Random(arguments.seed)))
    print(f"{len(rows)} runs at world size {arguments.world}, seed {arguments.seed}", flush=True)
    expected = None
    for row in rows:
        found = checksum(arguments, row)
        expected = expected or found
        if found != expected:
            sys.exit(f"parameters_crc32c or losses differ: {expected[0]} of {' '.join(command(arguments, rows[0]))}\n"
                     f"but {found[0]} of {' '.join(command(arguments, row))}")
    print(f"all gave parameters_crc32c {expected[0]}")


if __name__ == "__main__":
    main()
