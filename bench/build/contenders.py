"""Who takes part: how each one runs the same commands, and the same analysis of EEG, in a separate folder."""
import contextlib
import os
import pathlib
import shutil
import subprocess
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
PEERS = HERE / "peers"
PATIENCE = 3600  # seconds: whoever is not done by then is ended

THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "GOTO_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS",
           "VECLIB_MAXIMUM_THREADS", "NUMEXPR_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS")


class Place:
    """What all contenders share: the interpreter with the peers, the command `leat`, the number of jobs."""

    def __init__(self, build, venv, jobs):
        self.build, self.venv, self.jobs = build, venv, jobs
        self.environment = {name: value for name, value in os.environ.items()
                            if name not in THREADS and not name.startswith("LEAT_") and name != "PYTHONPATH"}
        self.environment.update(PATH=f"{venv}/bin:{os.environ['PATH']}", VIRTUAL_ENV=str(venv))

    def run(self, command, folder, **more):
        """Runs a command to its end; returns seconds. A failure shows the end of what it printed."""
        begin = time.perf_counter()
        done = subprocess.run([str(word) for word in command], cwd=folder, timeout=PATIENCE, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env={**self.environment, **more})
        seconds = time.perf_counter() - begin
        if done.returncode:
            raise RuntimeError(f"{command[0]} failed in {folder}: {done.stdout.decode(errors='replace')[-2000:]}")
        return seconds


class Contender:
    """A folder, and how to run everything in it."""

    name = ""

    def __init__(self, place, folder):
        self.place, self.folder = place, folder

    def wipe(self):
        """Back to a fresh copy: nothing was run before."""
        self.close()
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)
        self.prepare()

    def prepare(self):
        (self.folder / "out").mkdir()

    def run(self):
        raise NotImplementedError

    def close(self):
        pass


# ---- COUNT commands ----

class Echo(Contender):
    count = 1000


class EchoLeat(Echo):
    name = "Leat"

    def prepare(self):
        (self.folder / "leat.yaml").write_text(
            f'steps:\n  echo:\n    run: echo "$i" >"$out"\n    slices: {{i: 1..{self.count}}}\n')

    def run(self):
        return self.place.run([self.place.build / "leat", "build", "-j", self.place.jobs], self.folder)


class EchoBare(Echo):
    name = "bare posix_spawn"

    def run(self):
        program = self.place.build / "bench/build/bench_spawn"
        return self.place.run([program, self.count, self.place.jobs, self.folder / "out"], self.folder)


def snakemake(contender, rules, *config):
    jobs = contender.place.jobs
    return contender.place.run(["snakemake", "-s", PEERS / rules, "--cores", jobs, "--quiet", "all", "--config", *config],
                               contender.folder)


class EchoSnakemake(Echo):
    name = "Snakemake"

    def run(self):
        return snakemake(self, "echo.smk", f"count={self.count}")


class EchoRedun(Echo):
    name = "redun"

    def prepare(self):
        super().prepare()
        redun_config(self.folder, self.place.jobs)
        shutil.copy(PEERS / "echo_redun.py", self.folder)

    def run(self):
        return self.place.run(["redun", "run", "echo_redun.py", "main", "--count", self.count], self.folder)


class EchoJoblib(Echo):
    name = "joblib.Memory"

    def prepare(self):
        super().prepare()
        shutil.copy(PEERS / "echo_joblib.py", self.folder)

    def run(self):
        return self.place.run(["python", "echo_joblib.py", self.count, self.place.jobs], self.folder)


def redun_config(folder, jobs):
    (folder / ".redun").mkdir()
    (folder / ".redun/redun.ini").write_text(
        f"[backend]\ndb_uri = sqlite:///redun.db\n\n[executors.default]\ntype = local\nmax_workers = {jobs}\n")


