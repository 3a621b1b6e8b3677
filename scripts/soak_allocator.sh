#!/usr/bin/env bash
# Long random programs on the allocator, against a naive model, with and without sanitizers. See --help.
set -euo pipefail
cd "$(dirname "$0")/.."

if [ "${1:-}" = --help ]; then
  cat <<'TEXT'
Usage: scripts/soak_allocator.sh [OPERATIONS [SEEDS [PRESET...]]]

Runs OPERATIONS (1000000) random operations for each of SEEDS (3) seeds, checking every invariant after each, in a build
of each PRESET (host host-asan host-tsan). One line a seed; minutes each under a sanitizer.
TEXT
  exit 0
fi

operations=${1:-1000000}
seeds=${2:-3}
presets=("${@:3}")
[ ${#presets[@]} -gt 0 ] || presets=(host host-asan host-tsan)

for preset in "${presets[@]}"; do
  dir=build
  [ "$preset" = host ] || dir=build-${preset#host-}
  cmake --preset "$preset" >/dev/null
  cmake --build "$dir" --target test_memory_random >/dev/null
  for ((seed = 1; seed <= seeds; ++seed)); do
    start=$SECONDS
    HEADROOM_SOAK_OPERATIONS=$operations HEADROOM_SOAK_FIRST_SEED=$seed HEADROOM_SOAK_SEEDS=1 \
      "$dir/tests/memory/test_memory_random" --gtest_brief=1 --gtest_filter='*ManySeeds*:*OneThreadIssues*'
    echo "$preset: seed $seed, $operations operations: $((SECONDS - start)) s"
  done
done
