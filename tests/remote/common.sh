# common.sh - sourced by the tests of remote stores, each called with BUILD: servers on 127.0.0.1, and helpers. S3 is Ceph's
# gateway (tests/rgw), web servers are nginx, with and without TLS. Needs `scripts/setup all`.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$(realpath "${1:?usage: $0 BUILD}")
leat=$build/leat
work=$(mktemp -d)
trap 'status=$?; clean_up; exit $status' EXIT
unset AWS_SESSION_TOKEN AWS_PROFILE AWS_REGION AWS_DEFAULT_REGION AWS_ENDPOINT_URL_S3 http_proxy https_proxy all_proxy HTTPS_PROXY ALL_PROXY
export AWS_ACCESS_KEY_ID=AKIDTEST AWS_SECRET_ACCESS_KEY=SECRETTEST AWS_EC2_METADATA_DISABLED=true HOME=$work
processes=() # ended at the end, whatever happens

clean_up() {
	for process in "${processes[@]}"; do kill "$process" 2>/dev/null || true; done
	[ ! -s "$work/nginx.pid" ] || kill "$(cat "$work/nginx.pid")"
	[ ! -d "$work/rgw" ] || tests/rgw down "$work/rgw" || true
	rm -rf "$work"
}

# The first of COUNT free ports in a row; Ceph's monitor takes the two after the gateway's.
free_port() { # [COUNT]
	python3 - "${1:-1}" <<-'END'
		import contextlib, socket, sys
		while True:
		    with contextlib.ExitStack() as stack:
		        sockets = [stack.enter_context(socket.socket()) for _ in range(int(sys.argv[1]))]
		        sockets[0].bind(("127.0.0.1", 0))
		        first = sockets[0].getsockname()[1]
		        try:
		            for i, other in enumerate(sockets[1:], 1):
		                other.bind(("127.0.0.1", first + i))
		        except (OSError, OverflowError):
		            continue
		        print(first)
		        break
	END
}

fail() {
	echo "$(basename "$0"): $*" >&2
	exit 1
}

# ---- servers ----

# Sets s3, the port, and makes the bucket `test`.
start_s3() {
	s3=$(free_port 3)
	export AWS_ENDPOINT_URL=http://127.0.0.1:$s3
	tests/rgw up "$work/rgw" "$s3"
	tests/s3.py make s3://test
}

# Serves $work/web; sets the ports plain and tls. Each request is a line of $work/access.log.
start_web() {
	plain=$(free_port)
	tls=$(free_port)
	mkdir -p "$work"/{web/folder,temp}
	chmod 755 "$work"
	openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost,IP:127.0.0.1 \
		-keyout "$work/key.pem" -out "$work/cert.pem" 2>/dev/null
	cat >"$work/nginx.conf" <<END
pid $work/nginx.pid;
error_log $work/error.log;
events { worker_connections 2048; }
http {
	log_format requests '\$request_method \$uri \$status \$http_range';
	access_log $work/access.log requests;
	keepalive_requests 1000000;
	client_body_temp_path $work/temp/1; proxy_temp_path $work/temp/2; fastcgi_temp_path $work/temp/3;
	uwsgi_temp_path $work/temp/4; scgi_temp_path $work/temp/5;
	server { listen 127.0.0.1:$plain backlog=4096; root $work/web; }
	server {
		listen 127.0.0.1:$tls ssl backlog=4096; root $work/web;
		ssl_certificate $work/cert.pem; ssl_certificate_key $work/key.pem;
	}
}
END
	nginx -c "$work/nginx.conf" -p "$work"
}

server() { # NAME ARGUMENT...: starts one of servers.py; sets port
	local name=$1
	shift
	mkfifo "$work/$name.in" "$work/$name.out"
	tests/remote/servers.py "$@" <"$work/$name.in" >"$work/$name.out" &
	processes+=($!)
	exec {input}>"$work/$name.in" # it ends when this does
	read -r port <"$work/$name.out"
}

# ---- samples ----

checksum() { # SPEC
	"$leat" feed "$1 | shuffle | batch(7)" --epochs 2 --checksum 2>"$work/errors" | sed -n 's/^checksum //p'
}

same() { # NAME LOCAL_SPEC REMOTE_SPEC...
	local name=$1 expected got
	expected=$(checksum "$2") || true
	shift 2
	[ -n "$expected" ] || fail "$name: $(cat "$work/errors")"
	for spec in "$@"; do
		got=$(checksum "$spec") || true
		[ "$got" = "$expected" ] || fail "$name: $spec gives '$got' instead of '$expected': $(cat "$work/errors")"
	done
	echo "ok: $name"
}

upload() { # FOLDER URI
	(cd "$1" && find . -type f -not -name '.*' -printf '%P\n') | while read -r file; do
		printf 'put %s/%s %d\n' "$2" "$file" "$(stat -c %s "$1/$file")"
		cat "$1/$file"
	done | tests/s3.py serve | { ! grep -v '^200$'; }
}
