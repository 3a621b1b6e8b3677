#!/usr/bin/env bash
# Fails where shellcheck finds fault with a script. Exits 77 where shellcheck is not installed.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v shellcheck >/dev/null; then
  echo "shellcheck is not installed"
  exit 77
fi
find scripts tests .ci -type f \( -name '*.sh' -o -path '.ci/run' \) -print0 |
  xargs -0 shellcheck --external-sources --source-path=scripts
