#!/usr/bin/env bash
# Installs what is missing, builds, trains a GPT on real text with two ranks, and compares two schedules. See --help.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

data=/usr/share/common-licenses # Real text that every Debian machine has.

if [ $# -gt 0 ]; then
  cat <<'TEXT'
Usage: scripts/run.sh

Builds Headroom, trains a small GPT with two ranks on the licence texts in /usr/share/common-licenses until its loss is below
their unigram entropy, then compares the schedules BACKWARD_PRE and BACKWARD_POST. Reports: reports/ in the build folder.

TEXT
  common_help
  [ "$1" = --help ] && exit 0
  fail "unknown argument '$1'"
fi

install_packages
configure_and_build "$preset" "$build_dir" --target headroom_program
install_headroom

headroom=$build_dir/headroom
reports=$build_dir/reports
mkdir -p "$reports"

say "Training on $data with 2 ranks"
"$headroom" train --ranks 2 --data "$data" --layers 4 --width 256 --heads 4 --seq 128 --micro-batch 8 --steps 80 --lr 2e-3 \
  --json "$reports/train.json" --trace "$reports/train_trace.json" | tee "$reports/train.txt"

# The model must have learnt more than how often each byte occurs.
awk '/^unigram entropy of the data:/ {
       found = 1
       match($0, /data: [0-9.]+/); entropy = substr($0, RSTART + 6, RLENGTH - 6)
       match($0, /losses: [0-9.]+/); loss = substr($0, RSTART + 8, RLENGTH - 8)
     }
     END { exit !(found && loss + 0 > 0 && loss + 0 < entropy + 0) }' "$reports/train.txt" || {
  echo "run.sh: error: the mean of the last losses is not below the unigram entropy of the data" >&2
  exit 1
}

say "Comparing BACKWARD_PRE (a) with BACKWARD_POST (b)"
"$headroom" ab --ranks 2 --data "$data" --a backward-prefetch=pre --b backward-prefetch=post --rounds 7 --steps 3 \
  --json "$reports/ab.json" | tee "$reports/ab.txt"

say "Reports: $reports/train.json (trace: $reports/train_trace.json), $reports/ab.json"
