#!/bin/sh
# partitions.sh BUILD: steps in partitions give the rows of whole tables, in the same bytes for any workers, threads and
# after a kill; growth runs what it touches.
set -eu
PATH=$(cd "$1" && pwd):$PATH
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
mkdir raw
fail() { echo "partitions: $*" >&2; exit 1; }
must_be() { # WHAT, EXPECTED, GOT
	[ "$2" = "$3" ] || fail "$1: expected $2, got $3"
}
events() { # FILE, FROM, TO: rows with a NULL, numbers, texts and times
	leat sql --csv "SELECT nullif(i % 29, 28)::BIGINT AS \"user\", i AS n, 'Ä ' || (i % 13) AS name,
		TIMESTAMP '2026-01-01' + INTERVAL (i % 17) HOUR AS ts, i / 4 AS amount FROM range($2, $3) t(i)" >"raw/$1"
}
events events-1.csv 0 300
events events-2.csv 300 400
leat sql -o raw/users.parquet 'SELECT i::INTEGER AS id, i % 3 AS kind FROM range(25) t(i)'
leat sql -o raw/kinds.parquet "SELECT i AS kind, 'kind ' || i AS text FROM range(3) t(i)"
cat >clean.sql <<'SQL'
SELECT e."user", e.n, e.name, e.amount, u.kind, k.text,
	count(*) OVER (PARTITION BY e."user", e.name) AS seen
FROM events e LEFT JOIN users u ON e."user" = u.id LEFT JOIN kinds k USING (kind)
WHERE e."user" IS NOT NULL
SQL
cat >leat.yaml <<'YAML'
sources:
  events:
    files: raw/events-*.csv
    columns: {user: int64, n: int64, name: text, ts: timestamp, amount: double}
  users: raw/users.parquet
  kinds: raw/kinds.parquet
steps:
  whole: {sql: clean.sql, key: [user, n]}
  clean:
    sql: clean.sql
    key: [user, n]
    by: {events: user, users: id}
    partitions: 11
    cpus: 1
  sums:
    sql: SELECT "user", count(*) AS n, sum(amount::DECIMAL(18, 2)) AS amount FROM clean GROUP BY ALL
    key: user
    by: {clean: user}
    partitions: 11
  names: {sql: 'SELECT name, count(*) AS n FROM events GROUP BY name', key: name, by: {EVENTS: name}, partitions: 3}
  times: {sql: 'SELECT ts, max(amount) AS a FROM events GROUP BY ts', key: ts, by: {events: ts}, partitions: 3}
  kinds_of: {sql: 'SELECT kind, count(*) AS n FROM clean WHERE kind >= 0 GROUP BY kind', key: kind, by: {clean: kind}, partitions: 2}
  shards: {shards: clean, count: 2}
YAML

sums() {
	(cd out && find -L clean sums names times kinds_of shards -type f | LC_ALL=C sort | xargs sha256sum) >sums
	[ "$(wc -l <sums)" -gt 25 ] || fail "there are too few files"
	sha256sum <sums
}
ran() { leat build "$@" 2>&1 | sed -nE 's/^([0-9]+) ran, .*/\1/p'; }
same_rows() { # ONE, OTHER
	must_be "rows that $1 or $2 has alone" 0 "$(leat sql --csv "SELECT count(*) FROM ((FROM $1 EXCEPT ALL FROM $2)
		UNION ALL (FROM $2 EXCEPT ALL FROM $1))" | tail -1)"
}

must_be 'a cold build' 42 "$(ran -j 2)"
same_rows clean whole
same_rows sums '(SELECT "user", count(*) AS n, sum(amount::DECIMAL(18, 2)) AS amount FROM whole GROUP BY ALL)'
same_rows names '(SELECT name, count(*) AS n FROM events GROUP BY name)'
same_rows times '(SELECT ts, max(amount) AS a FROM events GROUP BY ts)'
same_rows kinds_of '(SELECT kind, count(*) AS n FROM whole WHERE kind IS NOT NULL GROUP BY kind)'
first=$(sums)
must_be 'a build without changes' 0 "$(ran -j 2)"
sed -i 's/^SELECT/-- all of them\n&/' clean.sql
must_be 'an edit of a comment' 0 "$(ran -j 2)"
sed -i 's/cpus: 1/cpus: 2/' leat.yaml
must_be 'other threads' 0 "$(ran -j 2)"

# It is loaded, split twice, and one partition of each step runs.
printf 'user,n,name,ts,amount\n7,1000,Ä 1,2026-01-01 00:00:00,0.25\n' >raw/events-3.csv
must_be 'a new file with one row' 5 "$(ran -j 2 clean names)"
rm raw/events-3.csv
must_be 'the file is gone' 0 "$(ran -j 2)"
must_be 'the bytes after that' "$first" "$(sums)"

rm -r .leat out
must_be 'a build with one worker' 42 "$(ran -j 1)"
must_be 'its bytes' "$first" "$(sums)"
for delay in 0.2 0.6 1; do
	rm -rf .leat out
	leat build -j 2 >/dev/null 2>&1 &
	sleep "$delay"
	kill -9 $! 2>/dev/null || :
	wait $! 2>/dev/null || :
	leat build -j 2 >/dev/null 2>&1 || fail 'the build after a kill'
	must_be 'the bytes after a kill' "$first" "$(sums)"
done

sed -i 's/partitions: 11/partitions: 5/' leat.yaml
must_be 'another number of partitions' 16 "$(ran -j 2 clean sums kinds_of)"
same_rows clean whole
echo "partitions: ok"
