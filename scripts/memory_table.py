#!/usr/bin/env python3
"""Memory of each strategy, computed and measured, as a Markdown table: memory_table.py HEADROOM.

Runs a small model at 2 and 4 ranks. Exits 1 where what is held between steps is not exactly what the formulas give, where the
live sets are not the schedule's bound, or where the bytes of gathered sets and full gradients are not.

Formulas: a unit of P elements (each parameter at a multiple of 16) has shards of S = P / N elements, rounded up to 16, N the ranks
that share one copy: all, those of a group, or 1 (no_shard). Held: 4 S bytes of parameters, as many of gradient, twice as many of
AdamW's moments; each buffer rounded up to the allocator's 512 bytes.
"""
import argparse
import json
import subprocess
import sys

LAYERS, WIDTH, VOCAB, SEQ = 6, 96, 251, 40  # Sizes that need padding.
MODEL = (f"--layers {LAYERS} --width {WIDTH} --heads 4 --vocab {VOCAB} --seq {SEQ} --micro-batch 2 --steps 3 --quiet "
         "--json -").split()
CASES = [(2, ""), (2, "--shard shard_grad_op"), (2, "--shard no_shard"), (2, "--gathered bf16 --reduced bf16"),
         (2, "--accumulate 2"), (2, "--accumulate 2 --accumulation full"), (2, "--wrap half"), (2, "--wrap 2"),
         (4, ""), (4, "--shard shard_grad_op"), (4, "--shard hybrid(2)"), (4, "--shard no_shard")]
GRANULE = 512


def up(value, multiple):
    return -(-value // multiple) * multiple


def units(wrap):
    """The parameter counts of each unit."""
    attention = [WIDTH, WIDTH, 3 * WIDTH * WIDTH, 3 * WIDTH, WIDTH * WIDTH, WIDTH]
    mlp = [WIDTH, WIDTH, 4 * WIDTH * WIDTH, 4 * WIDTH, 4 * WIDTH * WIDTH, WIDTH]
    halves = [attention, mlp] * LAYERS
    together = {"block": 2, "half": 1}.get(wrap) or 2 * int(wrap)
    blocks = [sum(halves[i:i + together], []) for i in range(0, len(halves), together)]
    return [[VOCAB * WIDTH, SEQ * WIDTH, WIDTH, WIDTH]] + blocks


def group_of(shard, world):
    return 1 if shard == "no_shard" else int(shard[7:-1]) if shard.startswith("hybrid") else world


def held(config, world):
    """Bytes by category that the formulas give, of one rank between steps."""
    ranks = group_of(config["shard"], world)
    shards = [up(-(-sum(up(numel, 16) for numel in unit) // ranks), 16) for unit in units(str(config["wrap"]))]
    bytes_of_one = sum(up(4 * numel, GRANULE) for numel in shards)
    return {"parameter_shard": bytes_of_one, "gradient_shard": bytes_of_one, "optimizer_state": 2 * bytes_of_one}


def run(program, world, options):
    command = [program, "train", "--ranks", str(world), *MODEL, *options.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)} ended with {done.returncode}\n{done.stderr}")
    return json.loads(done.stdout)


def problems_of(report, world):
    """What is not as computed, in words."""
    found, memory, bound = [], report["memory"], report["schedule"]["bound"]
    for category, expected in held(report["config"], world).items():
        measured = memory["peak"]["categories"][category]
        if measured != expected:
            found.append(f"{category}: computed {expected}, measured {measured}")
    for name, key in (("parameters", "parameter_sets"), ("gradients", "gradient_sets")):
        if memory["sets_peak"][name] != bound[key]:
            found.append(f"live {name}: bound {bound[key]}, measured {memory['sets_peak'][name]}")
    sets = bound["parameter_sets"] + bound["gradient_sets"]
    communication = transient_bytes(report)
    if not bound["communication_bytes"] <= communication <= bound["communication_bytes"] + GRANULE * sets:
        found.append(f"bytes of gathered sets and full gradients: bound {bound['communication_bytes']}, measured {communication}")
    return found


def transient_bytes(report):
    return report["memory"]["regions"]["communication"]["allocated_peak"]


def row(report, world, options):
    kib = lambda value: f"{value / 1024:,.1f}"  # noqa: E731
    memory, bound = report["memory"], report["schedule"]["bound"]
    categories, sets = memory["peak"]["categories"], memory["sets_peak"]
    cells = [f"`{options or '--shard full_shard'}`", world, kib(categories["parameter_shard"]), kib(categories["gradient_shard"]),
             kib(categories["optimizer_state"]), f"{bound['parameter_sets']} / {sets['parameters']}",
             f"{bound['gradient_sets']} / {sets['gradients']}",
             f"{kib(bound['communication_bytes'])} / {kib(transient_bytes(report))}", kib(memory["peak"]["allocated"])]
    return "| " + " | ".join(map(str, cells)) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("headroom")
    program = parser.parse_args().headroom
    print("| options | ranks | parameter shard | gradient shard | optimizer | parameter sets, bound / measured | gradient sets | "
          "their bytes | peak allocated |\n|" + "---|" * 9)
    problems = []
    for world, options in CASES:
        report = run(program, world, options)
        print(row(report, world, options), flush=True)
        problems += [f"{options or 'full_shard'} at {world} ranks: {text}" for text in problems_of(report, world)]
    print("\nKiB of the rank with the highest peak.")
    sys.exit("\n".join(problems) if problems else 0)


if __name__ == "__main__":
    main()
