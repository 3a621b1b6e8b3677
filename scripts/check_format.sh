#!/usr/bin/env bash
# Fails where clang-format would change a source. Exits 77 where clang-format is not installed.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v clang-format >/dev/null; then
  echo "clang-format is not installed"
  exit 77
fi
find include src bench tests -type f \( -name '*.[ch]pp' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
  xargs -0 clang-format --dry-run -Werror
