# Steps that are a query: cold, no-op, edits, keys, threads, what is refused.
build() {
	printf '$ leat build %s\n' "$*"
	leat build -j 2 "$@" >built 2>&1
	code=$?
	sed -E -e 's/(ran|made before|failed|finished|that), in [0-9].*$/\1/' -e 's/ in [0-9.]+ s/ in T/' \
		-e 's/^([a-z]+)-[0-9]+/\1/' -e "s|$PWD/||" -e "s/(leat log [a-z]+)-[0-9]+/\1-N/" built
	[ $code -eq 0 ] || printf '[exit %d]\n' $code
}
refuse() { # QUERY
	printf '%s\n' "$1" >clean.sql
	build clean 2>&1 | sed -nE "s/^.*leat sql: (.*); see 'leat log.*$/\1/p; s/^leat build: (.*)$/\1/p"
}

mkdir raw
leat sql -o raw/1.parquet "SELECT i AS id, i % 7 AS \"user\", i / 8 AS x, 'text ' || i AS s FROM range(200000) t(i)"
leat sql -o raw/2.parquet "SELECT i AS id, i % 7 AS \"user\", i / 8 AS x, 'text ' || i AS s FROM range(200000, 300000) t(i)"
printf 'id,name\n1,Ann\n2,Bo\n' >users.csv
cat >clean.sql <<'SQL'
-- odd ones
SELECT id, "user", x::DECIMAL(18, 3) AS amount, s
FROM events /* all */ WHERE id % 2 = 1
SQL
cat >leat.yaml <<'YAML'
sources:
  events: raw/*.parquet
  users: users.csv
steps:
  total:
    sql: SELECT name, sum(amount) AS amount, count(*) AS n FROM clean JOIN users ON users.id = clean."user" GROUP BY name
    key: name
  clean:
    sql: clean.sql
    key: id
    cpus: 1
YAML
try leat graph
build
leat sql "FROM total"
try leat log total-1
build
echo '# comments and white space: nothing runs'
cat >clean.sql <<'SQL'
SELECT id,"user",x::DECIMAL(18,3) AS amount,s -- columns
FROM events
WHERE id%2=1;
SQL
build
echo '# threads are not in the key, and do not change the bytes'
first=$(sha256sum <out/clean.parquet)
sed -i 's/cpus: 1/cpus: 2/' leat.yaml
build
build --again clean
[ "$first" = "$(sha256sum <out/clean.parquet)" ] && echo same
leat sql "SELECT row_group_id AS part, any_value(row_group_num_rows) AS n FROM parquet_metadata('out/clean.parquet') GROUP BY part ORDER BY part"
echo '# a real edit'
sed -i 's/=1/=0/' clean.sql
leat why clean | sed 's/duckdb [0-9.]*/duckdb V/'
build
echo '# the result is the same: what follows does not run'
sed -i 's/id%2=0/(id%2=0)/' clean.sql
build
echo '# keys'
sed -i 's/key: id/key: [user, s]/' leat.yaml
build clean
refuse 'SELECT "user" % 3 AS "user", (id // 100000)::VARCHAR AS s FROM events'
refuse 'SELECT nullif(id, 7) AS "user", s FROM events'
refuse 'SELECT id, s FROM events'
refuse 'SELECT "user", s, s FROM events'
echo '# what changes from run to run'
refuse 'SELECT "user", max(s) AS s, sum(x) AS x FROM events GROUP BY "user"'
refuse 'SELECT "user", any_value(s) AS s FROM events GROUP BY "user"'
refuse 'SELECT "user", s FROM events LIMIT 3'
refuse 'SELECT "user", s, random() AS r FROM events'
echo '# what a step must not do'
refuse 'COPY events TO '"'x.csv'"
refuse "ATTACH 'x.db'"
refuse 'PRAGMA version'
refuse 'SELECT 1; SELECT 2'
refuse "SELECT * FROM '/etc/passwd'"
refuse "SELECT * FROM read_text('/etc/passwd')"
refuse 'WITH x AS (SELECT 1) DELETE FROM events'
refuse 'SELECT * FROM evnets'
refuse 'SELECT * FROM main.events'
refuse 'SELECT * FROM clean'
refuse 'SELECT * FROM events WHERE'
echo '# WITH may hide a source'
printf 'WITH events AS (SELECT * FROM events WHERE id < 3) SELECT "user", s FROM events' >clean.sql
build clean
leat sql "FROM clean ORDER BY 1"
echo '# leat.yaml'
printf 'steps:\n  a: {sql: SELECT 1 AS a}\n' >leat.yaml
build
printf 'steps:\n  a: {sql: SELECT 1 AS a, key: a, params: {x: 1}}\n' >leat.yaml
build
printf 'steps:\n  a: {sql: none.sql, key: a}\n' >leat.yaml
build
printf 'steps:\n  a: {run: touch x, key: a}\n' >leat.yaml
build
printf "steps:\n  a: {sql: \"SELECT 'it''s' AS a, 7 AS b\", key: a}\n" >leat.yaml
build
leat sql "FROM a"

