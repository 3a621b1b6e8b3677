#!/usr/bin/env python3
"""Trains as the reference did and compares: judge.py PROGRAM WORK_DIR WORLD [--mpirun "mpirun ..."] [--cover HOW] [--bf16].

Over what must not change the result: strategies, accumulation, wrapping, rematerialization, buffers, prefetch, and the ways to
split the global batch of 12 that the world allows. HOW: `pairs` (default; each value beside each of every other option), `once`
(each value at least once) or `all` (the full product). --bf16: gathers and reductions in bf16, to 1 %. --refuses: a run with
another learning rate, which compare.py must find to be different. WORK_DIR is emptied first.
"""
import argparse
import pathlib
import random
import shlex
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent.parent / "scripts"))
import covering_array  # noqa: E402

TINY = HERE / "tiny"
GLOBAL_BATCH = 12
SPLITS = {1: ("1", "2"), 2: ("1", "2"), 3: ("1", "2"), 4: ("1", "3")}  # By world size: micro-batches that divide the batch.
HYBRID_WORLDS = (2, 4)
COVERS = {"pairs": lambda factors: covering_array.pairwise(factors, random.Random(1)),
          "once": covering_array.once, "all": covering_array.product}


def factors_of(options):
    strategies = ["full_shard", "shard_grad_op"]
    strategies += ["hybrid(2)"] if options.world in HYBRID_WORLDS else []
    strategies += ["no_shard"]
    return {"shard": strategies, "accumulate": SPLITS[options.world], "accumulation": ["sharded", "full"],
            "wrap": ["block", "half", "2"], "recompute": ["none", "unit"], "buffers": ["planned", "observed"],
            "backward-prefetch": ["none", "pre", "post"]}


def run(command):
    print("$", shlex.join(map(str, command)), flush=True)
    return subprocess.run(command, stdin=subprocess.DEVNULL, check=False).returncode


def train_and_compare(options, name, case, rate="5e-3"):
    """compare.py's exit code; stops the program where training itself fails."""
    folder = options.work / name
    folder.mkdir(parents=True)
    launch = shlex.split(options.mpirun) if options.mpirun else []
    ranks = [] if options.mpirun else ["--ranks", str(options.world)]
    micro_batch = GLOBAL_BATCH // (options.world * int(case["accumulate"]))
    dtypes = ["--reduced", "bf16"] if options.bf16 else []
    if options.bf16 and case["shard"] != "no_shard":  # which gathers nothing
        dtypes += ["--gathered", "bf16"]
    train = [*launch, options.program, "train", *ranks, "--init", TINY, "--data", TINY / "tokens.bin",
             "--order", "sequential", "--seq", "48", "--micro-batch", str(micro_batch), *dtypes,
             *(word for key, value in case.items() for word in (f"--{key}", value)),
             "--steps", "10", "--lr", rate, "--clip", "0.30",
             "--export", folder / "out", "--json", folder / "report.json"]
    if code := run(train):
        sys.exit(f"training ended with {code}")
    tolerance = "1e-2" if options.bf16 else "2e-5"
    return run([sys.executable, HERE / "compare.py", TINY, folder / "report.json", folder / "out", "--tolerance", tolerance])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("world", type=int, choices=sorted(SPLITS))
    parser.add_argument("--mpirun", help="how to launch WORLD processes; without it ranks are threads")
    parser.add_argument("--cover", choices=COVERS, default="pairs")
    parser.add_argument("--bf16", action="store_true")
    parser.add_argument("--refuses", action="store_true")
    options = parser.parse_args()
    shutil.rmtree(options.work, ignore_errors=True)
    if options.refuses:
        sys.exit(train_and_compare(options, "other_rate", {"accumulate": "1"}, rate="4e-3") != 1)
    factors = factors_of(options)
    cases = [dict(zip(factors, row)) for row in COVERS[options.cover](factors)]
    different = [str(case) for i, case in enumerate(cases) if train_and_compare(options, str(i), case)]
    print(f"{len(cases)} runs; differ from the reference: {', '.join(different) or 'none'}")
    sys.exit(bool(different))


if __name__ == "__main__":
    main()
