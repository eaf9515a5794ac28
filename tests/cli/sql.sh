# leat sql: files, tables by name, sources and steps of a project, formats, errors, ^C, temporary files.
mkdir tmp
export TMPDIR=$PWD/tmp
printf 'user,ts,amount\n1,2026-01-01,1.50\n2,2026-01-02,\n1,2026-01-03,3.25\n' >'a b.csv'
printf '{"id": 1, "name": "Ann \\u001b[31m"}\n{"id": 2, "name": "Bo"}\n' >users.json
try leat sql "SELECT * FROM 'a b.csv' -- all of it"
try leat sql --rows 1 "SELECT * FROM 'a b.csv' ORDER BY ts"
try leat sql --table 'e=a b.csv' --table u=users.json 'SELECT name, count(*) AS n, sum(amount) AS amount FROM e JOIN u ON id = "user" GROUP BY name ORDER BY name'
try leat sql --csv "SELECT 'a,b' AS \"x\"\"y\", '' AS empty, NULL AS none, 'say \"hi\"' AS q"
try leat sql --json "FROM 'users.json'"
try leat sql --output copy.parquet "SELECT * FROM 'a b.csv'"
try leat sql "DESCRIBE SELECT * FROM 'copy.parquet'"
try leat sql -o copy.csv "SELECT max(amount) AS m FROM 'copy.parquet'"
cat copy.csv
echo '# errors'
try leat sql "SELECT amonut FROM 'copy.parquet'"
try leat sql "SELECT * FROM 'nothing.parquet'"
try leat sql "SELECT 1; DROP TABLE x"
try leat sql "DELETE FROM x"
try leat sql "SELECT 'x'::INTEGER"
try leat sql -o copy.txt "SELECT 1"
try leat sql -o none/copy.csv "SELECT 1"
try leat sql --json --csv "SELECT 1"
try leat sql --table x "SELECT 1"
try leat sql "FROM events"
echo '# a project'
mkdir raw
cp copy.parquet raw/1.parquet
cp copy.parquet raw/2.parquet
cat >leat.yaml <<'YAML'
sources:
  events: raw/*.parquet
  one: raw/{part}.parquet
steps:
  clean:
    sql: SELECT DISTINCT "user", ts FROM events
    key: [user, ts]
  sliced:
    sql: SELECT * FROM one
    key: ts
    slices: {part: [1, 2]}
  folders:
    run: mkdir "$out"; cp "$sliced" "$out/x.parquet"
    in: sliced
    slices: {part: [1, 2]}
  joined:
    sql: SELECT DISTINCT a.ts FROM sliced AS a JOIN folders USING (ts)
    key: ts
YAML
try leat sql "SELECT count(*) AS n FROM Events"
try leat sql "SELECT count(*) AS n FROM one"
try leat sql "SELECT count(*) AS n FROM clean"
leat build >/dev/null 2>&1
try leat sql "SELECT count(*) AS n FROM clean"
try leat sql "SELECT count(*) AS n FROM sliced"
try leat sql "SELECT count(*) AS n FROM folders"
try leat sql "SELECT count(*) AS n FROM joined"
echo '# without DuckDB'
mkdir alone
cp "$(command -v leat)" alone/leat
(unset VIRTUAL_ENV LEAT_DUCKDB && try alone/leat sql "SELECT 1")
(export LEAT_DUCKDB=/nowhere.so && try leat sql "SELECT 1")
echo '# ^C, and what is left'
cat >wait.py <<'PY'
import signal, subprocess, sys
query = subprocess.Popen(["leat", "sql", "-o", "never.parquet", "SELECT a.range FROM range(10000000) a, range(10000000) b WHERE a.range + b.range < 0"])
while not subprocess.run(["sh", "-c", "ls never.parquet.*.part"], capture_output=True).stdout:
    assert query.poll() is None
query.send_signal(signal.SIGINT)
sys.exit(query.wait())
PY
try python3 wait.py
ls tmp
ls | grep never
