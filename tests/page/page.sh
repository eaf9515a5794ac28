#!/bin/sh
# page.sh BUILD [time]: reports in a real browser, Debian's Chromium without a window, driven by playwright-core, which is
# installed below BUILD once. With `time`, a page of ten million spans must also open within three seconds.
set -eu
cd "$(dirname "$0")/../.."
build=$(cd "${1:?usage: page.sh BUILD [time]}" && pwd)
. tests/page/driver.sh
exec node tests/page/page.mjs "$build" "${2:-}"
