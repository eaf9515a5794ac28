#!/bin/bash
# rss.sh BUILD [EPOCHS]: what a feed really holds. Runs `leat feed` over data ten times as large as --memory and
# watches RssAnon of the process: it must stay below memory + 32 MiB, in every epoch.
set -euo pipefail
build=$1
epochs=${2:-20}
memory=48 # MiB
most=$((memory + 32))
data=$(mktemp -d "${TMPDIR:-/tmp}/leat-rss-XXXXXX")
trap 'rm -rf "$data"' EXIT

# Files of records can be put together to larger ones.
"$build/tests/make_records" "$data/one" 400
one=$(stat -c %s "$data/one")
for file in 0 1 2 3 4 5 6 7; do
	for ((n = 0; n < memory * 10 * 1048576 / 8 / one + 1; n++)); do
		cat "$data/one"
	done >"$data/part-$file.tfrecord"
done
rm "$data/one"
echo "$(du -sm "$data" | cut -f1) MiB of data, memory=${memory}MiB, $epochs epochs"

# watch PID: the largest RssAnon of a process, in KiB, until it ends.
watch() {
	local peak=0 now
	while now=$(awk '/^RssAnon:/{print $2}' "/proc/$1/status" 2>/dev/null) && [ -n "$now" ]; do
		[ "$now" -le "$peak" ] || peak=$now
		sleep 0.02
	done
	echo "$peak"
}

failed=0
# check EPOCHS SPEC
check() {
	local peak
	"$build/leat" feed "tfrecord('$data/part-*.tfrecord') | $2" --memory ${memory}MiB --epochs "$1" --quiet >"$data/out" &
	local pid=$!
	peak=$(watch $pid)
	if ! wait $pid; then
		echo "FAIL $2: the feed failed"
		failed=1
	elif [ "$peak" -gt $((most * 1024)) ]; then
		echo "FAIL $2: $((peak / 1024)) MiB held, $most allowed"
		failed=1
	else
		echo "ok   $((peak / 1024)) MiB  $2"
	fi
}

check "$epochs" "shuffle | batch(64)"
check "$epochs" "example(image=bytes, label=int64) | shuffle(1000) | batch(64)"
# Decoding takes its time: an epoch of a part shows as much.
decoded="shuffle | take(4000) | example(image=bytes, label=int64) | decode"
check "$epochs" "$decoded | resize(64, 64) | random_flip | scale(1/255) | batch(64)"
check 2 "$decoded | batch(4)"
exit $failed
