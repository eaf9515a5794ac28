#!/bin/sh
# profile.sh BUILD: the page of `leat profile` in a real browser; see page.sh. Needs DuckDB.
set -eu
cd "$(dirname "$0")/../.."
build=$(cd "${1:?usage: profile.sh BUILD}" && pwd)
"$build/leat" sql 'SELECT 1' >/dev/null 2>&1 || { "$build/leat" sql 'SELECT 1' || exit 77; }
. tests/page/driver.sh
exec node tests/page/profile.mjs "$build"
