#!/bin/bash
# kill_outputs.sh BUILD: commands that write several files are killed before each of their changes to the file system,
# one after the other. Whatever is left, a reader gets all of the old data, all of the new, or an error that names the
# command to run again; and that command then gives all of the new, and leaves nothing but what a run that was not
# killed leaves.
set -euo pipefail
build=$(cd "$1" && pwd)
PATH=$build:$PATH
data=$(mktemp -d /dev/shm/leat-kill-XXXXXX 2>/dev/null || mktemp -d) # there, syncing takes no time
trap 'rm -rf "$data"' EXIT
cd "$data"
export XDG_CACHE_HOME=$data/cache

for set in old new; do # labels differ, too
	mkdir -p $set/a $set/b
	for ((i = 0; i < 37; i++)); do
		class=b
		[ $((i % 3)) = $([ $set = old ] && echo 0 || echo 1) ] && class=a
		echo "$set image $i" >$set/$class/$i.jpg
	done
	leat pack $set -o from-$set --shards 1 >/dev/null
	leat index "from-$set-*" >/dev/null
	leat convert "tfrecord('from-$set-*') | example(label=int64)" -o from-$set --format npy >/dev/null
done

fail() {
	echo "$*"
	exit 1
}

checksum() { # SPEC: nothing when it fails
	leat feed "$1 | batch(5)" --epochs 1 --checksum 2>error | sed -n 's/^checksum //p'
}

