#!/usr/bin/env python3
"""Checks that includes point down: check_layers.py [ROOT].

Every folder has one number; a file includes its own number and lower ones only. Also: no CUDA, NCCL or MPI header in a
public header, which stays under 131 lines. Prints `file:line: what is wrong` and exits 1 where a rule is broken.
"""
import pathlib
import re
import sys

LAYERS = {  # The longest matching folder decides.
    "src/runtime/core": 0,
    "src/runtime/memory": 1,
    "src/kernels": 2,
    "src/collectives": 3,
    "src/runtime/schedule": 4,
    "src/runtime/shard": 5,
    "src/runtime/checkpoint": 6,
    "bench": 7,
    "tests": 8,
}
PUBLIC_HEADERS = {
    0: "error tensor device stream trace crc32c",
    1: "events memory_statistics buffer allocator timeline buffer_spans process_memory recording",
    2: "kernels",
    3: "communicator",
    4: "schedule_op schedule",
    5: "layout step parameters optimizer",
    6: "headroom",
}
PUBLIC = "include/headroom"
PUBLIC_LAYERS = {f"{PUBLIC}/{name}.hpp": layer for layer, names in PUBLIC_HEADERS.items() for name in names.split()}
PUBLIC_LINES = 130
FOREIGN = re.compile(r"^(cuda|cublas|curand|nvtx|nccl|mpi\.h|driver_types|vector_types)", re.IGNORECASE)
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
SUFFIXES = {".hpp", ".cpp", ".h", ".cu", ".cuh"}
INCLUDE_ROOTS = ("include", "src", "bench", "tests")


def layer_of(path):
    """The layer of a path relative to the root, or None."""
    if path.startswith(PUBLIC + "/"):
        return PUBLIC_LAYERS.get(path)
    folders = [folder for folder in LAYERS if path.startswith(folder + "/")]
    return LAYERS[max(folders, key=len)] if folders else None


def resolve(root, file, name):
    """The project's file that `file` means by `name`, relative to the root, or None."""
    for folder in (file.parent, *(root / folder for folder in INCLUDE_ROOTS)):
        target = (folder / name).resolve()
        if target.is_file() and target.is_relative_to(root):
            return target.relative_to(root).as_posix()
    return None


def includes(file):
    """(line number, '<' or '"', name) of each include of a file."""
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        if match := INCLUDE.match(line):
            yield number, match.group(1), match.group(2)


def sources(root):
    return sorted(p for top in INCLUDE_ROOTS for p in (root / top).rglob("*") if p.suffix in SUFFIXES and p.is_file())


def check_file(root, file):
    path = file.relative_to(root).as_posix()
    layer = layer_of(path)
    if layer is None:
        yield f"{path}:1: no layer for this path; give it one in scripts/check_layers.py"
        return
    public = path in PUBLIC_LAYERS
    if public and (lines := len(file.read_text(encoding="utf-8").splitlines())) > PUBLIC_LINES:
        yield f"{path}:{lines}: a public header has at most {PUBLIC_LINES} lines"
    for number, kind, name in includes(file):
        where = f"{path}:{number}"
        if public and FOREIGN.match(name):
            yield f"{where}: a public header must not include {name}"
        target = resolve(root, file, name)
        if target is None:
            if kind == '"' or name.startswith("headroom/"):
                yield f"{where}: no such file in this project: {name}"
            continue
        other = layer_of(target)
        if public and target not in PUBLIC_LAYERS:
            yield f"{where}: a public header must not include {target}, which is not installed"
        elif other is not None and other > layer:
            yield f"{where}: layer {layer} includes {target} of layer {other}"


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    files = sources(root)
    if not files:
        sys.exit(f"check_layers: no sources under {root}")
    faults = [fault for file in files for fault in check_file(root, file)]
    print("\n".join(faults) if faults else f"{len(files)} files, all includes point down")
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
