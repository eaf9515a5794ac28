# A project to start from: it is written once, runs at once, and its keys are listed.
try leat init
try leat init
try leat init there
cmp leat.yaml there/leat.yaml && echo same
try leat init nowhere/there
try leat init --schema there
leat init --schema | python3 -c '
import json, sys
schema = json.load(sys.stdin)
print(list(schema["properties"]), sorted(schema["definitions"]["step"]["properties"])[:4])
print(schema["definitions"]["step"]["properties"]["cpus"])
'
leat init --keys | grep '^| `\(run\|cpus\|feed\)`'
leat build >/dev/null 2>&1 && cat out/summary.txt
sed -i 's/samples: 100/smaples: 100/' leat.yaml
try leat build
