#!/bin/sh
# A wheel is built, installed without a compiler on the path and without torch, and used.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$root/.venv/bin/python" -m pip wheel --quiet --no-deps --wheel-dir "$work" "$root"
if unzip -l "$work"/*.whl | grep -E ' (tests|experiments|benchmarks|native)/'; then
  echo "the wheel holds what is not the package" >&2
  exit 1
fi
"${PYTHON:-python3}" -m venv "$work/env"
mkdir "$work/bin"
# Only what a machine without a compiler has.
for tool in sh uname; do ln -s "$(command -v $tool)" "$work/bin/$tool"; done
PATH="$work/bin" "$work/env/bin/python" -m pip install --quiet "$work"/*.whl
cd "$work"
PATH="$work/bin" "$work/env/bin/unbounded" --help >/dev/null
PATH="$work/bin" "$work/env/bin/python" - <<'END'
import sys

import numpy as np

import unbounded
from unbounded import _native
from unbounded.datastore import Auto, Votes

rng = np.random.default_rng(0)
datastore = Auto(16, exact=256)
keys, words = rng.normal(size=(900, 16)).astype("f4"), rng.integers(0, 9, 900)
shares = datastore.score(keys, words, 20, Votes())
assert np.nanmax(shares) <= 1 and "torch" not in sys.modules
print(f"wheel of {unbounded.__version__}: {_native.isa()}, {len(datastore):,} entries, no torch")
END
