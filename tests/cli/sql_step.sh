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