echo '# partitions: the same rows as from whole tables'
mkdir -p parts/raw && cd parts || exit
printf 'user,n,amount\n1,1,0.5\n2,2,1.5\n,3,2\n' >raw/events-1.csv
printf 'user,n,amount\n2,4,2.5\n30,5,1\n' >raw/events-2.csv
leat sql -o raw/users.parquet 'SELECT i::INTEGER AS id, i % 2 AS kind FROM range(4) t(i)'
cat >clean.sql <<'SQL'
SELECT e."user", e.n, e.amount, u.kind
FROM events e LEFT JOIN users u ON e."user" = u.id
WHERE e."user" IS NOT NULL
SQL
cat >leat.yaml <<'YAML'
sources:
  events: {files: raw/events-*.csv, columns: {user: int64, n: int64, amount: double}}
  users: raw/users.parquet
steps:
  clean:
    sql: clean.sql
    key: [user, n]
    by: {events: user, users: id}
    partitions: 3
    check: {amount: ..2, user: in users.id, n: unique with user}
    checks: quarantine
  sums:
    sql: SELECT "user", count(*) AS n FROM clean GROUP BY ALL
    key: user
    by: {clean: user}
    partitions: 3
YAML
cp leat.yaml first.yaml
ran() { leat build -j 2 "$@" 2>&1 | sed -nE -e 's/, in [0-9].*//' -e '/ ran, /p' -e '/^leat build/p'; }
try leat graph
ran
leat sql 'FROM clean ORDER BY n'
leat sql 'FROM sums ORDER BY "user"'
leat show clean --rejects
ran
echo '# nothing runs after an edit of a comment, and one partition of each step after a new file with one user'
sed -i 's/^SELECT/-- all of them\n&/' clean.sql
ran
printf 'user,n,amount\n1,6,1\n' >raw/events-3.csv
ran
try leat why clean:partition=2
echo '# what cannot be partitioned'
wrong() { # OLD, NEW
	awk -v old="$1" -v new="$2" '{ at = index($0, old); if (at) $0 = substr($0, 1, at - 1) new substr($0, at + length(old)) } 1' first.yaml >leat.yaml
	leat build 2>&1 | sed -n '1s/^leat build: leat.yaml:[0-9:]* //p'
}
wrong 'amount: ..2' 'rows: 1..'
wrong 'amount: ..2' 'amount: nulls up to 5%'
wrong 'unique with user' unique
wrong 'user: in users.id' 'kind: in users.kind'
wrong quarantine 'quarantine up to 5%'
wrong 'checks: quarantine' 'slices: {x: 1..3}'
wrong '    by: {events: user, users: id}' '    cpus: 2'
wrong '[user, n]' n
wrong '{events:' '{event:'
wrong 'events: user' 'events: [user]'
wrong '  sums:' '  users_by_id_3:'
wrong 'GROUP BY ALL' 'GROUP BY ALL LIMIT 3'
echo 'SELECT kind, count(*) AS n
FROM events JOIN users ON "user" = id
GROUP BY kind' >clean.sql
wrong x x
echo '# columns that cannot be split by'
refused() { leat build 2>&1 | sed -nE "s/^.*leat sql: (.*); see 'leat log.*$/\1/p" | head -1; }
leat sql -o raw/kinds.parquet "SELECT 'kind ' || i AS text, i / 2 AS half FROM range(3) t(i)"
cat >leat.yaml <<'YAML'
sources: {users: raw/users.parquet, kinds: raw/kinds.parquet}
steps: {s: {sql: 'SELECT id, text FROM users JOIN kinds ON id = text', key: id, by: {users: id, kinds: text}, partitions: 2}}
YAML
refused
sed -i 's/kinds: text/kinds: txt/; s/= text/= txt/' leat.yaml
refused
sed -i 's/kinds: txt/kinds: half/; s/= txt/= half/' leat.yaml
refused
cd ..

