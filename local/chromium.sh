#!/bin/sh
# Print the path of Chromium, in which the tests open the console and the site. Without one, print how to install it, and fail.
set -eu

if [ -n "${CHROMIUM:-}" ]; then
    set -- "$CHROMIUM"
else
    set -- chromium chromium-browser google-chrome "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
fi
for place in "$@"; do
    if command -v "$place"; then exit 0; fi
done
printf '%s\n' "Chromium is missing: the tests open the console and the documentation in it. Looked for: $*" \
    "Install it (Debian: apt-get install chromium; macOS: brew install --cask google-chrome), or name yours: CHROMIUM=/path/to/chromium" >&2
exit 1
