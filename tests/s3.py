#!/usr/bin/env python3
"""s3.py make|put|remove URI [FILE] | serve: an S3 client of its own, to test Leat's against.

Keys AKIDTEST and SECRETTEST, server AWS_ENDPOINT_URL. make creates the bucket of URI. serve reads commands from standard
input, "put URI LENGTH" and LENGTH bytes, "remove URI" or "make URI", and answers each with the status in a line.
"""
import datetime
import hashlib
import hmac
import http.client
import os
import sys
import urllib.parse

KEY, SECRET, REGION = "AKIDTEST", "SECRETTEST", "us-east-1"


def sign(key, text):
    return hmac.new(key, text.encode(), hashlib.sha256).digest()


def authorization(method, path, fields):
    names = ";".join(sorted(fields))
    request = [method, path, "", *(f"{name}:{fields[name]}" for name in sorted(fields)), "", names, fields["x-amz-content-sha256"]]
    time = fields["x-amz-date"]
    scope = f"{time[:8]}/{REGION}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", time, scope, hashlib.sha256("\n".join(request).encode()).hexdigest()])
    key = ("AWS4" + SECRET).encode()
    for part in time[:8], REGION, "s3", "aws4_request":
        key = sign(key, part)
    return f"AWS4-HMAC-SHA256 Credential={KEY}/{scope}, SignedHeaders={names}, Signature={sign(key, text).hex()}"


class Client:
    def __init__(self):
        self.host = urllib.parse.urlparse(os.environ["AWS_ENDPOINT_URL"]).netloc
        self.link = http.client.HTTPConnection(self.host)

    def ask(self, method, uri, body=b""):
        bucket, _, key = uri.removeprefix("s3://").partition("/")
        path = f"/{bucket}/" + urllib.parse.quote(os.fsencode(key), safe="/-._~")
        fields = {
            "host": self.host,
            "x-amz-content-sha256": hashlib.sha256(body).hexdigest(),
            "x-amz-date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ"),
        }
        sent = fields | {"authorization": authorization(method, path, fields)}
        for again in range(2):
            try:
                self.link.request(method, path, body, sent)
                answer = self.link.getresponse()
                answer.read()
                return answer.status
            except (http.client.HTTPException, OSError):
                self.link.close()
        return 0

    def command(self, what, uri, body=b""):
        if what == "make":
            return self.ask("PUT", uri.split("/")[0] + "//" + uri.split("/")[2])
        return self.ask({"put": "PUT", "remove": "DELETE"}[what], uri, body)


def serve(client):
    for line in sys.stdin.buffer:
        what, uri = line.rstrip(b"\n").split(b" ", 1)
        body = b""
        if what == b"put":
            uri, length = uri.rsplit(b" ", 1)
            body = sys.stdin.buffer.read(int(length))
        print(client.command(what.decode(), os.fsdecode(uri), body), flush=True)


def main():
    client = Client()
    if sys.argv[1] == "serve":
        serve(client)
        return
    body = open(sys.argv[3], "rb").read() if len(sys.argv) > 3 else b""
    status = client.command(sys.argv[1], sys.argv[2], body)
    if status // 100 != 2:
        sys.exit(f"s3.py: {' '.join(sys.argv[1:])}: {status}")


main()
