#!/usr/bin/env bash
# expect_exit.sh CODE TEXT COMMAND...: within 5 seconds the command ends with CODE and prints one error line that holds TEXT.
set -u
code=$1 text=$2
shift 2
errors=$(timeout 5 "$@" 2>&1 >/dev/null)
found=$?
lines=$(grep -c '^headroom: error: ' <<<"$errors")
if [ "$found" -ne "$code" ] || [ "$lines" -ne 1 ] || ! grep -qF -- "$text" <<<"$errors"; then
  echo "expected exit code $code and one error line with '$text', found $found, $lines lines:"
  echo "$errors"
  exit 1
fi
