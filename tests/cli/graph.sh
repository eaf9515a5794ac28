# The steps as text, JSON and a drawing, without and with a store.
mkdir p raw
cat >p/leat.yaml <<'END'
sources:
  days: ../raw/day-{day}.csv
steps:
  count:
    run: wc -l < "$days" > "$out"
    in: days
    slices: {day: 1..3}
  total:
    run: cat "$count"/* > "$out"
    in: count
  note: {run: date > "$out"}
END
try leat graph
try leat graph --project p
try leat graph --project p --svg --json
leat graph --project p --json | python3 -c '
import json, sys
graph = json.load(sys.stdin)
for step in graph["steps"]:
    print(step)
print(graph["sources"])
'
drawing() {
	leat graph --project p --svg | python3 -c '
import sys, xml.etree.ElementTree as tree
svg = "{http://www.w3.org/2000/svg}"
root = tree.parse(sys.stdin).getroot()
for group in root.findall(f"{svg}g"):
    print(group.get("data-name"), group.get("class"), [text.text for text in group.findall(f"{svg}text")])
print(len(root.findall(f"{svg}path")), "edges", "prefers-color-scheme:dark" in root.find(f"{svg}style").text)
'
}
drawing
ls -A p
for day in 1 2 3; do echo $day >raw/day-$day.csv; done
leat build --project p >/dev/null 2>&1
try leat graph --project p
echo 2 >>raw/day-2.csv
try leat graph --project p
drawing
rm raw/day-3.csv
try leat graph --project p
leat graph --project p --json | python3 -c '
import json, sys
print([(step["name"], step["state"], step["made"], step["to_run"], step["waiting"]) for step in json.load(sys.stdin)["steps"]])
'