printf '\n# asof: what was known at the time of each row, against a search of all rows\n'
mkdir asof && cd asof
# times from 0 on in hours, with many equal ones, late rows, rows that are known before they hold, and NULLs
leat sql -o labels.parquet "SELECT i AS id, (hash(i) % 20)::INTEGER AS user, TIMESTAMP '2026-01-01' + to_hours((hash(i + 1) % 300)::INTEGER) AS ts FROM range(2000) AS t(i)" >/dev/null
leat sql -o prices.parquet "SELECT u AS who, ts, arrived, row_number() OVER (ORDER BY u, ts, arrived) AS price FROM (SELECT DISTINCT (hash(i) % 21)::INTEGER AS u, CASE WHEN hash(i + 9) % 50 > 0 THEN TIMESTAMP '2026-01-01' + to_hours((hash(i + 2) % 300)::INTEGER) END AS ts, TIMESTAMP '2026-01-01' + to_hours((hash(i + 2) % 300 + hash(i + 3) % 30)::INTEGER - 5) AS arrived FROM range(3000) AS t(i))" >/dev/null
leat sql -o news.parquet "SELECT DISTINCT (hash(i) % 300)::INTEGER AS h, TIMESTAMP '2026-01-01' + to_hours((hash(i) % 300)::INTEGER) AS at, 'n' || hash(i) % 300 AS news FROM range(100) AS t(i)" >/dev/null
cat >leat.yaml <<'YAML'
sources: {labels: labels.parquet, prices: prices.parquet, news: news.parquet}
steps:
  plain: {asof: labels, at: ts, key: id, take: {usable: {at: ts, by: user = who, columns: price}}}
  usable: {sql: "SELECT who, ts, max(price) AS price FROM prices WHERE ts IS NOT NULL GROUP BY ALL", key: [who, ts]}
  train:
    asof: labels
    at: ts
    key: id
    cpus: 2
    take:
      prices: {at: ts, by: [user = who], columns: [price, ts as price_at], known: arrived, max_age: 48h}
      news: {at: at, columns: news, strict: true}
    check: {id: count as labels.id, rows: as labels}
YAML
leat build usable plain train 2>&1 | grep -c ran
leat sql --csv "SELECT count(*) AS n, count(price) AS priced, count(news) AS with_news, count(*) FILTER (WHERE price_at > ts) AS leaks FROM train"
oracle='SELECT l.*, (SELECT max_by(price, ts) FROM usable AS p WHERE p.who = l.user AND p.ts <= l.ts) AS price FROM labels AS l'
leat sql --csv "SELECT count(*) AS different FROM ((SELECT * FROM plain EXCEPT $oracle) UNION ALL ($oracle EXCEPT SELECT * FROM plain))"
best='(SELECT max_by({price: price, ts: p.ts}, {ts: p.ts, arrived: arrived}) FROM prices AS p WHERE p.who = l.user AND p.ts <= l.ts AND arrived <= l.ts)'
oracle="SELECT id, \"user\", ts, CASE WHEN ts - best.ts <= INTERVAL 48 HOURS THEN best.price END AS price, CASE WHEN ts - best.ts <= INTERVAL 48 HOURS THEN best.ts END AS price_at, news FROM (SELECT l.*, $best AS best, (SELECT max_by(news, n.at) FROM news AS n WHERE n.at < l.ts) AS news FROM labels AS l)"
leat sql --csv "SELECT count(*) AS different FROM ((SELECT * FROM train EXCEPT $oracle) UNION ALL ($oracle EXCEPT SELECT * FROM train))"
sha256sum <out/train/kept.parquet >two
sed -i 's/cpus: 2/cpus: 1/' leat.yaml
rm -rf .leat out && leat build train >/dev/null 2>&1
sha256sum <out/train/kept.parquet | cmp - two && echo 'the same bytes with one thread'
# a later row changes nothing
before=$(leat sql --csv "SELECT * FROM train WHERE ts <= TIMESTAMP '2026-01-06'" | sha256sum)
leat sql -o later.parquet "SELECT * FROM 'prices.parquet' UNION ALL SELECT who, ts, TIMESTAMP '2026-01-06 00:00:01' + to_minutes(row_number() OVER (ORDER BY who, ts, arrived)::INTEGER), -1 FROM 'prices.parquet'" >/dev/null
mv later.parquet prices.parquet
leat build train >/dev/null 2>&1
[ "$(leat sql --csv "SELECT * FROM train WHERE ts <= TIMESTAMP '2026-01-06'" | sha256sum)" = "$before" ] && echo 'rows that come later are not used'
leat sql --csv 'SELECT count(*) FILTER (WHERE price = -1) > 100 AS used_afterwards FROM train'

printf '\n# mistakes in asof\n'
cat >twice.yaml <<'YAML'
sources: {labels: labels.parquet, prices: prices.parquet}
steps:
  train: {asof: labels, at: ts, key: id, take: {prices: {at: ts, by: user = who, columns: price}}}
YAML
leat build --project twice.yaml 2>&1 | sed -n 's/.*leat sql: \(two rows.*\) at .*; \(keep.*\); see.*/\1 at ...; \2/p' | sed 's/such as [0-9]*/such as N/'
mistake() { sed "$1" twice.yaml >bad.yaml && leat status --project bad.yaml 2>&1 | head -n 1; }
mistake 's/at: ts, key/key/'
mistake 's/{at: ts, by/{by/'
mistake 's/columns: price/columns: []/'
mistake 's/, columns: price//'
mistake 's/by: user/bye: user/'
mistake 's/columns: price/columns: price, max_age: 3 days/'
mistake 's/columns: price/columns: price, strict: maybe/'
mistake 's/take: {prices: {.*/take: prices}/'
mistake 's/take: {prices:/take: {prcies:/'
mistake 's/, take: .*/}/'
mistake 's/asof: labels/sql: SELECT * FROM labels/'
cd ..
