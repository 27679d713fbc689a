#!/bin/sh
# Installs the built wheel in an empty environment in an empty folder, imports every module, loads every
# entrypoint and renders every prompt: what a checkout hides, this shows.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
uv="$root/.venv/bin/uv"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
"$uv" venv --quiet --python "$root/.venv/bin/python" "$scratch/venv"
"$uv" pip install --quiet --python "$scratch/venv/bin/python" --require-hashes -r "$root/requirements.lock"
"$uv" pip install --quiet --python "$scratch/venv/bin/python" --no-deps "$root"/dist/nightdesk-*.whl
mkdir "$scratch/empty" && cd "$scratch/empty"
"$scratch/venv/bin/python" "$root/tests/wheel_smoke.py"
"$scratch/venv/bin/nightdesk" --version
