# How builds end: retries, ^C, timeouts, edits while a step runs, results that differ, two builds at once.
shown() { # without times and numbers of actions
	sed -E -e 's/(ran|made before|failed|finished|that), in [0-9].*$/\1/' -e 's/ in [0-9.]+ s/ in T/' -e "s|$PWD/||" -e "s|tmp/[0-9T]+-[0-9]+/|tmp/RUN/|" "$@"
}
build() {
	printf '$ leat build %s\n' "$*"
	leat build "$@" >built 2>&1
	code=$?
	shown built
	[ $code -eq 0 ] || printf '[exit %d]\n' $code
}
wait_for() { # until a file is there
	while [ ! -e "$1" ]; do sleep 0.02; done
}
project() { cat >leat.yaml; }

echo '# tried again until it works, and no more often than allowed'
export TRIES=$PWD/tries
project <<'END'
steps:
  luck:
    run: echo try >>"$TRIES"; test $(wc -l <"$TRIES") -ge 3 && cp "$TRIES" "$out"
    env: [TRIES]
    retries: 2
END
build
rm tries
sed -i 's/-ge 3/-ge 4/' leat.yaml
build

echo '# no output'
project <<'END'
steps:
  nothing:
    run: "true"
END
build

echo '# a source changes while a step reads it: the result is not kept'
echo one >source.txt
project <<'END'
sources:
  source: source.txt
steps:
  slow:
    run: touch "$BEGUN"; cat "$source" >"$out"; while [ ! -e "$GO" ]; do sleep 0.02; done
    in: source
    env: [BEGUN, GO]
END
export BEGUN=$PWD/begun GO=$PWD/go
(wait_for begun; echo two, and longer >source.txt; touch go) &
build
wait
build
cat out/slow
build

echo '# ^C: what runs is finished, nothing more is started'
rm begun go
project <<'END'
steps:
  slow:
    run: touch "$BEGUN"; while [ ! -e "$GO" ]; do sleep 0.02; done; echo "$i" >"$out"
    slices: {i: 1..3}
    env: [BEGUN, GO]
END
leat build -j 1 >built 2>&1 &
pid=$!
wait_for begun
kill -INT $pid
while ! grep -q stopping built; do sleep 0.02; done
touch go
wait $pid
echo "[exit $?]"
shown built
build -j 1

echo '# ^C twice: what runs is killed'
rm begun go
sed -i 's/echo "$i"/echo "$i" again/' leat.yaml
leat build -j 1 >built 2>&1 &
pid=$!
wait_for begun
kill -INT $pid
while ! grep -q stopping built; do sleep 0.02; done
kill -INT $pid
wait $pid
echo "[exit $?]"
shown built

echo '# what runs, on request'
rm begun
leat build -j 1 >built 2>&1 &
pid=$!
wait_for begun
kill -USR1 $pid
while ! grep -q running built; do sleep 0.02; done
touch go
wait $pid
grep -m 1 running built
shown built | tail -1

echo '# ^C while sources are hashed: that takes long, and is said once, but not among events'
project <<'END'
sources:
  large: large.bin
steps:
  size:
    run: wc -c <"$large" >"$out"
    in: large
END
truncate -s 400G large.bin
leat build -j 1 >built 2>&1 &
pid=$!
leat build -j 1 --json >events 2>&1 &
other=$!
while kill -0 $pid && ! grep -q hashing built; do sleep 0.02; done 2>/dev/null
while kill -0 $other && ! ls -l /proc/$other/fd | grep -q large.bin; do sleep 0.02; done 2>/dev/null
kill -INT $pid $other
wait $pid
echo "[exit $?]"
shown built | sed 's/sources: .*/sources: .../'
wait $other
shown events
rm large.bin

echo '# run again: the same output, and another one'
project <<'END'
steps:
  steady:
    run: echo always >"$out"
  chance:
    run: date +%N >"$out"
  after:
    run: cat "$chance" >"$out"
    in: chance
END
build -j 1
cp out/chance was
build -j 1 --again steady
build -j 1 --again chance | sed -E 's/[0-9a-f]{64}/HASH/g'
cmp out/chance was
build -j 1

echo '# another output, and the old one is lost: what follows gets the new one'
blob() { readlink -f out/"$1"; }
chmod -R u+w .leat/cas
rm -f "$(blob chance)" "$(blob after)"
build -j 1 | sed -E 's/[0-9a-f]{64}/HASH/g'
cmp out/chance out/after
cmp -s out/chance was || echo new
build -j 1

echo '# a checkpoint stays until the result is kept: an output of a kind that cannot be stored is made again from it'
project <<'END'
steps:
  train:
    run: test -e "$checkpoint/half" && cp "$checkpoint/half" "$out" || { echo half >"$checkpoint/half"; mkfifo "$out"; }
    resume: true
END
build
build
cat out/train
ls .leat/resume

echo '# a checkpoint is not used after an edit of a module'
echo 'name = "one"' >model.py
cat >train.py <<'END'
import os, sys, model
folder = os.environ["checkpoint"]
before = os.listdir(folder)
open(os.path.join(folder, model.name), "w").close()
if not before:
    sys.exit("stopped with " + model.name)
open(os.environ["out"], "w").write(" ".join(sorted(os.listdir(folder))) + "\n")
END
project <<'END'
steps:
  train:
    run: python3 train.py
    resume: true
END
build
echo 'name = "two"' >model.py
build
build
cat out/train

echo '# two builds at once: each action is made, and nothing is left'
project <<'END'
steps:
  part:
    run: sleep 0.05; echo "$i" >"$out"
    slices: {i: 1..8}
  all:
    run: cat "$part"/* >"$out"
    in: part
END
leat build -q >first 2>&1 &
pid=$!
leat build -q >second 2>&1
echo "second $?"
wait $pid
echo "first $?"
cat first second out/all
ls .leat/tmp
build -q
grep -h '"event":"end"' .leat/runs/latest | sed -E 's/.*("actions":9,"cached":[0-9]+).*/\1/'

echo '# a long chain of steps, of which the first fails: the others are counted'
mkdir chain && cd chain
{
	echo 'steps:'
	echo "  s0: {run: 'exit 3'}"
	seq 1 99999 | awk '{printf "  s%d: {run: \"cp $s%d $out\", in: s%d}\n", $1, $1 - 1, $1 - 1}'
} >leat.yaml
build --keep-going
cd ..
