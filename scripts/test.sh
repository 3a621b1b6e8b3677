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
Without options, tests of the layers run under a sanitizer first (build-tsan/, build-asan/).

  HEADROOM_PRESET=NAME      host (default); host-asan or host-tsan: the whole suite under those sanitizers
  HEADROOM_SANITIZERS=LIST  which sanitizer builds run first: tsan (default), asan, or both; empty: none
TEXT
  common_help
  exit 0
fi

# test_under SANITIZER FOLDER...: builds and runs the tests of those folders, ranks as threads.
test_under() {
  local sanitizer=$1 dir=$build_dir-$1
  shift
  configure_and_build "host-$sanitizer" "$dir" --target "${@/%/_tests}"
  say "Testing $* under $sanitizer"
  local labels
  labels=$(IFS='|' && echo "^($*)\$")
  # Further seeds of a whole product of steps draw other orders of the same code: they run without a sanitizer.
  ctest --test-dir "$dir" --output-on-failure --no-tests=error --parallel "$jobs" --label-regex "$labels" --label-exclude '^mpi$' \
    --exclude-regex 'StepExecutors.*/seeded[23]$'
}

packages+=(python3-venv clang-format clang-tidy shellcheck chromium chromium-driver python3-selenium)
install_packages

if [ "$preset" = host ] && [ $# -eq 0 ]; then
  for sanitizer in ${HEADROOM_SANITIZERS-tsan}; do
    case $sanitizer in
      tsan) test_under tsan core memory collectives shard ;;
      asan) test_under asan memory kernels collectives shard ;;
      *) fail "HEADROOM_SANITIZERS: expected tsan, asan, found '$sanitizer'" ;;
    esac
  done
fi

configure_and_build "$preset" "$build_dir"
install_headroom
say "Testing"
ctest --test-dir "$build_dir" --output-on-failure --no-tests=error --parallel "$jobs" "$@"
