#!/bin/sh
# A wheel is built, installed without a compiler on the path and without torch, and used for an hour.
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
wheel=$(echo "$work"/*.whl)
PATH="$work/bin" "$work/env/bin/python" -m pip install --quiet "unbounded[serve] @ file://$wheel"
cd "$work"
sh "$root/tests/e2e/first_hour.sh" "$work/env/bin"
"$work/env/bin/python" - <<'END'
import unbounded
from unbounded import _native

print(f"wheel of {unbounded.__version__}: {_native.isa()}, no torch")
END
