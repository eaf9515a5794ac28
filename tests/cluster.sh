#!/bin/bash
# cluster.sh BUILD [eeg]: builds on a Ray cluster of two nodes and a Spark cluster of two workers, all on this machine,
# make the same bytes as a build here, also after a worker was killed. With `eeg`, the steps of examples/eeg.
#
# Ray and Spark come from PyPI, into an environment below BUILD that is made once. Skipped without Java or Ray.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
what=${2:-small}
venv=$build/cluster-venv
wanted="ray[default]==2.60.0 pyspark==4.3.0 numpy==2.4.6"
[ "$what" = small ] || wanted="$wanted scipy scikit-learn matplotlib"
command -v java >/dev/null || { echo "there is no Java"; exit 77; }
if [ "$(cat "$venv/installed" 2>/dev/null)" != "$wanted" ]; then
	rm -rf "$venv"
	python3 -m venv "$venv"
	# shellcheck disable=SC2086
	"$venv/bin/pip" install --quiet --disable-pip-version-check $wanted || { echo "Ray or Spark cannot be installed here"; exit 77; }
	echo "$wanted" >"$venv/installed"
fi
"$root/scripts/wheel" "$build"
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --force-reinstall "$build"/dist/*.whl

work=$(mktemp -d)
spark=$("$venv/bin/python" -c 'import os, pyspark; print(os.path.dirname(pyspark.__file__))')
pids=()
export PATH=$venv/bin:$PATH LEAT_PYTHON=$venv/bin/python
export PYTHONDONTWRITEBYTECODE=1 XDG_CACHE_HOME=$work/cache RAY_DISABLE_IMPORT_WARNING=1 RAY_USAGE_STATS_ENABLED=0
export SPARK_HOME=$spark SPARK_LOCAL_IP=127.0.0.1 PYSPARK_PYTHON=$venv/bin/python
ray_port=$((20000 + $$ % 10000)) spark_port=$((31000 + $$ % 10000))

end() {
	[ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null || true
	wait 2>/dev/null || true
	rm -rf "$work"
}
trap end EXIT

fail() {
	echo "$*"
	exit 1
}

# digest PROJECT: of all that its build made.
digest() {
	(cd "$1/out" && find -L . -type f -exec sha256sum {} + | sort)
}

# make_project FOLDER
make_project() {
	if [ "$what" = eeg ]; then
		python "$root/examples/eeg/generate.py" "$1" --size small
		return
	fi
	mkdir -p "$1"
	cat >"$1/leat.yaml" <<'END'
sources:
  words: words.txt
steps:
  draw:
    run: python draw.py
    in: words
    slices: {n: 1..16}
    suffix: .npy
  mean:
    run: python mean.py
    in: draw
    suffix: .txt
END
	printf 'a b c\n' >"$1/words.txt"
	cat >"$1/draw.py" <<'END'
import numpy as np
from leat import step
from helper import scale
np.save(open(step.out, "wb"), step.rng().normal(size=100) * scale)
END
	echo 'scale = 3' >"$1/helper.py"
	cat >"$1/mean.py" <<'END'
import numpy as np
from leat import step
values = [np.load(one.path).mean() for one in step.inputs.slices("draw")]
step.out.write_text(f"{np.mean(values):.17g}\n")
END
}

# same NAME WHERE: a build there has the bytes of the one here, and a build here then runs nothing.
same() {
	local folder=$work/$1
	make_project "$folder"
	leat build --project "$folder" --on "$2" >"$work/$1.log" 2>&1 || fail "$1: $(tail -n 20 "$work/$1.log")"
	[ "$(digest "$folder")" = "$(digest "$work/here")" ] || fail "$1: other bytes"
	leat build --project "$folder" 2>&1 | grep -q '^0 ran' || fail "$1: a build here runs something"
	echo "$1: same bytes, same keys"
}

# loses NAME WHERE PATTERN: one process whose command line matches is killed while actions run.
loses() {
	local folder=$work/$1 pid victim
	make_project "$folder"
	leat build --project "$folder" --on "$2" >"$work/$1.log" 2>&1 &
	pid=$!
	until grep -q ': ran in' "$work/$1.log" 2>/dev/null || ! kill -0 $pid 2>/dev/null; do sleep 0.05; done
	victim=$(pgrep -f -- "$3" | head -n 1) || true
	[ -z "$victim" ] || kill -9 "$victim"
	wait $pid || fail "$1: $(tail -n 20 "$work/$1.log")"
	[ "$(digest "$folder")" = "$(digest "$work/here")" ] || fail "$1: other bytes"
	echo "$1: same bytes after '${3##*/}' was killed (${victim:-too late})"
}

make_project "$work/here"
leat build --project "$work/here" >"$work/here.log" 2>&1 || fail "$(cat "$work/here.log")"

# ---- Ray: a head, and another node, which have a CPU each ----

ray_node() { # NAME ARGS...
	local name=$1
	shift
	ray start "$@" --block --num-cpus=1 --disable-usage-stats --object-store-memory=100000000 >"$work/ray-$name.log" 2>&1 &
	pids+=($!)
}

wait_for_ray() { # NODES
	python - "$ray_port" "$1" <<'END'
import logging, sys, time
import ray
for attempt in range(60):
    try:
        ray.init(address=f"127.0.0.1:{sys.argv[1]}", logging_level=logging.CRITICAL)
        if len([one for one in ray.nodes() if one["Alive"]]) >= int(sys.argv[2]):
            sys.exit(0)
    except (ConnectionError, RuntimeError, ValueError):
        pass
    ray.shutdown()
    time.sleep(1)
sys.exit("Ray does not start")
END
}

ray_node head --head --port=$ray_port --include-dashboard=false --node-ip-address=127.0.0.1 --temp-dir="$work/r"
wait_for_ray 1 || fail "$(cat "$work"/ray-*.log)"
same ray-1 ray://127.0.0.1:$ray_port
ray_node second --address=127.0.0.1:$ray_port
wait_for_ray 2 || fail "$(cat "$work"/ray-*.log)"
same ray-2 ray://127.0.0.1:$ray_port
loses ray-lost ray://127.0.0.1:$ray_port "leat exec --store $work/ray-lost"
loses ray-worker ray://127.0.0.1:$ray_port "ray::r"
kill "${pids[@]}"
wait "${pids[@]}" 2>/dev/null || true
pids=()

# ---- Spark: a master, and two workers with a CPU each ----

spark_part() { # NAME CLASS ARGS...
	local name=$1
	shift
	"$spark/bin/spark-class" "$@" >"$work/spark-$name.log" 2>&1 &
	pids+=($!)
}

spark_part master org.apache.spark.deploy.master.Master --host 127.0.0.1 --port $spark_port --webui-port 0
until grep -q 'I have been elected\|New state: ALIVE' "$work/spark-master.log"; do
	kill -0 "${pids[0]}" 2>/dev/null || fail "$(cat "$work/spark-master.log")"
	sleep 0.2
done
for number in 1 2; do
	spark_part worker-$number org.apache.spark.deploy.worker.Worker -c 1 -m 1g -h 127.0.0.1 --webui-port 0 \
		-d "$work/w$number" "spark://127.0.0.1:$spark_port"
done
until [ "$(grep -c 'Registering worker' "$work/spark-master.log")" = 2 ]; do sleep 0.2; done
same spark-2 spark://127.0.0.1:$spark_port
loses spark-lost spark://127.0.0.1:$spark_port "CoarseGrainedExecutorBackend"
echo "all of it holds"
