# leat xray: what limits a spec; times differ, so only what must not is shown
mkdir -p cells/a cells/b
for i in 1 2 3 4 5 6 7 8 9 10 11; do
	printf 'healthy %d' $i >cells/a/$i.jpg
	printf 'sick %d %d' $i $i >cells/b/$i.jpg
done
spec="folder(cells) | shuffle | batch(4)"

echo "# a step that sets the pace"
leat xray "$spec" --step-ms 30 --seconds 1 --json | python3 -c '
import json, sys
x = json.load(sys.stdin)
print("limit:", x["limit"])
print("parts:", *[p["name"] for p in x["parts"]])
print("helping:", [r["what"] for r in x["remedies"] if r["helps"]])
print("every remedy that would not help says why:", all(r["why"] for r in x["remedies"] if not r["helps"]))
print("run:", x["run"]["samples"] > 0)'
leat xray "$spec" --step-ms 30 --seconds 1 --report run.html | sed -n '1s/could give .* times/could give N times/p'

grep -c "the step is the limit" run.html

echo "# errors"
try leat xray
try leat xray "folder(cells) | batch(4)" --step-cpu 1
try leat xray "folder(cells)"
try leat xray "folder(cells) | take(0) | batch(4)"
try leat xray "folder(cells) | decode | batch(4)"

echo "# a page that cannot be written is refused before anything is read"
try leat xray "folder(cells) | decode | batch(4)" --report no/such/folder/run.html
