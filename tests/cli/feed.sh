# leat feed: same bytes for any threads, memory and ranks; resumed anywhere; errors that can be acted on
mkdir -p cells/healthy cells/sick
for i in 1 2 3 4 5 6 7 8 9 10 11; do
	printf 'healthy %d' $i >cells/healthy/$i.jpg
	printf 'sick %d %d' $i $i >cells/sick/$i.jpg
done
leat pack cells -o cells --shards 3 >/dev/null
spec="tfrecord('cells-*.tfrecord') | example(image=bytes, label=int64) | shuffle | batch(6)"

echo "# the checksum is that of the data, however it is delivered"
checksum() { leat feed "$@" --checksum | sed -n 's/^checksum //p'; }
whole=$(checksum "$spec" --epochs 2)
for options in "-j 1" "-j 7" "--memory 1MiB" "-j 2 --memory 4MiB"; do
	[ "$(checksum "$spec" --epochs 2 $options)" = "$whole" ] && echo "same with $options"
done
rm -f .*.leatidx
[ "$(checksum "$spec" --epochs 2)" = "$whole" ] && echo "same with a cold index"
[ "$(checksum "$spec" --epochs 2 --seed 1)" != "$whole" ] && echo "another with another seed"

echo "# the samples of three ranks are those of one"
leat feed "$spec" --epochs 2 --list all.txt >/dev/null
for rank in 0 1 2; do leat feed "$spec" --epochs 2 --rank $rank --world 3 --list rank$rank.txt >/dev/null; done
sort -n -k1,1 -k2,2 rank?.txt | cmp - all.txt && wc -l <all.txt

echo "# stopped after three batches, resumed by two ranks"
leat feed "$spec" --epochs 2 --batches 3 --save place.json --list begin.txt >/dev/null
for rank in 0 1; do leat feed "$spec" --epochs 2 --resume place.json --rank $rank --world 2 --list rest$rank.txt >/dev/null; done
leat feed "$spec" --epochs 2 --list /dev/stdout | grep '^[0-9]' | cmp - all.txt && echo "to a pipe as well"
try leat feed "$spec" --list none/all.txt
sort -n -k1,1 -k2,2 begin.txt rest?.txt | cmp - all.txt && echo "nothing lost, nothing twice"

echo "# the last batch of three ranks, of 22 samples in batches of 6: what counts is on the list"
for tail in auto wrap exact pad drop; do
	for rank in 0 1 2; do
		leat feed "tfrecord('cells-*.tfrecord') | batch(6, tail=$tail)" --rank $rank --world 3 --list rank$rank.txt --json |
			python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["samples"], "in", d["batches"], end=", ")'
	done
	echo "$tail: $(sort -u rank?.txt | wc -l) of $(cat rank?.txt | wc -l)"
done

echo "# no batches"
try leat feed "tfrecord('cells-*.tfrecord') | batch(60, tail=drop)"
try leat feed "tfrecord('cells-*.tfrecord') | take(0) | batch(6)" --epochs 0 --save empty.json --checksum
try leat feed "tfrecord('cells-*.tfrecord') | take(0) | batch(6)" --epochs 3 --resume empty.json --quiet
: >empty.tfrecord
try leat feed "tfrecord('empty.tfrecord') | shuffle | batch(6)"
try leat feed "tfrecord('cells-*.tfrecord') | take(2) | batch(6, tail=exact)" --rank 2 --world 3
try leat look "tfrecord('empty.tfrecord')"
try leat convert "tfrecord('empty.tfrecord')" -o none

echo "# a checkpoint of something else"
try leat feed "tfrecord('cells-*.tfrecord') | example(image=bytes, label=int64) | shuffle(5) | batch(6)" --resume place.json
try leat feed "tfrecord('cells-00000*') | example(image=bytes, label=int64) | shuffle | batch(6)" --resume place.json
echo '{"leat_checkpoint": 1' >torn.json
try leat feed "$spec" --resume torn.json

echo "# a changed batch size or op: the same samples follow"
bigger="tfrecord('cells-*.tfrecord') | example(image=bytes, label=int64) | drop(label) | shuffle | batch(8)"
try leat feed "$bigger" --resume place.json
leat feed "$bigger" --resume place.json --force --epochs 2 --list forced.txt >/dev/null
cut -d' ' -f1,2 forced.txt >forced.positions
cut -d' ' -f1,2 all.txt | tail -n "$(wc -l <forced.txt)" | cmp - forced.positions && wc -l <forced.txt
try leat feed "tfrecord('cells-*.tfrecord') | example(image=bytes, label=int64) | batch(8)" --resume place.json --force
try leat feed "$spec" --force

echo "# a file with other bytes of the same size is found by a full fingerprint"
leat feed "$spec" --batches 2 --save full.json --fingerprint full >/dev/null
leat feed "$spec" --resume full.json >/dev/null && echo "the same data"
cp cells-00002-of-00003.tfrecord same
python3 - <<'END'
with open("cells-00002-of-00003.tfrecord", "r+b") as file:
    file.seek(-8, 2)
    last = file.read(1)
    file.seek(-8, 2)
    file.write(bytes([last[0] ^ 1]))
