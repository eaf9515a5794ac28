#!/bin/bash
# build_clock.sh BUILD: the clock jumps back and forth between builds, and files are from the future. Results are right,
# nothing runs twice, and the newest build and failure are still found.
set -euo pipefail
build=$(cd "$1" && pwd)
PATH=$build:$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
day=86400

fail() {
	echo "$*"
	cat log
	exit 1
}
at() { # SECONDS COMMAND...: with a clock that is so far off
	LEAT_CLOCK_SHIFT=$1 LD_PRELOAD=$build/tests/libclock_shift.so "${@:2}" >log 2>&1
}
total() { # NAME: of the last line of the last run
	sed -nE "s/^\{\"event\":\"end\".*\"$1\":([0-9]+).*/\1/p" .leat/runs/latest
}
made() { # CACHED RAN SHIFT: a build with this clock reuses and runs so many
	at "$3" leat build -q || fail "a build with the clock at $3 s fails"
	[ "$(total cached) $(total ran)" = "$1 $2" ] || fail "at $3 s: $(total cached) made before, $(total ran) ran; expected $1 and $2"
	cat raw/[123].txt | cmp - out/all || fail "at $3 s: other results"
	at "$3" leat fsck || fail "at $3 s: fsck finds something"
	[ "$(leat log --builds 1 | head -1 | cut -d ' ' -f 1).jsonl" = "$(readlink .leat/runs/latest)" ] ||
		fail "at $3 s: the last build is not listed first"
}

[ "$(LEAT_CLOCK_SHIFT=-$((365 * day)) LD_PRELOAD=$build/tests/libclock_shift.so date +%Y)" -lt "$(date +%Y)" ] ||
	fail "the clock cannot be shifted"
mkdir raw
for i in 1 2 3; do echo "line of $i" >raw/$i.txt; done
touch -d '+3 days' raw/1.txt
cat >leat.yaml <<'END'
sources:
  raw: raw/{i}.txt
steps:
  copy:
    run: cat "$raw" >"$out"
    in: raw
    slices: {i: 1..3}
  all:
    run: cat "$copy"/* >"$out"
    in: copy
END
made 0 4 0
made 4 0 -$day
made 4 0 $day
echo '# edits that leave size and mtime as they are, at every clock'
edits=0
for shift in -$day 0 $((40 * day)) -$((40 * day)) 0; do
	old=$(stat -c %y raw/2.txt)
	echo "edit $((++edits)) of 2" >raw/2.txt
	touch -d "$old" raw/2.txt
	made 2 2 "$shift"
	made 4 0 "$shift"
done
echo '# a file from the future that is edited'
echo 'another line' >raw/1.txt
touch -d '+3 days' raw/1.txt
made 2 2 -$day
made 4 0 0

echo '# the newest failure is shown, whatever the clock was; and it is over once its step is made'
sed -i 's/cat "$copy"/test -e none \&\& &/' leat.yaml
for shift in 0 -$day $day; do
	! at "$shift" leat build || fail "a step that fails is made"
	id=$(sed -nE 's/.*(leat log all-[0-9]+).*/\1/p' log)
	at 0 leat status && grep -q "failed last: .*'$id'" log || fail "$id is not shown"
done
sed -i 's/test -e none && //' leat.yaml
made 4 0 -$day
at 0 leat status && ! grep -q failed log || fail "a failure that is over is shown"

echo '# gc keeps what the last build used'
for shift in $((400 * day)) -$((400 * day)) 0; do
	at "$shift" leat gc || fail "gc with the clock at $shift s fails"
	made 4 0 "$shift"
done
