#!/bin/sh
# Install all dependencies of the project into its own folders: .venv (Python) and node_modules (the CDK command line, textlint).
# Does nothing if the checksums of the locks are unchanged.
set -eu
cd "$(dirname "$0")/.."

fail() { printf '\n%s\n' "$*" >&2; exit 1; }

new_enough() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

# The system's Python comes first: distributions build it with profile-guided optimization. A Python compiled by pyenv usually lacks
# that, and the simulation takes a fifth longer with it. Debian's Python may lack ensurepip, which a venv needs.
system_python() { if /usr/bin/python3 -c 'import ensurepip' 2>/dev/null; then echo /usr/bin/python3; fi; }

find_python() {
    for name in ${PYTHON:-} $(system_python) python3.13 python3.12 python3.11 python3.14 python3 python; do
        if new_enough "$name"; then echo "$name"; return; fi
    done
    fail "Python 3.11 or newer is missing. Install it (https://www.python.org/downloads, or: apt-get install python3 python3-venv),
or specify yours: make setup PYTHON=/path/to/python3.13"
}

check_node() {
    command -v node >/dev/null || fail "Node.js is missing: the CDK command line needs it. Install Node 22 or newer (https://nodejs.org), then repeat."
    command -v npm >/dev/null || fail "npm is missing: it installs the CDK command line. It comes with Node.js (https://nodejs.org; Debian: apt-get install npm)."
    version=$(node --version)
    major=${version#v}
    [ "${major%%.*}" -ge 20 ] || fail "Node.js $version ($(command -v node)) is too old: the CDK command line needs 22 or newer."
}

install_python() {
    stamp=.venv/requirements.cksum
    if [ -x .venv/bin/python ] && cat requirements.txt client/pyproject.toml | cksum | cmp -s - "$stamp"; then return; fi
    if ! [ -x .venv/bin/python ]; then
        python=$(find_python)
        echo "Creating .venv with $("$python" --version) ..."
        "$python" -m venv .venv || { rm -rf .venv; fail "Python's venv module does not work. On Debian and Ubuntu: apt-get install python3-venv"; }
    fi
    echo "Installing the Python packages of requirements.txt into .venv (a minute the first time) ..."
    .venv/bin/python -m pip install --disable-pip-version-check --progress-bar off --no-input --require-hashes --no-deps -r requirements.txt ||
        fail "pip could not install the Python packages; its message is above. Then repeat: make setup"
    .venv/bin/python -m pip install --disable-pip-version-check --quiet --no-input --no-deps --no-build-isolation --editable client ||
        fail "pip could not install the package in client/; its message is above. Then repeat: make setup"
    cat requirements.txt client/pyproject.toml | cksum >"$stamp"
}

install_node() {
    stamp=node_modules/lock.cksum
    if [ -e node_modules/aws-cdk/bin/cdk ] && cksum <package-lock.json | cmp -s - "$stamp"; then return; fi
    echo "Installing the CDK command line and textlint into node_modules ..."
    npm ci --no-audit --no-fund || fail "npm could not install the CDK command line and textlint; its message is above. Then repeat: make setup"
    cksum <package-lock.json >"$stamp"
}

check_node
install_python
install_node
