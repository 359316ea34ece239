#!/usr/bin/env bash
# From a text to a web page: trains a model on examples/cafe.txt, or on the file given as first argument, fills a
# sentence with it, and serves it at http://127.0.0.1:8000 until Ctrl-C.
# If it is stopped, the same command continues the training; a finished model is not trained again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
text=${1:-examples/cafe.txt}
name=$(basename "$text")
run=runs/${name%.*}
if [ ! -e "$run/metrics.json" ]; then
  text-infill fit "$text" --out "$run"
fi
text-infill fill --run "$run" "Can I have a ____ with ____, please?"
text-infill serve --run "$run"
