#!/bin/sh
# board.sh BUILD: the board in a real browser, over a project that is built meanwhile; and requests that no browser sends.
set -eu
cd "$(dirname "$0")/../.."
build=$(cd "${1:?usage: board.sh BUILD}" && pwd)
. tests/page/driver.sh
exec node tests/board/board.mjs "$build"
