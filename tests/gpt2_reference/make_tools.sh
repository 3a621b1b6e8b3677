#!/usr/bin/env bash
# make_tools.sh PYTHON DIR: a virtual environment with what compare.py needs, from PyPI; kept where it is there.
set -euo pipefail
python=$1 dir=$2
requirements=$(dirname "$0")/requirements.txt
if "$dir/bin/python" -c 'import numpy, safetensors.numpy' 2>/dev/null; then
  exit 0
fi
rm -rf "$dir"
"$python" -m venv "$dir"
"$dir/bin/python" -m pip install --quiet --disable-pip-version-check --only-binary :all: --requirement "$requirements"
