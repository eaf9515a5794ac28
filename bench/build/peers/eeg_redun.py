"""examples/eeg as tasks of redun: the same programs, with their files as arguments."""
import os
import subprocess
from typing import List

from redun import File, task

redun_namespace = "eeg"


def run(result, *command, **variables):
    """Runs a program that makes a file or folder."""
    os.makedirs(os.path.dirname(result), exist_ok=True)
    subprocess.run(["python", *command], check=True, env={**os.environ, **variables})
    return File(result)


@task()
def decode(code: File, epochs: File, labels: File, subject: int, number: int) -> File:
    out = f"out/decode/{subject}/{number}"
    return run(out, code.path, epochs.path, labels.path, "--bin", str(number), "--seed", "1", "--out", out)


@task()
def generalise(code: File, done: List[File], epochs: File, subject: int) -> File:
    out = f"out/generalise/{subject}"
    return run(out, code.path, f"out/decode/{subject}", epochs.path, "--out", out)


@task()
def permute(code: File, generalised: File, labels: File, subject: int) -> File:
    out = f"out/permute/{subject}"
    return run(out, code.path, generalise=generalised.path, labels=labels.path, seed=str(subject), out=out)


@task()
def group(code: File, permuted: List[File]) -> File:
    return run("out/group", code.path, permute="out/permute", out="out/group")


@task()
def summary(code: File, grouped: File) -> File:
    return run("out/summary.csv", code.path, grouped.path, "--out", "out/summary.csv")


@task()
def plot(code: File, figure: File, grouped: File, name: str) -> File:
    out = f"out/plot_{name}"
    subprocess.run(["rm", "-rf", out], check=True)
    run(out, code.path, grouped.path, "--out", out)
    return File(f"{out}/{'decoding' if name == 'time' else 'generalisation'}.svg")


@task()
def main(subjects: int, bins: int) -> list:
    raw = [(File(f"raw/subject-{i}.npy"), File(f"raw/labels-{i}.npy")) for i in range(1, subjects + 1)]
    permuted = []
    for i, (epochs, labels) in enumerate(raw, 1):
        done = [decode(File("decode.py"), epochs, labels, i, number) for number in range(1, bins + 1)]
        generalised = generalise(File("generalise.py"), done, epochs, i)
        permuted.append(permute(File("permute.py"), generalised, labels, i))
    grouped = group(File("group.py"), permuted)
    plots = [plot(File(f"plot_{name}.py"), File("figure.py"), grouped, name) for name in ("time", "matrix")]
    return [summary(File("summary.py"), grouped), *plots]
