#!/usr/bin/env python3
"""Checks that README.md shows tests/consumer/trainer/trainer.cpp as it is: check_readme.py."""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TRAINER = "tests/consumer/trainer/trainer.cpp"


def main():
    shown = re.findall(r"```cpp\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    trainer = (ROOT / TRAINER).read_text()
    if trainer not in shown:
        sys.exit(f"README.md: expected a cpp block that is {TRAINER}, found {len(shown)} others. Copy the file into it.")
    lines = trainer.count("\n")
    if lines > 80:
        sys.exit(f"{TRAINER}: expected at most 80 lines, found {lines}")


if __name__ == "__main__":
    main()
