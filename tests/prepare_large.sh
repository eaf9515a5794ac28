#!/bin/bash
# prepare_large.sh BUILD [ROWS]: examples/ads at size, with memory: 4GiB for each step.
#
# Draws ROWS events (100,000,000), builds features of all and shuffled shards of a tenth of them, and checks that no action had
# more memory than allowed, that sources, results and spill together took at most 350 bytes of disk per event (35 GB), and
# that every planted error was found. Prints seconds, processor time and memory of each step.
#
# Needs NumPy and DuckDB for Python, which it installs into BUILD/prepare-venv; skipped where that fails. LEAT_LARGE names a
# folder for the data, which is removed afterwards; without it, that is below TMPDIR.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
rows=${2:-100000000}
venv=$build/prepare-venv
export PATH=$build:$PATH

leat sql "SELECT 1" >/dev/null 2>&1 || exit 77
if ! "$venv/bin/python" -c 'import duckdb, numpy' 2>/dev/null; then
	rm -rf "$venv"
	python3 -m venv "$venv"
	"$venv/bin/pip" install --quiet --disable-pip-version-check numpy duckdb==1.5.6 || exit 77
fi
data=$(mktemp -d "${LEAT_LARGE:-${TMPDIR:-/tmp}}/leat-large-XXXXXX")
watcher=
trap '[ -z "$watcher" ] || kill "$watcher" 2>/dev/null; rm -rf "$data"' EXIT
room=$(df --output=avail -B1 "$data" | tail -n 1)
if [ "$room" -lt $((rows * 350 + 2000000000)) ]; then
	echo "$data has only $room bytes free"
	exit 77
fi

begin=$SECONDS
"$venv/bin/python" "$root/examples/ads/generate.py" "$data/ads" --rows "$rows"
echo "$rows events drawn in $((SECONDS - begin)) s, $(du -sm "$data/ads/raw" | cut -f1) MB"
cd "$data/ads"
export TMPDIR=$data
# Each step has 4 GiB; shards are those of a tenth of the users, shuffled.
sed -i -e 's/^    cpus: 8$/&\n    memory: 4GiB/' -e 's/train: 80%, test: 20%/train: 90%, test: 10%/' \
	-e 's/^  test_shards: .*/  test_shards: {shards: test_rows, count: 8, seed: 1, cpus: 8, memory: 4GiB}/' leat.yaml
[ "$(grep -c 'memory: 4GiB' leat.yaml)" -ge 7 ] && grep -q 'train: 90%' leat.yaml || { echo "leat.yaml has other steps"; exit 1; }

# The most that the folder ever held, in KiB.
watch() {
	local most=0 now
	while sleep 2; do
		now=$(du -sk "$data" 2>/dev/null | cut -f1)
		[ "${now:-0}" -le "$most" ] || { most=$now && echo "$most" >"$data/most"; }
	done
}
watch &
watcher=$!
begin=$SECONDS
leat build audit test_shards >built 2>&1 || { tail -n 5 built; exit 1; }
took=$((SECONDS - begin))
sleep 2
kill $watcher
watcher=
echo "built in $took s: $((rows / (took + 1))) events/s; at most $(($(cat "$data/most") / 1000)) MB of disk"

"$venv/bin/python" - "$rows" "$(cat "$data/most")" <<'CHECK'
import collections, glob, json, subprocess, sys

rows, most_kib = map(int, sys.argv[1:])
steps = collections.defaultdict(list)
for line in open(glob.glob(".leat/runs/*.jsonl")[0], encoding="utf-8"):
    event = json.loads(line)
    if event["event"] == "ran":
        shown = subprocess.run(["leat", "show", event["id"], "--json"], check=True, stdout=subprocess.PIPE).stdout
        steps[event["step"]].append(json.loads(shown))
print(f"{'step':12} actions      s  CPU s  peak MiB  CPU us/event")
failed = False
for name, actions in steps.items():
    seconds, cpu = (sum(one[key] for one in actions) for key in ("seconds", "cpu_s"))
    peak = max(one["peak_bytes"] for one in actions)
    print(f"{name:12} {len(actions):7} {seconds:6.0f} {cpu:6.0f} {peak / 2**20:9.0f} {1e6 * cpu / rows:13.2f}")
    if peak > 4 * 2**30:
        failed = True
        print(f"{name} had more than 4 GiB")
if most_kib * 1024 > 350 * rows + 1e9:
    failed = True
    print("more than 350 bytes of disk per event")
truth = json.load(open("raw/truth.json", encoding="utf-8"))
text = subprocess.run(["leat", "sql", "--json", "FROM audit"], check=True, stdout=subprocess.PIPE, text=True).stdout
found = {row["reason"]: row["events"] for row in map(json.loads, text.splitlines())}
kinds = ("null key", "orphan", "out of range", "late", "duplicate")
wanted = {"kept": rows, **{kind: sum(len(of[kind]) for of in truth["planted"].values()) for kind in kinds}}
if found != wanted:
    failed = True
    print(f"events are {found} instead of {wanted}")
sys.exit(failed)
CHECK
