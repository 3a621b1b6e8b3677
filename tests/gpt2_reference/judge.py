#!/usr/bin/env python3
"""Trains as the reference did and compares: judge.py PROGRAM WORK_DIR WORLD [--mpirun "mpirun ..."] [--refuses].

Each of none, pre and post, each way to split the global batch of 12 that the world allows. With --refuses: a run with another
learning rate, which compare.py must find to be different. WORK_DIR is emptied first.
"""
import argparse
import pathlib
import shlex
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TINY = HERE / "tiny"
GLOBAL_BATCH = 12
ACCUMULATE = {1: (1, 2), 2: (1, 2), 3: (1, 2), 4: (1, 3)}  # By world size: what divides the batch.


def run(command):
    print("$", shlex.join(map(str, command)), flush=True)
    return subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode


def train_and_compare(options, folder, prefetch, accumulate, rate="5e-3"):
    """compare.py's exit code; stops the program where training itself fails."""
    folder.mkdir(parents=True)
    launch = shlex.split(options.mpirun) if options.mpirun else []
    ranks = [] if options.mpirun else ["--ranks", str(options.world)]
    micro_batch = GLOBAL_BATCH // (options.world * accumulate)
    train = [*launch, options.program, "train", *ranks, "--init", TINY, "--data", TINY / "tokens.bin",
             "--order", "sequential", "--seq", "48", "--micro-batch", str(micro_batch), "--accumulate", str(accumulate),
             "--backward-prefetch", prefetch, "--steps", "10", "--lr", rate, "--clip", "0.30",
             "--export", folder / "out", "--json", folder / "report.json"]
    if code := run(train):
        sys.exit(f"training ended with {code}")
    return run([sys.executable, HERE / "compare.py", TINY, folder / "report.json", folder / "out", "--tolerance", "2e-5"])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("world", type=int, choices=sorted(ACCUMULATE))
    parser.add_argument("--mpirun", help="how to launch WORLD processes; without it ranks are threads")
    parser.add_argument("--refuses", action="store_true")
    options = parser.parse_args()
    shutil.rmtree(options.work, ignore_errors=True)
    if options.refuses:
        sys.exit(train_and_compare(options, options.work / "other_rate", "none", 1, rate="4e-3") != 1)
    cases = [(prefetch, k) for prefetch in ("none", "pre", "post") for k in ACCUMULATE[options.world]]
    different = [f"{p} accumulate {k}" for p, k in cases if train_and_compare(options, options.work / f"{p}{k}", p, k)]
    print(f"{len(cases)} runs; differ from the reference: {', '.join(different) or 'none'}")
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