END
leat feed "$spec" --on-error skip --resume place.json >/dev/null && echo "names and sizes are the same"
try leat feed "$spec" --on-error skip --resume full.json
try leat feed "$spec" --on-error skip --resume full.json --force >/dev/null
mv same cells-00002-of-00003.tfrecord
leat feed "$spec" --resume place.json --fingerprint full >/dev/null

echo "# as data"
leat feed "$spec" --json | python3 -c 'import json, sys; d = json.load(sys.stdin); print(sorted(d)); print(d["samples"], d["batches"], d["bad"])'
leat ops --json >ops.json
leat feed "$spec" --json | python3 -c 'import json, sys; s = json.load(sys.stdin)["stats"]; print(list(s)); print(s["samples"], s["batches"], s["bad"])
print(list(s) == [stat["name"] for stat in json.load(open("ops.json"))["stats"]])'

echo "# what each stage did: with a step, and without one"
rows() { awk 'NF == 0 { below = 1 } /^  (waited|example|step) / { print $1 } END { print (below ? "sentence: " : "none"), /[.]$/ }'; }
leat feed "$spec" --step-ms 1 | rows
leat feed "$spec" | rows
leat feed "${spec%batch(6)}batch(6) | prefetch(0)" --epochs 200 | tail -1 | sed 's/; the loader.*much//'
leat feed "$spec" --json | python3 -c 'import json, sys; d = json.load(sys.stdin)
print([stage["name"] for stage in d["stages"] if stage["name"] != "disk"])
print({stage["items"] for stage in d["stages"]}, [(e["epoch"], e["samples"]) for e in d["epochs"]], d["endpoints"], d["tuning"] is not None)'

echo "# for Prometheus"
leat feed "$spec" --prometheus figures.prom >/dev/null
grep -E '^leat_(samples|batches)_total|^# TYPE leat_batch_seconds|leat_batch_seconds_count' figures.prom
try leat feed "$spec" --prometheus none/figures.prom

echo "# the ranks of a run"
for rank in 0 1 2; do
	wait=0.02 limit=step; [ $rank = 2 ] && wait=0.31 limit=network
	echo '{"samples": 1000, "batches": 10, "seconds": 10.0, "samples_per_s": 100.0, "wait_share": '$wait', "rank": '$rank', "limit": "'$limit'",
	"sentence": "the '$limit' gives 100 samples/s.", "stages": [{"name": "decode", "tag": "decode", "threads": 2, "busy_s": 9.0, "starved_s": 1.0, "blocked_s": 0.0, "items": 1000}]}' >rank-$rank.json
done
try leat stats rank-0.json rank-1.json rank-2.json
try leat stats rank-0.json rank-1.json
leat stats rank-?.json --json | python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["samples"], d["seconds"], d["samples_per_s"], d["slow_rank"], d["limit"], d["stages"])'
leat feed "$spec" --json >rank-1.json && leat stats rank-1.json | wc -l
try leat stats place.json
try leat stats torn.json
try leat stats
rm figures.prom rank-?.json # their figures differ from run to run; tests/check_checksums keeps the folder

echo "# what is wrong"
try leat feed "tfrecord('nothing-*') | batch(2)"
try leat feed "tfrecord(cells-*.tfrecord) | batch(6)"
try leat feed "tfrecord('cells-*.tfrecord') | shufle | batch(6)"
try leat feed "tfrecord('cells-*.tfrecord') | batch(6) | shuffle"
try leat feed "decode | batch(6)"
try leat feed "tfrecord('cells-*.tfrecord') | resize(10, 10) | batch(6)"
try leat feed "tfrecord('cells-*.tfrecord') | example(image=bytes) | decode | batch(6)"
try leat feed "tfrecord('cells-*.tfrecord') | example(picture=bytes) | batch(6)"
try leat feed "tfrecord('cells-*.tfrecord') | batch(10)" --world 4 --rank 0
try leat feed "tfrecord('cells-*.tfrecord') | batch(6)" --world 2 --rank 2
try leat feed "tfrecord('cells-*.tfrecord') | batch(6)" -j 1 --memory 10KiB
try leat feed "tfrecord('cells-*.tfrecord')"
try leat feed

echo "# bad samples"
cp cells-00001-of-00003.tfrecord good
printf X | dd of=cells-00001-of-00003.tfrecord bs=1 seek=40 conv=notrunc 2>/dev/null
order="tfrecord('cells-*.tfrecord') | example(image=bytes, label=int64) | batch(6)"
try leat feed "$order"
leat feed "$order" --on-error skip --json | python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["samples"], d["bad"])'
leat feed "$order" --on-error replace --json | python3 -c 'import json, sys; d = json.load(sys.stdin); print(d["samples"], d["bad"])'
try leat feed "$order" --on-error skip --max-bad 0 --bad bad.jsonl
cat bad.jsonl
leat feed "${order%batch(6)}repeat(20) | batch(6)" --on-error skip --bad bad.jsonl | grep more
wc -l < bad.jsonl
try leat feed "$order" --bad none/bad.jsonl

echo "# what newcomers try"
mv good cells-00001-of-00003.tfrecord
try leat feed cells
try leat look cells-00000-of-00003.tfrecord
try leat feed "$spec" --batch-size 6
try leat feed "$spec" --num-workers 4
try leat feed "$spec" --resume cells
try leat feed "$spec" --save none/place.json
leat feed "$spec" --save end.json >/dev/null
leat feed "$spec" --resume end.json >/dev/null
