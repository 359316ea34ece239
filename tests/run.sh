#!/usr/bin/env bash
# Installs missing packages, then runs the linter and all tests; arguments go to pytest: ./tests/run.sh -k masking
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
. scripts/environment.sh
prepare_environment test
python -m ruff check .
# One process per core; tests of a file share fixtures, so they run in the same process. -rs prints why tests skip.
exec python -m pytest -q -rs --numprocesses=auto --dist=loadfile --no-loadscope-reorder "$@"
