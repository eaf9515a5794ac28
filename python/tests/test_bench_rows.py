"""bench/rows/run measures NumPy and Leat with few samples; the other peers and full size are left to `make bench-rows`."""
import json
import re
import subprocess
import sys


def test_a_small_run(root, build):
    done = subprocess.run([sys.executable, root / "bench/rows/run", build, "tokens", "digits", "records", "tiny", "--smoke",
                           "--only", "Leat", "--only", "NumPy", "--only", "batch("],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
    assert done.returncode == 0, done.stdout
    for row in "NumPy", "Leat, 2 threads", "Leat from Python, 1 thread", "Leat, in blocks", r"batch\(1\) in C, 1 thread":
        assert re.search(rf"^\| {row} \| [\d.,e+]+ \| [\d.,e+]+ \|", done.stdout, re.MULTILINE), (row, done.stdout)
    for target in "tokens: rate, Leat, 2 threads / NumPy", "records, warm: processor time, shuffled / in order":
        assert re.search(rf"^\| {target} \| [\d.e+-]+ \| at (most|least) [\d.]+ \| (reached|missed) \|$", done.stdout,
                         re.MULTILINE), (target, done.stdout)
    last = json.loads((build / "bench/rows/results.jsonl").read_text().splitlines()[-1])
    assert last["smoke"] and "failed" not in last["figures"]
    [numpy] = last["figures"]["digits"]["NumPy"]
    assert numpy["rate"] > 0 and numpy["cpu_us"] > 0


def test_a_part_that_is_not_there(root, build):
    done = subprocess.run([sys.executable, root / "bench/rows/run", build, "letters"], stderr=subprocess.PIPE, text=True)
    assert done.returncode == 2 and "there is no part letters" in done.stderr
