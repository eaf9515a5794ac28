"""A virtual environment with the peers of a benchmark, made once and again when its requirements change."""
import hashlib
import json
import re
import shutil
import subprocess
import sys

PATIENCE = 1800  # seconds of one installation


def make(folder, wanted, optional=(), size="some minutes"):
    """Returns the interpreter of the environment in `folder`, and what could not be installed: {name: why}.

    Everything in the file `wanted` must install. Each file of `optional`, requirements-NAME.txt, may fail.
    """
    python, state, stamp = folder / "bin/python", folder / "state.json", stamp_of(wanted, *optional)
    if state.exists() and (known := json.loads(state.read_text()))["stamp"] == stamp:
        return python, known["missing"]
    say(f"installing the peers below {folder} ({size}) ...")
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    if why := install(python, wanted):
        sys.exit(f"{wanted} cannot be installed: {why}")
    missing = {}
    for path in optional:
        if why := install(python, path):
            missing[path.stem.removeprefix("requirements-")] = why
            say(f"{path.name} cannot be installed: {why}")
    state.write_text(json.dumps({"stamp": stamp, "missing": missing}))
    return python, missing


def stamp_of(*paths):
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def install(python, wanted):
    """Installs a file of requirements; returns why it could not, or None."""
    log = python.parents[1] / f"{wanted.stem}.log"
    # torch first: whatever depends on it then takes this one.
    torch = [line for line in wanted.read_text().split() if line.startswith("torch==")]
    with open(log, "w") as out:
        for what in filter(None, (torch, ["-r", wanted])):
            try:
                subprocess.run([python, "-m", "pip", "install", "--disable-pip-version-check", "-q", *what], check=True,
                               stdout=out, stderr=subprocess.STDOUT, timeout=PATIENCE)
            except subprocess.TimeoutExpired:
                return f"it took more than {PATIENCE} s; see {log}"
            except subprocess.CalledProcessError:
                found = re.findall(r"\w+Error: .*", log.read_text())
                return found[0] if found else f"pip failed; see {log}"
    return None


def say(text):
    print(text, file=sys.stderr, flush=True)