class Exax(Contender):
    """A project of Exax. Its server is started by the first run, and is not in the time."""

    name = "Exax"
    server = None

    def prepare(self):
        methods = self.folder / "dev"
        shutil.copytree(PEERS / "exax", methods)
        shutil.move(methods / "accelerator.conf", self.folder)
        (methods / "__init__.py").touch()
        (methods / "methods.conf").touch()
        (self.folder / "workdirs/dev").mkdir(parents=True)
        (self.folder / "results").mkdir()

    def variables(self):
        return {"BENCH_JOBS": str(self.place.jobs), "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}

    def start(self):
        with open(self.folder / "server.log", "wb") as log:
            self.server = subprocess.Popen([self.place.venv / "bin/ax", "server"], cwd=self.folder, stdout=log,
                                           stderr=log, stdin=subprocess.DEVNULL, start_new_session=True,
                                           env={**self.place.environment, **self.variables()})
        for _ in range(600):
            if (self.folder / ".socket.dir/server").exists():
                return
            time.sleep(0.1)
        raise RuntimeError(f"Exax's server does not start; see {self.folder}/server.log")

    def close(self):
        if self.server is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.server.pid, 15)
            self.server.wait()
            self.server = None

    def run_script(self, script):
        if self.server is None:
            self.start()
        return self.place.run(["ax", "run", script], self.folder, **self.variables())


class EchoExax(Exax, Echo):
    def prepare(self):
        super().prepare()
        for path in (self.folder / "dev").glob("*eeg*"):
            path.unlink()

    def variables(self):
        return {**super().variables(), "BENCH_COUNT": str(self.count)}

    def run(self):
        return self.run_script("echo")


# ---- the analysis of EEG ----

class Eeg(Contender):
    """`data` is a folder that examples/eeg/generate.py made; its raw files are linked, its programs copied."""

    subfolder = "."

    def __init__(self, place, folder, data, subjects, bins):
        super().__init__(place, folder)
        self.data, self.subjects, self.bins, self.edits = data, subjects, bins, 0

    def code(self):
        return self.folder / self.subfolder

    def prepare(self):
        (self.folder / "raw").mkdir()
        for path in (self.data / "raw").iterdir():
            os.link(path, self.folder / "raw" / path.name)
        for path in [*self.data.glob("*.py"), self.data / "leat.yaml"]:
            shutil.copy(path, self.code())

    def edit_last(self):
        """Changes what the last step draws."""
        self.edits += 1
        path = self.code() / "plot_matrix.py"
        text = (self.data / "plot_matrix.py").read_text()
        assert 'xlabel="test bin"' in text
        path.write_text(text.replace('xlabel="test bin"', f'xlabel="test bin ({self.edits})"'))


class EegNaive(Eeg):
    name = "one script"

    def run(self):
        return self.place.run(["python", "naive.py", "raw", "results.npz"], self.folder)


class EegLeat(Eeg):
    name = "Leat"

    def run(self):
        return self.place.run([self.place.build / "leat", "build", "-j", self.place.jobs], self.folder)


class EegLeatThreads(EegLeat):
    """Without the budget: every library starts as many threads as there are CPUs."""

    name = "Leat, BLAS threads unset"

    def prepare(self):
        super().prepare()
        path = self.folder / "leat.yaml"
        path.write_text(path.read_text().replace("run: python", f"run: unset {' '.join(THREADS)}; python"))


class EegSnakemake(Eeg):
    name = "Snakemake"

    def run(self):
        return snakemake(self, "eeg.smk", f"subjects={self.subjects}", f"bins={self.bins}")


class EegRedun(Eeg):
    name = "redun"

    def prepare(self):
        super().prepare()
        redun_config(self.folder, self.place.jobs)
        shutil.copy(PEERS / "eeg_redun.py", self.folder)

    def run(self):
        command = ["redun", "run", "eeg_redun.py", "main", "--subjects", self.subjects, "--bins", self.bins]
        return self.place.run(command, self.folder, OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")


class EegJoblib(Eeg):
    name = "joblib.Memory"

    def prepare(self):
        super().prepare()
        shutil.copy(PEERS / "eeg_joblib.py", self.folder)

    def run(self):
        return self.place.run(["python", "eeg_joblib.py", self.subjects, self.bins, self.place.jobs], self.folder)


class EegExax(Exax, Eeg):
    subfolder = "dev"

    def prepare(self):
        Exax.prepare(self)
        Eeg.prepare(self)

    def variables(self):
        return {**super().variables(), "BENCH_RAW": str(self.folder / "raw"), "BENCH_SUBJECTS": str(self.subjects),
                "BENCH_BINS": str(self.bins)}

    def run(self):
        return self.run_script("eeg")
