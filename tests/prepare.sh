#!/bin/sh
# prepare.sh BUILD: the example of dirty tables: the rows of every step are those that Python makes (prepare_oracle.py), only
# what changed runs, and another number of threads gives the same bytes.
#
# Skipped without DuckDB, which not every machine has.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
PATH=$build:$PATH PYTHONDONTWRITEBYTECODE=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
export PATH PYTHONDONTWRITEBYTECODE XDG_CACHE_HOME=$work/cache
leat sql "SELECT 1" >/dev/null 2>&1 && leat load --help >/dev/null 2>&1 || exit 77

fail() {
	echo "$*"
	exit 1
}

# bytes FOLDER: a checksum of each file of all results.
bytes() {
	(cd "$1/out" && find -L . -type f | sort | xargs sha256sum)
}

cp "$root"/examples/prepare/* .
python3 make_events.py --rows 8000
cp -r . ../"${work##*/}"-threads
trap 'rm -rf "$work" "$work-threads"' EXIT
leat build >built 2>&1 || fail "$(cat built)"
grep -q '^9 ran' built || fail "$(cat built)"
leat build 2>&1 | grep -q '^0 ran' || fail "the second build runs something"
python3 "$root/tests/prepare_oracle.py"

sed -i 's/^  \(clean\|features\|train\):$/&\n    cpus: 2/; s/shards: train,/& cpus: 2,/' "$work-threads/leat.yaml"
[ "$(grep -c 'cpus: 2' "$work-threads/leat.yaml")" = 4 ] || fail "the steps have other names"
(cd "$work-threads" && leat build --jobs 2 >built 2>&1) || fail "$(cat "$work-threads/built")"
bytes . >one
bytes "$work-threads" >two
[ "$(wc -l <one)" -ge 20 ] || fail "few results: $(cat one)"
diff one two || fail "two threads give other bytes than one"

sed -i '1s/One row/Just one row/' clean.sql
leat build 2>&1 | grep -q '^0 ran' || fail "a comment runs something"
sed -i 's/age: standardize/age: robust/' leat.yaml
leat build >built 2>&1 || fail "$(cat built)"
grep -q '^3 ran, 6 made before' built || fail "another feature: $(cat built)"
python3 make_events.py --rows 8000 --days 5 --folder more
cp more/events-2026-01-05.csv.gz raw
leat build >built 2>&1 || fail "$(cat built)"
grep -q '^5 ran, 5 made before' built || fail "a new file: $(cat built)"
leat fsck >/dev/null || fail "the store is damaged"
