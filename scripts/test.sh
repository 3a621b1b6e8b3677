#!/usr/bin/env bash
# Installs what is missing, builds, and runs the whole test suite; ends with ctest's summary. See --help.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

if [ "${1:-}" = --help ]; then
  cat <<'TEXT'
Usage: scripts/test.sh [CTEST-OPTION...]

Builds Headroom with its tests and runs them, as in: scripts/test.sh -L mpi, scripts/test.sh -R Allocator.
Without options, the sanitizer builds of the lower layers' tests run first (build-asan/, build-tsan/).

  HEADROOM_PRESET=NAME      host (default); host-asan or host-tsan: the whole suite under that sanitizer
  HEADROOM_SANITIZERS=LIST  which sanitizer builds run first ("asan tsan"; empty: none)
TEXT
  common_help
  exit 0
fi

packages+=(python3-venv clang-format clang-tidy shellcheck)
install_packages

# Only what needs threads or memory to be right, and is quick enough under a sanitizer.
sanitizers=${HEADROOM_SANITIZERS-asan tsan}
if [ "$preset" = host ] && [ $# -eq 0 ]; then
  for sanitizer in $sanitizers; do
    configure_and_build "host-$sanitizer" "$build_dir-$sanitizer" --target layer_tests
    say "Testing under $sanitizer"
    ctest --test-dir "$build_dir-$sanitizer" --output-on-failure --no-tests=error --parallel "$jobs" -L '^layer$' -LE '^mpi$'
  done
fi

configure_and_build "$preset" "$build_dir"
install_headroom
say "Testing"
ctest --test-dir "$build_dir" --output-on-failure --no-tests=error --parallel "$jobs" "$@"
