#!/bin/bash
# index_damage.sh BUILD ROUNDS [SEED]: bytes of the index are overwritten at random places. `leat fsck` says so and does not
# crash, `leat fsck --repair` mends it, and after that every command works and results are the old ones.
set -euo pipefail
build=$(cd "$1" && pwd)
rounds=$2
seed=${3:-$(($(date +%s) % 30000))}
PATH=$build:$PATH
work=$(mktemp -d /dev/shm/leat-damage-XXXXXX 2>/dev/null || mktemp -d) # there, syncing takes no time
trap 'rm -rf "$work"' EXIT
cd "$work"
echo "seed $seed"
RANDOM=$seed

fail() {
	echo "round $round: $*"
	cat log
	exit 1
}
run() { # COMMAND...: it succeeds, or fails with a sentence; but it does not crash
	local status=0
	"$@" >log 2>&1 || status=$?
	[ $status -le 1 ] || fail "'$*' ends with $status"
	return $status
}

mkdir raw
for i in 1 2 3 4 5 6 7 8; do echo "input $i" >raw/$i.txt; done
cat >leat.yaml <<'END'
sources:
  raw: raw/{i}.txt
steps:
  part:
    run: mkdir "$out" && cp "$raw" "$out/raw" && echo "$i" >"$out/name"
    in: raw
    slices: {i: 1..8}
  all:
    run: cat "$part"/*/* >"$out"
    in: part
END
actions=9
leat build -q
cp out/all expected
cp -a .leat good

damage() { # as many places as chance has it; pages are small, so a few kilobytes make a difference
	python3 - "$1" "$RANDOM" <<'END'
import random, sys
draw = random.Random(int(sys.argv[2]))
with open(sys.argv[1], "r+b") as file:
    size = file.seek(0, 2)
    for _ in range(draw.choice((1, 3, 30, 300))):
        file.seek(draw.randrange(size))
        file.write(draw.randbytes(draw.choice((1, 2, 8, 64))))
END
}

found=0
for ((round = 1; round <= rounds; round++)); do
	rm -rf .leat out
	cp -a good .leat
	damage .leat/index/data.mdb
	[ $((round % 4)) != 0 ] || truncate -s $((RANDOM * 2)) .leat/index/data.mdb
	run leat fsck || found=$((found + 1))
	run leat fsck --repair || fail "it cannot be repaired"
	run leat fsck || fail "something is left after a repair"
	run leat status || fail "no status after a repair"
	run leat build -q || fail "no build after a repair"
	grep -q "\"cached\":$actions,\"ran\":0," .leat/runs/latest || fail "what was made runs again"
	cmp -s expected out/all || fail "other results"
	echo "more $round" >>raw/3.txt
	run leat build -q || fail "no build after an edit"
	grep -q "\"cached\":7,\"ran\":2," .leat/runs/latest || fail "an edit runs something else"
	echo "input 3" >raw/3.txt
	run leat build -q || fail "no build after that"
	cmp -s expected out/all || fail "other results at last"
	for command in 'log' 'show all' 'why part' 'made out/all' 'gc' 'fsck'; do
		run leat $command || fail "'leat $command' fails after a repair"
	done
done
echo "$rounds rounds, damage found in $found"
[ $found -gt 0 ]
