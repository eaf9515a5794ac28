"""What the parts of `run` share: data, the web server, the delaying proxy, and contenders."""
import contextlib
import json
import os
import pathlib
import shutil
import socket
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
BATCH = 64
THREADS = 2
SHARDS = 8
OPS = ("shuffle | decode(mode=torch) | random_resized_crop(224, 224, mode=torch, antialias=true)"
       f" | batch({BATCH})")
PATIENCE = 300  # seconds: whoever is not done by then is ended

CONF = """pid {folder}/nginx.pid;
error_log {folder}/error.log;
worker_processes 1;
worker_rlimit_nofile 8192;
daemon off;
events {{ worker_connections 4096; }}
http {{
	access_log off;
	sendfile on;
	tcp_nopush on;
	keepalive_requests 100000000;
	keepalive_timeout 600;
	open_file_cache max=20000 inactive=600s;
	open_file_cache_valid 600s;
	client_body_temp_path {folder}/1; proxy_temp_path {folder}/2; fastcgi_temp_path {folder}/3;
	uwsgi_temp_path {folder}/4; scgi_temp_path {folder}/5;
	server {{ listen 127.0.0.1:{port} backlog=4096; root {root}; }}
}}
"""


def say(text):
    print(text, file=sys.stderr, flush=True)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def median(values):
    return statistics.median(values)


# ---- data ----

def make_data(build, folder, images):
    """folder/photos/NN/NNNN.jpg and a list of them with labels, the same as tar files, and an object of 75 KB."""
    if (folder / "done").exists():
        return
    say(f"drawing {images} photos ...")
    shutil.rmtree(folder, ignore_errors=True)
    photos = folder / "photos"
    photos.mkdir(parents=True)
    subprocess.run([build / "bench/images/images_photos", photos, "--count", str(images)], check=True)
    names = sorted(path.relative_to(photos) for path in photos.glob("*/*.jpg"))
    (photos / "list.csv").write_text("path,label\n" + "".join(f"{n},{int(n.parent.name)}\n" for n in names))
    subprocess.run([build / "leat", "pack", photos, "-o", folder / "shard", "--format", "tar", "--shards", str(SHARDS)],
                   check=True, stdout=subprocess.DEVNULL)
    (folder / "75k").write_bytes(os.urandom(75000))
    (folder / "done").touch()


# ---- server and proxy ----

@contextlib.contextmanager
def web_server(folder, root):
    """The port of an nginx that serves `root`, and its process id."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    port = free_port()
    (folder / "nginx.conf").write_text(CONF.format(folder=folder, root=root, port=port))
    os.chmod(folder, 0o755)
    server = subprocess.Popen(["nginx", "-c", folder / "nginx.conf", "-p", folder], stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                break
            time.sleep(0.05)
        yield port
    finally:
        server.terminate()
        server.wait()


class Proxy:
    """The delaying proxy: `addresses` are "ADDRESS[,KEY=VALUE]...", all on the same port."""

    def __init__(self, build, server_port, *addresses):
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        ways = []
        for address in addresses or ["127.0.0.1"]:
            host, comma, settings = address.partition(",")
            ways.append(f"{host}:{self.port}{comma}{settings}")
        self.process = subprocess.Popen([build / "bench/remote/remote_delay", str(server_port), *ways], text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError("the proxy does not start")

    def ask(self, command):
        self.process.stdin.write(command + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def tell(self, *commands):
        for command in commands:
            answer = self.ask(command)
            if answer != "ok":
                raise RuntimeError(f"{command}: {answer}")

    def stats(self):
        return json.loads(self.ask("stats"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()


# ---- Leat ----

class Feed:
    """A run of remote_feed, from its "open" to its end."""

    def __init__(self, build, spec, epochs=1, step_ms=0, seconds=PATIENCE, command=(), **env):
        self.process = subprocess.Popen(
            [*command, build / "bench/remote/remote_feed", spec, str(epochs), str(step_ms), str(THREADS), str(seconds)],
            text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=dict(os.environ, **env))
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(self.process.communicate()[1].strip())
        self.open_s = float(line.split()[1])

    def begin(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def end(self):
        try:
            out, err = self.process.communicate(timeout=2 * PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise RuntimeError(f"not done after {2 * PATIENCE} s") from None
        if self.process.returncode:
            raise RuntimeError(err.strip())
        lines = [line.split() for line in out.splitlines()]
        self.batches = [(float(at), int(rows), float(waited)) for what, at, rows, waited, *_ in lines if what == "batch"]
        seconds, rows, waited, cpu = map(float, lines[-1][1:])
        self.seconds, self.rate, self.wait_share = seconds, rows / seconds, waited / seconds
        self.cpu_ms = 1000 * cpu / rows
        return self

    def run(self):
        self.begin()
        return self.end()
