#!/bin/bash
# build_full.sh BUILD [STEP]: builds on a disk that is full, with 0, STEP, 2 STEP, ... KiB of room until that is enough, and on a
# store that is read-only. Each ends with a sentence, loses nothing, and leaves a store in order; once there is room,
# the next build completes. Mounts happen in a namespace of this test.
set -euo pipefail
build=$(cd "$1" && pwd)
step=${2:-24}
if [ -z "${LEAT_IN_NAMESPACE:-}" ]; then
	unshare -rm true 2>/dev/null || { echo "skipped: mounts are not permitted here"; exit 77; }
	LEAT_IN_NAMESPACE=1 exec unshare -rm "$0" "$build" "$step"
fi
PATH=$build:$PATH
work=$(mktemp -d)
trap 'cd /; umount -l "$work/disk/.leat" 2>/dev/null || true; umount -l "$work/disk" || true; rm -rf "$work"' EXIT
mkdir "$work/disk"
mount -t tmpfs -o size=32M none "$work/disk"
cd "$work/disk"

fail() {
	echo "with $free KiB free: $*"
	cat ../log
	exit 1
}

# A failure is one sentence of leat's, at the end; no crash, no message of a library.
is_sentence() { # STATUS
	[ "$1" = 1 ] && tail -1 ../log | grep -qE '^leat build: .*[a-z]'
}

cat >leat.yaml <<'END'
steps:
  part:
    run: mkdir "$out" && head -c 20000 /dev/zero | tr '\0' "$i" >"$out/data" && echo "$i" | tee "$out/name"
    slices: {i: 1..8}
  size:
    run: cat "$part"/*/* | wc -c >"$out"
    in: part
END
actions=9

free=all
leat build -q >../log 2>&1 || fail "the first build fails"
find out/ -follow -type f -exec sha256sum {} + | sort -k 2 >../expected

full=0 status=1
for ((free = 0; status != 0; free += step)); do # until there is enough
	rm -rf .leat out filler
	head -c $((($(df --output=avail -k . | tail -1) - free) * 1024)) /dev/zero >filler
	status=0
	leat build -q --keep-going -j 2 >../log 2>&1 || status=$?
	[ $status = 0 ] || { full=$((full + 1)); is_sentence $status || fail "it ends with $status and no sentence"; }
	kept=0
	[ ! -d .leat/act ] || kept=$(find .leat/act -type f | wc -l)
	# There may have been no room for an index; but what is there is whole.
	if [ -e .leat/format ] && ! leat fsck >../log 2>&1; then
		grep -q 'problem' ../log || fail "fsck does not work while the disk is full"
		! grep -vE '^index: it is missing|: 1 problem$|^leat fsck: ' ../log || fail "fsck finds something while the disk is full"
	fi
	rm filler
	leat build -q >../log 2>&1 || fail "with room, the next build fails"
	grep -q "\"cached\":$kept,\"ran\":$((actions - kept))," .leat/runs/latest || fail "$kept were kept, but not reused"
	find out/ -follow -type f -exec sha256sum {} + | sort -k 2 | cmp -s - ../expected || fail "other results"
	leat fsck >../log 2>&1 || fail "fsck finds something"
	[ -z "$(ls .leat/tmp)" ] || fail "this is left in tmp: $(ls .leat/tmp)"
done
echo "$full builds met a full disk"
[ $full -gt 10 ]

# The store is read-only: what only reads works, and a build that would write says why it cannot.
free=no
before=$(find .leat ! -name lock.mdb -printf '%p %s %T@\n' | sort | sha256sum)
mount --bind .leat .leat
mount -o remount,bind,ro .leat
for command in 'status' 'graph' 'log' 'why part' 'show size' 'made out/size' 'fsck'; do
	leat $command >../log 2>&1 || fail "'leat $command' fails on a read-only store"
done
for command in 'build' 'build --again' 'gc' 'fsck --repair'; do
	status=0
	leat $command >../log 2>&1 || status=$?
	{ [ $status = 1 ] && [ "$(wc -l <../log)" = 1 ] && grep -q 'ead-only' ../log; } ||
		fail "'leat $command' ends with $status on a read-only store"
done
umount .leat
[ "$before" = "$(find .leat ! -name lock.mdb -printf '%p %s %T@\n' | sort | sha256sum)" ] || fail "a read-only store changed"
leat build -q >../log 2>&1 || fail "the store is writable again, but a build fails"
leat fsck >../log 2>&1 || fail "fsck finds something"
