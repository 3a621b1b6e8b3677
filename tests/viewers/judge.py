#!/usr/bin/env python3
"""Trains, and checks each file that viewers open: judge.py PROGRAM WORK_DIR WORLD [--mpirun "mpirun ..."].

A run that fits, one that is refused memory in its first step and, on one rank, a comparison with an arm that does not fit.
Snapshots by viz_check.py, traces by trace_check.py, recordings by the example in CONTRACT.md. WORK_DIR is emptied first.
"""
import argparse
import json
import pathlib
import pickle
import re
import shlex
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
MODEL = ["--layers", "2", "--width", "64", "--heads", "2", "--vocab", "128", "--seq", "32", "--steps", "4", "--quiet"]
LARGE = ["--micro-batch", "64"]
TOO_LITTLE = "8MiB"
BAD_INPUT, BAD_FILE, OUT_OF_MEMORY = 2, 65, 75


def example():
    """The program that CONTRACT.md shows."""
    return re.findall(r"```python\n(.*?)```", (HERE.parent.parent / "CONTRACT.md").read_text(), re.DOTALL)[0]


def run(command, expected=0):
    print("$", shlex.join(map(str, command)), flush=True)
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != expected:
        sys.exit(f"expected exit code {expected}, found {done.returncode}\n{done.stdout}")
    return done.stdout


def check_snapshot(path, refused):
    run([sys.executable, HERE / "viz_check.py", path])
    entries = pickle.loads(path.read_bytes())["device_traces"][0]
    actions = [entry["action"] for entry in entries]
    frames = {frame["name"] for entry in entries for frame in entry["frames"]}
    if ("oom" in actions) != refused or not {"tokens", "forward embedding"} <= frames:
        sys.exit(f"{path}: out of memory: {refused}, found actions {set(actions)} and frames {sorted(frames)}")


def check_files(options, folder, refused):
    for rank in range(options.world):
        check_snapshot(folder / f"{rank}.pickle", refused)
    run([sys.executable, HERE / "trace_check.py", folder / "trace.json", str(options.world)])
    run([sys.executable, HERE / "trace_check.py", folder / "0.json", "1"])
    left = sorted(path.name for path in folder.iterdir())
    named = {f"{rank}{ending}" for rank in range(options.world) for ending in (".pickle", ".json", ".events")}
    if not set(left) <= named | {"trace.json", "report.json"}:
        sys.exit(f"expected no other files, found {left}")


def train(options, name, more, expected=0):
    folder = options.work / name
    folder.mkdir(parents=True)
    launch = shlex.split(options.mpirun) if options.mpirun else []
    ranks = [] if options.mpirun else ["--ranks", str(options.world)]
    command = [*launch, options.program, "train", *MODEL, *ranks, *more, "--json", folder / "report.json",
               "--snapshot", folder / "{rank}.pickle"]
    run([*command, "--trace", folder / "trace.json"], expected)
    run([*command, "--trace", folder / "{rank}.json", "--events", folder / "{rank}.events"], expected)
    check_files(options, folder, refused=expected == OUT_OF_MEMORY)
    return folder


def check_recordings(options, folder):
    of_ranks = json.loads((folder / "report.json").read_text())["memory"]["per_rank"]
    for rank in range(options.world):
        peak = int(run([sys.executable, "-c", example(), folder / f"{rank}.events"]))
        if peak != of_ranks[rank]["allocated_bytes.all.peak"]:
            sys.exit(f"rank {rank}: expected a peak of {of_ranks[rank]['allocated_bytes.all.peak']}, found {peak}")


def inspect(options, folder):
    """What the program makes of a recording afterwards; of one that is cut short, nothing."""
    made = options.work / "made"
    made.mkdir()
    command = [options.program, "inspect", folder / "0.events", "--json", made / "inspection.json"]
    run([*command, "--snapshot", made / "all.pickle", "--trace", made / "0.json"])
    run([*command, "--snapshot", made / "window.pickle", "--steps", "2..3"])
    for name in ("all", "window"):
        run([sys.executable, HERE / "viz_check.py", made / f"{name}.pickle"])
    if (made / "all.pickle").read_bytes() != (folder / "0.pickle").read_bytes():
        sys.exit("expected of a recording the snapshot that its run wrote")
    sizes = [(made / f"{name}.pickle").stat().st_size for name in ("all", "window")]
    if sizes[1] >= sizes[0]:
        sys.exit(f"expected less in a window than in all, found {sizes} bytes")
    run([sys.executable, HERE / "trace_check.py", made / "0.json", "1"])
    run([*command, "--snapshot", made / "none.pickle", "--steps", "9..9"], BAD_INPUT)

    torn = made / "torn.events"
    torn.write_bytes((folder / "0.events").read_bytes()[:-1])
    run([options.program, "inspect", torn, "--snapshot", made / "none.pickle", "--trace", made / "none.json"], BAD_FILE)
    if list(made.glob("none.*")):
        sys.exit(f"expected nothing made of a bad file, found {list(made.glob('none.*'))}")


def compare(options):
    """Arm b does not fit, in the warm-up: its files say why; arm a has none but those of its last round."""
    folder = options.work / "compared"
    folder.mkdir()
    run([options.program, "ab", *MODEL, *LARGE, "--rounds", "1", "--a", "", "--b", f"memory-limit={TOO_LITTLE}",
         "--snapshot", folder / "x.pickle", "--events", folder / "x.events"])
    check_snapshot(folder / "x.b.pickle", refused=True)
    if sorted(path.name for path in folder.iterdir()) != ["x.b.events", "x.b.pickle"]:
        sys.exit(f"expected the files of arm b, found {sorted(folder.iterdir())}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("world", type=int)
    parser.add_argument("--mpirun", help="how to launch WORLD processes; without it ranks are threads")
    options = parser.parse_args()
    shutil.rmtree(options.work, ignore_errors=True)
    fits = train(options, "fits", [])
    check_recordings(options, fits)
    train(options, "refused", [*LARGE, "--memory-limit", TOO_LITTLE], OUT_OF_MEMORY)
    if options.world == 1:
        inspect(options, fits)
        compare(options)


if __name__ == "__main__":
    main()