# NAME SPEC PREPARE COMMAND: PREPARE writes the old data, or nothing.
killed=0 old_seen=0 new_seen=0 refused=0
check() {
	local name=$1 spec=$2 prepare=$3 command=$4 old new calls n got
	mkdir "$name" && cd "$name"
	ln -s ../from-* ../.from-* ../old ../new .
	eval "$prepare" >/dev/null
	old=$(checksum "$spec") || true
	cp -a . ../start
	KILL_AT=0 KILL_COUNT=../calls LD_PRELOAD=$build/tests/libkill_at.so eval "$command" >/dev/null
	new=$(checksum "$spec")
	[ -n "$new" ] && [ "$old" != "$new" ] || fail "$name: old '$old', new '$new'"
	ls -A1R >../left
	calls=$(cat ../calls)
	[ "$calls" -gt 10 ] || fail "$name: only $calls calls"
	cd ..
	for ((n = 1; n <= calls; n++)); do
		rm -rf "$name" && cp -a start "$name" && cd "$name"
		# The subshell keeps quiet about what happened to it.
		(KILL_AT=$n LD_PRELOAD=$build/tests/libkill_at.so eval "$command" >/dev/null 2>&1) >/dev/null 2>&1 &&
			fail "$name: not killed at $n of $calls"
		got=$(checksum "$spec") || true
		again=$command
		if [ -z "$got" ]; then
			if again=$(grep -o 'run it again: leat .*' error); then
				again=${again#run it again: }
				refused=$((refused + 1))
			elif [ -n "$prepare" ]; then
				fail "$name: killed at $n of $calls, it reads: $(cat error)"
			else
				again=$command # nothing was visible yet
			fi
		elif [ "$got" = "$new" ]; then
			new_seen=$((new_seen + 1))
		elif [ "$got" = "$old" ]; then
			old_seen=$((old_seen + 1))
		else
			fail "$name: killed at $n of $calls, it reads a mixture of old and new"
		fi
		eval "$again" >out 2>&1 || [ "$got" = "$new" ] || fail "$name: killed at $n of $calls, again: $(cat out)"
		rm -f error out
		[ "$(checksum "$spec")" = "$new" ] || fail "$name: killed at $n of $calls, again: other data: $(cat error)"
		rm -f error
		ls -A1R | diff - <(grep -vx error ../left) || fail "$name: killed at $n of $calls, this was left"
		killed=$((killed + 1))
		cd ..
	done
	echo "$name: killed at each of $calls calls"
	rm -rf start
}

images="example(image=bytes, label=int64)"
shards() { echo "leat convert \"tfrecord('from-$1-*') | $images\" -o p --shards $2 ${3:-}"; }
npy() { echo "leat convert \"npy(x='from-$1/label.npy', y='from-$1/label.npy')\" -o p --format npy ${2:-}"; }

check six_to_six "tfrecord('p-*') | $images" "$(shards old 6)" "$(shards new 6 --overwrite)"
check six_to_four "tfrecord('p-*') | $images" "$(shards old 6)" "$(shards new 4 --overwrite)"
check four_to_six "tfrecord('p-*') | $images" "$(shards old 4)" "$(shards new 6 --overwrite)"
check pack_anew "tfrecord('p-*') | $images" "" "leat pack new -o p --shards 6 -j 1"
check pack_over "tfrecord('p-*') | $images" "leat pack old -o p --shards 3" "leat pack new -o p --shards 3 -j 1 --overwrite"
check tar "tar('p-*', fields=['image=jpg', 'label=cls:int64'])" "leat pack old -o p --shards 3 --format tar" \
	"leat pack new -o p --shards 2 -j 1 --format tar --overwrite"
check npy "npy(x='p/x.npy', y='p/y.npy')" "$(npy old)" "$(npy new --overwrite)"
check npy_anew "npy(x='p/x.npy', y='p/y.npy')" "" "$(npy new)"

# Tables need DuckDB, which not every machine has.
if leat sql "SELECT i AS user FROM range(37) t(i)" -o old.parquet >/dev/null 2>&1; then
	leat sql "SELECT i + 100 AS user FROM range(41) t(i)" -o new.parquet >/dev/null
	rows="example(user=int64)"
	check shards "tfrecord('p/shard-*') | $rows" "leat shards ../old.parquet -o p --count 3" \
		"leat shards ../new.parquet -o p --count 2 --seed 1 -j 1 --overwrite"
	check shards_anew "tfrecord('p/shard-*') | $rows" "" "leat shards ../new.parquet -o p --count 4 --seed 1 -j 1"

	# Several sets of files, of columns or of parts, are one result: a mixture of old and new would show.
	for format in npy parquet tar; do
		case $format in
		npy) spec="npy(user='p/user-*.npy', twice='p/twice-*.npy')" ;;
		parquet) spec="parquet('p/shard-*')" ;;
		tar) spec="tar('p/shard-*', fields=['user=user.cls:int64'])" ;;
		esac
		for set in old new; do
			leat sql "SELECT user, 2 * user AS twice FROM '$set.parquet'" -o $set-$format.parquet >/dev/null
		done
		check shards_$format "$spec" "leat shards ../old-$format.parquet -o p --count 3 --format $format" \
			"leat shards ../new-$format.parquet -o p --count 2 --seed 1 -j 1 --format $format --overwrite"
	done
	for set in old new; do
		leat sql "SELECT user, user % 2 AS half FROM '$set.parquet'" -o $set-halves.parquet >/dev/null
	done
	check shards_parts "tfrecord('p/0/shard-*', 'p/1/shard-*') | $rows" "leat shards ../old-halves.parquet -o p --count 2 --parts half" \
		"leat shards ../new-halves.parquet -o p --count 3 --parts half --seed 1 -j 1 --overwrite"

	# What is shuffled by way of a file is gone with the process.
	leat sql "SELECT i AS user, repeat('x', 200) AS text FROM range(400000) t(i)" -o large.parquet >/dev/null
	leat shards large.parquet -o spilled --count 2 --seed 1 --memory 32MiB >/dev/null &
	pid=$!
	until ls -l /proc/$pid/fd 2>/dev/null | grep -q 'spilled/.*(deleted)'; do
		kill -0 $pid || fail "nothing was spilled"
		sleep 0.01
	done
	kill -9 $pid
	wait $pid 2>/dev/null || true
	ls -A spilled | grep -v '^\.shard.*\(tmp\|lock\)$' && fail "a killed command left this"
	[ "$(du -s spilled | cut -f1)" -lt 1000 ] || fail "a killed command left $(du -sh spilled)"
	leat shards large.parquet -o spilled --count 2 --seed 1 --memory 32MiB >out || fail "it does not run again"
	grep -q 'temporary file' out || fail "nothing was spilled: $(cat out)"
	ls -A spilled | grep 'tmp\|lock' && fail "this was left"
	echo "shards: killed while shuffling"
fi
echo "$killed runs were killed: $old_seen left the old data, $new_seen the new, $refused were refused"
[ $old_seen -gt 0 ] && [ $new_seen -gt 0 ] && [ $refused -gt 0 ] || fail "not all outcomes came up"
