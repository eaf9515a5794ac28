#!/bin/bash
# cache_kill.sh BUILD [SECONDS]: what happens to others that use a cache file when one of them is killed, and when the
# disk is full. Two processes fill and read one file, one of them is killed with SIGKILL again and again: the
# other's checksum must be that of a run without a cache, every time. Then a disk of 1 MiB: the same, and a warning.
set -euo pipefail
build=$(cd "$1" && pwd)
seconds=${2:-20}
data=$(mktemp -d "${TMPDIR:-/tmp}/leat-kill-XXXXXX")
trap 'rm -rf "$data"' EXIT
cd "$data"

"$build/tests/make_records" part-0.tfrecord 800
source="tfrecord('part-*.tfrecord') | shuffle | example(image=bytes, label=int64) | decode"
# What is kept has a fixed size, or not; random ops stand before the cache, or behind.
before=("resize(40, 40)" "resize(40, 40) | random_flip" "center_crop(30, 30)" "flip")
behind=" | batch(16)"

checksum() { # OPTIONS... SPEC: nothing when it fails
	"$build/leat" feed "$@" --epochs 2 --checksum 2>>log | sed -n 's/^checksum //p'
}

fail() {
	echo "$*"
	tail -n 20 log
	exit 1
}

# What comes out without a cache, drawn as before one.
for ((k = 0; k < ${#before[@]}; k++)); do
	expected[k]=$(checksum "$source | ${before[k]} | cache(memory, size=1)$behind")
done

rounds=0
RANDOM=7 SECONDS=0
while ((SECONDS < seconds)); do
	k=$((RANDOM % ${#before[@]}))
	size=$((RANDOM % 3 ? 64 : 4)) # MiB: all, or some
	spec="$source | ${before[k]} | cache(dir='cache', size=${size}MiB)$behind"
	((RANDOM % 4)) || rm -rf cache # begin anew
	checksum -j $((1 + RANDOM % 3)) "$spec" >survivor &
	survivor=$!
	for ((n = 0; n < 3; n++)); do
		"$build/leat" feed "$spec" -j $((1 + RANDOM % 3)) --quiet >/dev/null 2>&1 &
		victim=$!
		sleep 0.0$((RANDOM % 90 + 10))
		kill -KILL $victim 2>/dev/null || true
		wait $victim 2>/dev/null || true
	done
	wait $survivor || fail "the survivor failed: $spec"
	[ "$(cat survivor)" = "${expected[k]}" ] || fail "another checksum beside one that was killed: $spec"
	[ "$(checksum "$spec")" = "${expected[k]}" ] || fail "another checksum after one that was killed: $spec"
	rounds=$((rounds + 1))
done
[ $rounds -gt 0 ] || fail "not one round"
du -sb cache | awk '$1 > 70 * 1024 * 1024 {print "the folder has grown to", $1; exit 1}'
echo "$rounds rounds"

# A disk of 1 MiB, where we may mount one; else files that may not grow.
cat >full.sh <<'SCRIPT'
set -euo pipefail
mkdir -p small
if [ "$1" = mount ]; then
	mount -t tmpfs -o size=1M none small
else
	"$leat" feed "$spec" --batches 1 --quiet >/dev/null # makes the file
	trap '' XFSZ
	ulimit -f 1000
fi
for run in cold warm; do
	"$leat" feed "$spec" --epochs 2 --checksum >out 2>warnings || { cat out warnings; exit 1; }
	[ "$(sed -n 's/^checksum //p' out)" = "$wanted" ] || { echo "another checksum on a full disk ($run)"; exit 1; }
	grep -q "cannot add more samples" warnings || { echo "no warning of a full disk ($run)"; cat warnings; exit 1; }
done
SCRIPT
export leat=$build/leat spec="$source | ${before[0]} | cache(dir='small', size=64MiB)$behind" wanted=${expected[0]}
if unshare -rm true 2>/dev/null; then
	unshare -rm bash full.sh mount
	echo "a full disk: the same, with a warning"
fi
rm -rf small
bash full.sh limit
echo "a file that may not grow: the same, with a warning"
