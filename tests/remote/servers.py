#!/usr/bin/env python3
"""servers.py flaky UPSTREAM SEED | proxy LOG [USER:PASSWORD] | metadata LOG SECONDS: small bad servers for tests.

Each listens on a free port of 127.0.0.1, prints it, and ends when its standard input does.

flaky passes connections on to the port UPSTREAM and resets each in the middle of an answer, after a random number of bytes.
proxy is an HTTP proxy that knows CONNECT only; each CONNECT is a line of LOG. metadata is the service of an EC2 instance
(IMDSv2); its keys are those of the S3 server for tests and expire after SECONDS. Each time they are fetched is a line of LOG.
"""
import base64
import datetime
import http.server
import json
import random
import socket
import struct
import sys
import threading

EARLY, LATE = 300_000, 20_000_000  # bytes that flaky lets through: half of the connections end early


def passes(source, sink, limit=None):
    """Copies until either side ends, or for so many bytes; then resets both."""
    try:
        while data := source.recv(65536 if limit is None else min(65536, limit)):
            sink.sendall(data)
            if limit is not None:
                limit -= len(data)
                if limit == 0:
                    for link in source, sink:
                        link.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                    break
        for link in source, sink:
            link.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


def join(client, server, limit=None):
    back = threading.Thread(target=passes, args=(server, client, limit))
    back.start()
    passes(client, server)
    back.join()
    client.close()
    server.close()


def flaky(client, upstream, lot):
    join(client, socket.create_connection(("127.0.0.1", int(upstream))), lot.randrange(1, lot.choice((EARLY, LATE))))


def read_head(client):
    head = b""
    while b"\r\n\r\n" not in head:
        data = client.recv(4096)
        if not data:
            return ""
        head += data
    return head.decode("latin-1")


def proxy(client, log, user=None):
    head = read_head(client)
    first = head.split("\r\n")[0]
    with open(log, "a") as out:
        print(first, file=out)
    allowed = "Proxy-Authorization: Basic " + base64.b64encode((user or "").encode()).decode()
    if user and allowed not in head:
        client.sendall(b"HTTP/1.1 407 Proxy Authentication Required\r\nProxy-Authenticate: Basic\r\nContent-Length: 0\r\n\r\n")
        client.close()
    elif not first.startswith("CONNECT "):
        client.sendall(b"HTTP/1.1 405 Not Allowed\r\nContent-Length: 0\r\n\r\n")
        client.close()
    else:
        host, port = first.split()[1].rsplit(":", 1)
        server = socket.create_connection((host, int(port)))
        client.sendall(b"HTTP/1.1 200 Connected\r\n\r\n")
        join(client, server)


def listen(serve):
    listener = socket.create_server(("127.0.0.1", 0), backlog=512)
    print(listener.getsockname()[1], flush=True)

    def accept():
        while True:
            threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def metadata(log, seconds):
    class Service(http.server.BaseHTTPRequestHandler):
        def answer(self, body):
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def do_PUT(self):
            self.answer("session")

        def do_GET(self):
            if self.headers["X-aws-ec2-metadata-token"] != "session":
                self.send_error(401)
            elif self.path.endswith("/"):
                self.answer("role")
            else:
                with open(log, "a") as out:
                    print("keys", file=out)
                end = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=seconds)
                self.answer(json.dumps({"AccessKeyId": "AKIDTEST", "SecretAccessKey": "SECRETTEST",
                                        "Expiration": end.strftime("%Y-%m-%dT%H:%M:%SZ")}))

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    print(server.server_port, flush=True)
    threading.Thread(target=server.serve_forever, daemon=True).start()


def main():
    what, *rest = sys.argv[1:]
    if what == "flaky":
        lot = random.Random(int(rest[1]))
        listen(lambda client: flaky(client, rest[0], lot))
    elif what == "proxy":
        listen(lambda client: proxy(client, *rest))
    else:
        metadata(rest[0], int(rest[1]))
    sys.stdin.read()


main()
