#!/usr/bin/env python3
"""Breaks the runtime in one place at a time and demands that a test notices.

mutants.py [--build DIR] [--only TEXT]

Works on a copy of the tree, so nothing here changes. Builds the shard suites once, then for each mutant: applies it,
rebuilds, runs the suites, and expects a failure. Prints each verdict; exits 1 where a mutant survived or no longer applies.
"""
import argparse
import pathlib
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RUNNER = "src/runtime/shard/schedule_runner.cpp"
STEP = "src/runtime/shard/step_transaction.cpp"
SUITES = ["test_shard_memory", "test_shard_step", "test_shard_faults"]

# (what is broken, file, text, its replacement). A wrong ticket given to Buffer::last_use is not here: it only weakens the
# allocator's own check, and cannot matter while the waits above it are right.
MUTANTS = [
    ("a gather starts before the releases that come before it", RUNNER,
     "state.gather.wait(state.compute, state.gather_after);", ";"),
    ("a gather starts before the last release", RUNNER,
     "state.gather_after = state.compute.issued();\n  unit.full.last_use",
     "unit.full.last_use"),
    ("a release frees nothing until the step's end", RUNNER, "  unit.full.reset();\n  --state.parameter_sets;",
     "  static std::vector<Buffer> late;\n  late.push_back(std::move(unit.full));\n"
     "  if (step.cursor + 8 > step.plan->schedule.ops().size()) late.clear();\n  --state.parameter_sets;"),
    ("compute does not wait for a gather", RUNNER,
     "state.compute.wait(state.gather, state.unit(op.unit).gathered); break;", "break;"),
    ("a reduction does not wait for the gradient", RUNNER, "state.reduce.wait(state.compute, computed);", ";"),
    ("compute does not wait for a reduction", RUNNER, "state.compute.wait(state.reduce, newest);", ";"),
    ("a gradient is not zeroed", RUNNER, "kernels::fill(full_view(unit, unit.gradient), 0, {state.compute, index});", ";"),
    ("a second micro-batch replaces the gradient", RUNNER,
     "kernels::accumulate(reduced, unit.gradient_shard_view(), {state.reduce, index});",
     "kernels::copy(reduced, unit.gradient_shard_view(), {state.reduce, index});"),
    ("the norm's all-reduce does not wait for the norm", RUNNER,
     "state.reduce.wait(state.compute, state.compute.issued());\n  const TensorView scratch", "const TensorView scratch"),
    ("a failed all-reduce leaves this rank's own norm", RUNNER,
     "kernels::fill(result, std::numeric_limits<double>::quiet_NaN(), state.compute);", ";"),
    ("a set of the phase that follows is called retained", RUNNER, "left.full && left.gathered == gathered", "left.full"),
    ("the update does not wait for the norm's all-reduce", RUNNER,
     "state.compute.wait(state.reduce, state.reduce.issued());", ";"),
    ("a gather may read shards before the update is made", STEP, "state.gather_after = result->ticket;", ";"),
    ("a failing rank does not drain", STEP, "  drain(step);\n  close_step(step);\n  const std::string stream_fault",
     "  close_step(step);\n  const std::string stream_fault"),
    ("the step goes on although a rank voted a fault", STEP, "if (verdict.fault != Fault::none) {",
     "if (verdict.fault != Fault::none && fault != Fault::none) {"),
]


def run(command, **options):
    return subprocess.run(command, capture_output=True, text=True, **options)


def suites_pass(build):
    for suite in SUITES:
        try:
            # A mutant may wait for ever: that counts as noticed.
            if run([build / "tests/shard" / suite, "--gtest_brief=1"], timeout=90).returncode != 0:
                return False
        except subprocess.TimeoutExpired:
            return False
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build-mutants")
    parser.add_argument("--only", default="", help="mutants whose description holds this text")
    arguments = parser.parse_args()
    tree, build = arguments.build / "tree", arguments.build / "out"
    shutil.rmtree(tree, ignore_errors=True)
    files = run(["git", "-C", ROOT, "ls-files"], check=True).stdout.splitlines()
    for name in files:
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tree / name)  # newer than any object that a mutant left
    subprocess.run(["cmake", "-S", tree, "-B", build, "-DHEADROOM_BUILD_PROGRAM=OFF"], check=True,
                   stdout=subprocess.DEVNULL)
    compile_suites = ["cmake", "--build", build, "-j2", "--target", *SUITES]
    subprocess.run(compile_suites, check=True, stdout=subprocess.DEVNULL)
    if not suites_pass(build):
        sys.exit("the suites fail without any mutant: mend them first")
    failures = 0
    for what, name, text, replacement in MUTANTS:
        if arguments.only not in what:
            continue
        path = tree / name
        original = path.read_text()
        if original.count(text) != 1:
            print(f"NOT APPLIED  {what}: expected its text once in {name}, found it {original.count(text)} times")
            failures += 1
            continue
        path.write_text(original.replace(text, replacement))
        built = run(compile_suites).returncode == 0
        caught = built and not suites_pass(build)
        print(f"{'caught' if caught else 'SURVIVED' if built else 'NOT BUILT':<12} {what}", flush=True)
        failures += not caught
        path.write_text(original)
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
