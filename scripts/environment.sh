# Sourced by run_all.sh and tests/run.sh in the project root; makes sure that `python` has everything installed.
#
#   prepare_environment base|test
#
# Without an active virtual environment, creates .venv and installs into it, again whenever setup.py changes.
# In an active environment, installs the project if required modules are missing.

prepare_environment() {
  local kind=$1 target='.[report]' python version
  [ "$kind" = test ] && target='.[test,report]'

  if [ -n "${VIRTUAL_ENV:-}${CONDA_PREFIX:-}" ]; then
    if ! modules_present "$kind"; then
      echo "Installing text_infilling into the active environment ${VIRTUAL_ENV:-${CONDA_PREFIX:-}} ..."
      install_project python "$target"
    fi
    return
  fi

  version=$(cksum < setup.py)
  # An installation for the tests includes everything.
  if [ "$(stamp .venv/installed-test)" != "$version" ] && [ "$(stamp ".venv/installed-$kind")" != "$version" ]; then
    python=$(find_python)
    echo "Creating .venv and installing text_infilling into it (a few minutes: TensorFlow is large) ..."
    "$python" -m venv .venv
    install_project .venv/bin/python "$target"
    echo "$version" > ".venv/installed-$kind"
  fi
  # shellcheck disable=SC1091
  . .venv/bin/activate
}

install_project() {
  if ! "$1" -m pip install --quiet --disable-pip-version-check -e "$2"; then
    echo "error: pip could not install text_infilling (see its message above); it needs access to a package index" >&2
    exit 1
  fi
}

stamp() {
  if [ -f "$1" ]; then cat "$1"; fi
}

find_python() {
  local candidate
  for candidate in python3 python3.13 python3.12 python3.11 python3.10; do
    if "$candidate" -c 'import sys; sys.exit(not (3, 10) <= sys.version_info[:2] <= (3, 13))' 2> /dev/null; then
      echo "$candidate"
      return
    fi
  done
  echo "error: no Python 3.10 to 3.13 found (TensorFlow 2.21 needs one); tried python3 and python3.10 to python3.13" >&2
  return 1
}

# Checks for the modules without importing them, which would take seconds, and for the right TensorFlow version.
modules_present() {
  python - "$1" << 'EOF'
import importlib.metadata
import importlib.util
import sys

needed = ["text_infilling", "tensorflow", "tensorflow_text", "numpy", "nltk", "absl", "tensorboard", "sacrebleu"]
if sys.argv[1] == "test":
    needed += ["pytest", "xdist", "hypothesis", "ruff", "starlette", "uvicorn", "prometheus_client"]
present = all(importlib.util.find_spec(name) for name in needed)
sys.exit(not (present and importlib.metadata.version("tensorflow").startswith("2.21.")))
EOF
}
