#!/bin/sh
# page.sh BUILD [time]: reports in a real browser, Debian's Chromium without a window, driven by playwright-core, which is
# installed below BUILD once. With `time`, a page of ten million spans must also open within three seconds.
set -eu
cd "$(dirname "$0")/../.."
build=$(cd "${1:?usage: page.sh BUILD [time]}" && pwd)
modules=$build/page-modules
driver=playwright-core@1.49.1

for program in chromium node npm; do
	command -v $program >/dev/null || { echo "$program is not installed: 'scripts/setup all' does it"; exit 77; }
done
if [ "$(cat "$modules/installed" 2>/dev/null)" != "$driver" ]; then
	rm -rf "$modules"
	mkdir -p "$modules"
	npm install --silent --no-audit --no-fund --prefix "$modules" "$driver" || { echo "$driver cannot be installed here"; exit 77; }
	echo "$driver" >"$modules/installed"
fi
exec node tests/page/page.mjs "$build" "${2:-}"
