#!/bin/bash
# build_kill.sh BUILD MOMENTS [SEED]: builds are killed at random moments: leat alone, leat with all that it started, or one
# command. The next build completes, runs nothing again that was finished, leaves no process, and its results and store
# are those of a build that was not killed.
set -euo pipefail
build=$(cd "$1" && pwd)
moments=$2
seed=${3:-$(($(date +%s) % 30000))}
PATH=$build:$PATH
work=$(mktemp -d /dev/shm/leat-kill-XXXXXX 2>/dev/null || mktemp -d) # there, syncing takes no time
trap 'rm -rf "$work"' EXIT
cd "$work"
RANDOM=$seed
echo "seed $seed"

fail() {
	echo "moment $moment, $victim after $delay s: $*"
	[ ! -e log ] || cat log
	exit 1
}

mkdir raw
for ((i = 1; i <= 12; i++)); do echo "input $i" >raw/$i.txt; done
# Each command fails if any of its processes is killed. A shell does not notice that in a pipeline or in $(...).
cat >part.sh <<'END'
set -e
mkdir "$2"
read -r text <"$1"
for i in 1 2 3; do
	echo "$i of $text" >"$2/$i"
	sleep 0.01
done
END
cat >leat.yaml <<'END'
sources:
  raw: raw/{i}.txt
steps:
  part:
    run: sh part.sh "$raw" "$out"
    in: raw
    slices: {i: 1..12}
  word:
    run: cat "$part"/* >"$TMPDIR/all" && wc -w <"$TMPDIR/all" >"$out" && sleep 0.01
    in: part
    slices: {i: 1..12}
  all:
    run: cat "$word"/* "$part"/*/* >"$out"
    in: [word, part]
END
actions=25

# Of the actions that run now: pids whose sandbox is below this folder.
commands() {
	grep -lsz "^LEAT_STEP=$work/" /proc/[0-9]*/environ 2>/dev/null | sed 's|/proc/\([0-9]*\)/.*|\1|' || true
}

count() { # EVENT...: in the log of the last run
	local pattern
	pattern=$(printf '|%s' "$@")
	grep -cE "^\{\"event\":\"(${pattern#|})\"" .leat/runs/latest || true
}

total() { # NAME: of the last line of the last run
	sed -nE "s/^\{\"event\":\"end\".*\"$1\":([0-9]+).*/\1/p" .leat/runs/latest
}

begin=$EPOCHREALTIME
leat build -q
whole=$(((${EPOCHREALTIME/./} - ${begin/./}) / 1000)) # ms
sha256sum out/all out/part/*/* out/word/* | sed "s|$work||" >expected
[ "$(total ran)" = $actions ] || { echo "not all ran"; exit 1; }

killed=0 kept=0
for ((moment = 1; moment <= moments; moment++)); do
	rm -rf .leat out
	victim=$((RANDOM % 3))
	delay=$(printf '0.%03d' $((RANDOM % (whole < 999 ? whole : 999))))
	leat build -q >log 2>&1 &
	pid=$!
	sleep "$delay"
	case $victim in
	0) kill -9 $pid 2>/dev/null || true ;;
	1) kill -9 $pid $(commands) 2>/dev/null || true ;;
	2) commands | shuf -n 1 | xargs -r kill -9 2>/dev/null || true ;;
	esac
	status=0
	wait $pid 2>/dev/null || status=$?
	[ $status = 0 ] || killed=$((killed + 1))
	finished=0
	[ ! -e .leat/runs/latest ] || finished=$(count ran same)
	kept=$((kept + finished))

	leat build -q >log 2>&1 || fail "the next build fails"
	[ "$(total cached)" -ge "$finished" ] || fail "$finished were finished, but only $(total cached) reused"
	[ $(($(total cached) + $(total ran))) = $actions ] || fail "not all is made"
	sha256sum out/all out/part/*/* out/word/* | sed "s|$work||" | cmp - expected || fail "other results"
	leat fsck >log 2>&1 || fail "fsck finds something"
	[ -z "$(commands)" ] || fail "these processes are left: $(commands)"
	[ -z "$(ls .leat/tmp)" ] || fail "this is left in tmp: $(ls .leat/tmp)"
	leat build -q >log 2>&1 || fail "the third build fails"
	[ "$(total cached)" = $actions ] || fail "the third build runs something"
done
echo "$moments moments, $killed builds killed or failed, $kept finished actions, none ran again"
[ $killed -gt 0 ] && [ $kept -gt 0 ]
