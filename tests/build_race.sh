#!/bin/bash
# build_race.sh BUILD ROUNDS: builds that begin at the same time, on the same steps. Results are those of one build, each
# action is recorded once, and the store is in order.
set -euo pipefail
build=$(cd "$1" && pwd)
rounds=$2
PATH=$build:$PATH
work=$(mktemp -d /dev/shm/leat-race-XXXXXX 2>/dev/null || mktemp -d) # there, syncing takes no time
trap 'rm -rf "$work"' EXIT
cd "$work"

fail() {
	echo "round $round: $*"
	cat log log.*
	exit 1
}

mkdir raw
for i in 1 2 3 4 5 6; do echo "input $i" >raw/$i.txt; done
cat >leat.yaml <<'END'
sources:
  raw: raw/{i}.txt
steps:
  part:
    run: mkdir "$out" && cp "$raw" "$out/raw" && echo "$i" >"$out/name"
    in: raw
    slices: {i: 1..6}
  all:
    run: cat "$part"/*/* >"$out"
    in: part
END
actions=7 builds=3

for ((round = 1; round <= rounds; round++)); do
	rm -rf .leat out log*
	pids=()
	for ((b = 1; b <= builds; b++)); do
		leat build --json -j 2 >log.$b 2>&1 &
		pids+=($!)
	done
	for pid in "${pids[@]}"; do wait "$pid" || fail "a build fails"; done
	for ((b = 1; b <= builds; b++)); do
		grep '"event":"end"' log.$b | grep -q "\"state\":\"done\",\"actions\":$actions,.*\"failed\":0,.*\"differ\":0" ||
			fail "build $b is not done"
	done
	for i in 1 2 3 4 5 6; do echo "$i"; cat raw/$i.txt; done | cmp - out/all || fail "other results"
	[ "$(find .leat/act -type f | wc -l)" = $actions ] || fail "not one manifest for each action"
	leat fsck >log 2>&1 || fail "fsck finds something"
	grep -q "^$actions results" log || fail "not one result for each action"
	[ -z "$(ls .leat/tmp)" ] || fail "this is left in tmp: $(ls .leat/tmp)"
	[ -z "$(find .leat/runs -name '*.open')" ] || fail "runs are still open"
	leat build --json >log 2>&1 || fail "the next build fails"
	grep -q "\"cached\":$actions,\"ran\":0," log || fail "the next build runs something"
done
