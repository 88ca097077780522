#!/bin/sh
# Install all dependencies of the project into its own folders: .venv (Python), node_modules (the CDK command line, textlint) and
# console/node_modules (the web console, and the compiler of the TypeScript client).
# Does nothing if the checksums of the locks are unchanged.
set -eu
cd "$(dirname "$0")/.."
. local/steps.sh

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

again="Then repeat: make setup"

# The file .venv/unfinished is there while .venv is changed: after a kill, packages may be half-written, which pip takes for whole.
install_python() {
    stamp=.venv/requirements.cksum
    if [ -e .venv/unfinished ]; then
        end_abandoned
        echo "The last installation into .venv was not completed; it begins again."
        rm -rf .venv
    fi
    if [ -x .venv/bin/python ] && cat requirements.txt client/pyproject.toml | cksum | cmp -s - "$stamp"; then return; fi
    if ! [ -x .venv/bin/python ]; then
        python=$(find_python)
        mkdir -p .venv
        touch .venv/unfinished
        step "Creating .venv with $("$python" --version)" "Python's venv module does not work. On Debian and Ubuntu: apt-get install python3-venv. $again" \
            "$python" -m venv .venv
    fi
    touch .venv/unfinished
    step "Installing the Python packages of requirements.txt into .venv" "pip could not install the Python packages. $again" \
        .venv/bin/python -m pip install --disable-pip-version-check --progress-bar off --no-input --require-hashes --no-deps -r requirements.txt
    step "Installing the package in client/ into .venv" "pip could not install the package in client/. $again" \
        .venv/bin/python -m pip install --disable-pip-version-check --no-input --no-deps --no-build-isolation --editable client
    cat requirements.txt client/pyproject.toml | cksum >"$stamp"
    rm .venv/unfinished
}

install_node() {
    stamp=node_modules/lock.cksum
    if [ -e node_modules/aws-cdk/bin/cdk ] && cksum <package-lock.json | cmp -s - "$stamp"; then return; fi
    rm -f "$stamp"
    step "Installing the CDK command line and textlint into node_modules" "npm could not install the CDK command line and textlint. $again" \
        npm ci --no-audit --no-fund --loglevel http
    cksum <package-lock.json >"$stamp"
}

install_console() {
    stamp=console/node_modules/lock.cksum
    if cksum <console/package-lock.json | cmp -s - "$stamp"; then return; fi
    rm -f "$stamp"
    step "Installing the packages of the web console into console/node_modules" "npm could not install the packages of the console. $again" \
        sh -c 'cd console && exec npm ci --no-audit --no-fund --loglevel http'
    cksum <console/package-lock.json >"$stamp"
}

check_node
install_python
install_node
install_console
