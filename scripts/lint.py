#!/usr/bin/env python3
"""Runs clang-tidy over the library and the program: lint.py BUILD_DIR [--jobs N] [PATH...].

Reads BUILD_DIR/compile_commands.json; PATHs (default: src bench) choose the sources, which are read without precompiled
headers: those are the compiler's own, and hide what a source forgot to include. A source that passed is remembered in
BUILD_DIR/lint by the hash of its text, its command, every project header it includes, and the configuration.
"""
import argparse
import concurrent.futures
import hashlib
import json
import pathlib
import re
import shutil
import subprocess
import sys

import check_layers

ROOT = pathlib.Path(__file__).resolve().parent.parent


def closure(file):
    """`file` and the project's files that it includes, directly or not."""
    seen, stack = set(), [file]
    while stack:
        current = stack.pop()
        if current not in seen:
            seen.add(current)
            targets = (check_layers.resolve(ROOT, current, name) for _, _, name in check_layers.includes(current))
            stack += [ROOT / target for target in targets if target]
    return sorted(seen)


def fingerprint(entry, salt):
    digest = hashlib.sha256(salt)
    digest.update(entry["command"].encode())
    for file in closure(pathlib.Path(entry["file"])):
        digest.update(file.read_bytes())
    return digest.hexdigest()


def without_precompiled(entry):
    """The entry of compile_commands.json without what CMake adds for precompiled headers."""
    command = re.sub(r" -Winvalid-pch -include \S*/cmake_pch\.hxx\b", "", entry["command"])
    return entry | {"command": command.replace(" -fpch-preprocess", "")}


def lint(tidy, commands, entry, stamp):
    command = [tidy, "--quiet", "-p", commands, "--extra-arg=-Wno-unknown-pragmas", entry["file"]]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode == 0:
        stamp.touch()
        return None
    return run.stdout + "".join(line for line in run.stderr.splitlines(True) if "error" in line)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("paths", nargs="*", default=["src", "bench"])
    options = parser.parse_intermixed_args()
    tidy = shutil.which("clang-tidy")
    if not tidy:
        print("clang-tidy is not installed")
        sys.exit(77)
    folders = [(ROOT / path).resolve() for path in options.paths]
    entries = {}
    for entry in json.loads((options.build / "compile_commands.json").read_text()):
        file = pathlib.Path(entry["file"])
        if file.exists() and any(file.is_relative_to(folder) for folder in folders):
            entries.setdefault(entry["file"], without_precompiled(entry))
    if not entries:
        sys.exit(f"lint: {options.build} compiles nothing under {' '.join(options.paths)}")
    version = subprocess.run([tidy, "--version"], capture_output=True, check=True).stdout
    salt = version + (ROOT / ".clang-tidy").read_bytes()
    cache = options.build / "lint"
    cache.mkdir(exist_ok=True)
    (cache / "compile_commands.json").write_text(json.dumps(list(entries.values())))
    stamps = {file: cache / fingerprint(entry, salt) for file, entry in entries.items()}
    todo = [file for file in sorted(entries) if not stamps[file].exists()]
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        faults = 0
        for findings in pool.map(lambda file: lint(tidy, cache, entries[file], stamps[file]), todo):
            if findings:
                faults += 1
                print(findings, end="", flush=True)
    print(f"{len(entries)} sources, {len(todo)} of them checked now, {faults} with findings")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
