"""COUNT commands, remembered by joblib.Memory and run by its worker processes: echo_joblib.py COUNT JOBS."""
import subprocess
import sys

from joblib import Memory, Parallel, delayed


def echo(i):
    subprocess.run(["sh", "-c", f"echo {i} >out/{i}"], check=True)
    return i


def main(count, jobs):
    cached = Memory(".joblib", verbose=0).cache(echo)
    Parallel(n_jobs=jobs)(delayed(cached)(i) for i in range(count))


if __name__ == "__main__":
    import echo_joblib  # so that the function is remembered by the name of the module, not as one of __main__

    echo_joblib.main(*map(int, sys.argv[1:]))
