# One op in full, all of them, and their JSON.
try leat ops resize
try leat ops random_erasing
try leat ops resiez
try leat ops what_is_this
leat ops | grep -A 2 '^Sources'
leat ops --no-json | grep -c '^  resize  '
leat ops --json | python3 -c '
import json, sys
d = json.load(sys.stdin)
items = {i["name"]: i for i in d["items"]}
print(items["tfrecord"]["kind"], items["resize"]["kind"], items["random_flip"]["random"])
print([o["name"] for o in items["resize"]["options"]], items["resize"]["options"][2]["choices"])
'
