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
GATHER = "src/runtime/shard/gather.cpp"
REDUCE = "src/runtime/shard/reduce.cpp"
BUFFERS = "src/runtime/shard/step_buffers.cpp"
UNPLANNED = "src/runtime/shard/unplanned_step.cpp"
STEP = "src/runtime/shard/step_transaction.cpp"
SUITES = ["test_shard_memory", "test_shard_step", "test_shard_faults", "test_shard_strategies"]

# (what is broken, file, text, its replacement). A wrong ticket given to Buffer::last_use is not here: it only weakens the
# allocator's own check, and cannot matter while the waits above it are right.
MUTANTS = [
    ("a gather starts before the releases that come before it", BUFFERS,
     "is_observed(step) ? state.applied : state.gather_after", "state.applied"),
    ("a gather starts before the last release", BUFFERS, "  state.gather_after = released;\n", ""),
    ("a release frees nothing until the step's end", BUFFERS, "  unit.full.reset();\n  if (!unit.full_counts)",
     "  static std::vector<Buffer> late;\n  late.push_back(std::move(unit.full));\n"
     "  if (step.cursor + 8 > step.ops().size()) late.clear();\n  if (!unit.full_counts)"),
    ("compute does not wait for a gather", RUNNER,
     "state.compute.wait(state.gather, state.unit(op.unit).gathered); break;", "break;"),
    ("a reduction does not wait for the gradient", REDUCE, "state.reduce.wait(state.compute, computed);", ";"),
    ("compute does not wait for a reduction", REDUCE, "state.compute.wait(state.reduce, newest);", ";"),
    ("compute waits for an older reduction", REDUCE, "end += end != step.reducing.end() ? 1 : 0;", ";"),
    ("a gradient is not zeroed", REDUCE,
     "kernels::fill(view_of(unit.gradient, DType::f32, 0, unit.layout.trainable.padded_numel), 0,\n"
     "                    {state.compute, index});", ";"),
    ("a gradient of the shard's own is not zeroed", REDUCE,
     "kernels::fill(unit.gradient_shard_view(), 0, {state.compute, index});\n    unit.gradient_written = true;",
     "unit.gradient_written = true;"),
    ("a second micro-batch replaces the gradient", REDUCE,
     "kernels::accumulate(summed, unit.gradient_shard_view(), {state.reduce, index});",
     "kernels::cast(summed, unit.gradient_shard_view(), {state.reduce, index});"),
    ("gradients are not summed across groups", REDUCE,
     "replicate.all_reduce(unit.gradient_shard_view(), state.scratch_view(), state.reduce, index);", ";"),
    ("a gradient summed in bf16 is not widened again", REDUCE,
     "kernels::cast(full, unit.gradient_shard_view(), {state.reduce, index});", ";"),
    ("the norm is not summed over the shard group", REDUCE,
     "state.communicators.reduce->all_reduce(partial, state.scratch_view(), state.reduce);", ";"),
    ("the loss is not summed across groups", REDUCE,
     "state.communicators.replicate->all_reduce(state.scalars_view(5, 1), state.scratch_view(), state.reduce);", ";"),
    ("the norm's all-reduce does not wait for the norm", REDUCE,
     "state.reduce.wait(state.compute, state.compute.issued());", ";"),
    ("a failed all-reduce leaves this rank's own norm", REDUCE,
     "kernels::fill(result, std::numeric_limits<double>::quiet_NaN(), state.compute);", ";"),
    ("the update does not wait for the norm's all-reduce", REDUCE,
     "state.compute.wait(state.reduce, state.reduce.issued());", ";"),
    ("a set of the phase that follows is called retained", RUNNER, "left.full && left.gathered == gathered", "left.full"),
    ("frozen parameters are not gathered", GATHER, "if (groups[i].padded_numel > 0) {",
     "if (groups[i].padded_numel > 0 && i == 0) {"),
    ("a checksum is taken of the first owner only", GATHER, "for (int owner = 0; owner < ranks; ++owner) {",
     "for (int owner = 0; owner < 1; ++owner) {"),
    ("a checksum that differs passes", GATHER, "if (found != expected) {", "if (false) {"),
    ("a release that was seen gives no block back", BUFFERS,
     "  state.gather.wait(state.compute, state.releases[count - 1].ticket);\n", ""),
    ("the limiter waits for nothing", BUFFERS, "state.compute.synchronize(std::prev(end)->ticket);", ";"),
    ("an observed step is drained where it allocates", BUFFERS,
     "  if (step.draining) {\n    return step.drain_set.view(0, bytes, state.name(unit));\n  }\n", ""),
    ("ranks do not agree on a visit", UNPLANNED, "if (verdict.unanimous()) {", "if (true) {"),
    ("a peer that failed is not drained for", UNPLANNED, "  drain(step);\n  close_step(step);", "  close_step(step);"),
    ("a dynamic step's next gradient does not wait for the last reduction", UNPLANNED,
     "    ops.push_back({.kind = ScheduleOpKind::wait_reduce});\n", ""),
    ("a dynamic step is not summed across groups", UNPLANNED,
     "step.visited.push_back({.kind = ScheduleOpKind::all_reduce, .unit = i});", ";"),
    ("micro-batches that differ are learnt as the first", UNPLANNED,
     "[&](const MicroBatch& each) { return !(each == micro_batches.front()); }", "[&](const MicroBatch&) { return false; }"),
    ("a gather may read shards before the update is made", STEP,
     "  state.applied = result->ticket;\n  state.gather_after = result->ticket;\n", ""),
    ("a failing rank does not drain", STEP, "  drain(step);\n  close_step(step);\n  const std::string stream_fault",
     "  close_step(step);\n  const std::string stream_fault"),
    ("the step goes on although a rank voted a fault", STEP, "if (!verdict.unanimous()) {",
     "if (!verdict.unanimous() && ballot.fault != Fault::none) {"),
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
