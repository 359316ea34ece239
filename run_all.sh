#!/usr/bin/env bash
# Installs missing packages, then trains, evaluates and prints the paper's tables: ./run_all.sh --preset=smoke
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")"
. scripts/environment.sh
prepare_environment base
exec python -m experiments.run_all "$@"
