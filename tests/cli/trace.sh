# leat feed --trace: the same batches, and a file that says what all threads did
mkdir -p cells/healthy
for i in 1 2 3 4 5 6 7 8 9 10 11 12; do printf 'healthy %d' $i >cells/healthy/$i.jpg; done
leat pack cells -o cells >/dev/null
spec="tfrecord('cells-*.tfrecord') | example(image=bytes, label=int64) | shuffle | batch(4)"

echo "# the same checksum"
[ "$(leat feed "$spec" --checksum --trace run.json | tail -1)" = "$(leat feed "$spec" --checksum | tail -1)" ] && echo same

echo "# one span for each batch; rank and command in the name of the process"
leat feed "$spec" --epochs 2 --rank 1 --world 2 --trace rank1.json >/dev/null
python3 - run.json rank1.json <<'END'
import json, re, sys
for path in sys.argv[1:]:
    events = json.load(open(path))
    tags = [event["cat"] for event in events if event["ph"] == "X"]
    lanes = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    print(re.sub("[0-9]+$", "N", events[0]["args"]["name"]))
    print(tags.count("get batch"), tags.count("run batch"), {"consumer", "worker 0", "reads"} <= lanes)
END

echo "# a file that cannot be written"
try leat feed "$spec" --trace none/run.json
try leat feed "$spec" --trace /dev/null
try leat feed "$spec" --trace .

echo "# a full disk: a warning, the same batches, and an error at the end"
(ulimit -f 4 && leat feed "$spec" --epochs 50 --checksum --trace full.json 2>&1) | sed -n 's/^checksum .*/checksum/p; /^leat/p'
python3 -c 'import json; print(json.load(open("full.json"))[0]["name"])'
