#!/bin/sh
# Build the web console into console/dist: generate the types of the API, build. `make test` checks types and tests it.
# Build the documentation, too, into console/dist/docs: the console links there.
# Does nothing if the checksum of its sources is unchanged.
set -eu
cd "$(dirname "$0")/.."
. local/steps.sh

again="Then repeat: make console"
document=console/openapi.json
.venv/bin/python -m docs_build.openapi "$document.new"
if cmp -s "$document.new" "$document"; then rm "$document.new"; else mv "$document.new" "$document"; fi

built=console/node_modules/built.cksum
sum() { # write to a file: a reader that stops at the first difference would break the pipe
    find console docs mkdocs.yml docs_build/site.py -name node_modules -prune -o -name artefacts -prune -o -name dist -prune -o -name schema.ts -prune -o -type f -print0 | LC_ALL=C sort -z | xargs -0 cksum >"$1"
}
sum "$built.new"
if [ -e console/dist/index.html ] && cmp -s "$built.new" "$built"; then exit 0; fi
rm -f "$built" # a build that is killed is none
step "Building the web console" "The web console could not be built. $again" sh -c 'cd console && exec npm run build'
step "Building the documentation" "The documentation could not be built. $again" .venv/bin/python -m docs_build.site
cp -R site console/dist/docs
mv "$built.new" "$built"
