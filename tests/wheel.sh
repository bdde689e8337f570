#!/bin/sh
# A wheel is built, installed without a compiler on the path and without torch, and used for an hour;
# then with torch, for what trains and for transformers.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$root/.venv/bin/python" -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir "$work" "$root"
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
"$work/env/bin/python" -c 'import importlib.util; assert not importlib.util.find_spec("torch")'
sh "$root/tests/e2e/first_hour.sh" "$work/env/bin" \
  "$("$root/.venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
