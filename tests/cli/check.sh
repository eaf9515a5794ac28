# leat check: rows that break a rule are counted, listed and taken out
cat >events.csv <<'CSV'
id,user,amount,code,day
1,1,10.5,AAA,2026-01-01
2,2,-3,BBB,2026-01-02
3,9,2000000,abc,2026-01-03
4,,7,AAA,2026-02-01
4,1,8,,2026-01-05
6,2,,CCC,2026-01-06
CSV
printf 'id\n1\n2\n3\n' >users.csv

try leat check events.csv --check 'amount: 0..1e6' --check 'amount: not null' --check 'user: in users.id' --table users=users.csv \
	--check 'id: unique' --check 'code: matches [A-Z]{3}' --check 'code: one of AAA | BBB | CCC' --check 'code: length 3' \
	--check 'day: 2026-01-01..2026-01-31' --check 'amount: type double' --check 'user: nulls up to 20%' --check 'rows: 6'
try leat check events.csv --check 'rows: 1..5' --check 'amount: type int64' --check 'amount: nulls up to 0%'
try leat check events.csv --check 'day: 2026-01-01..' --check 'user: unique with day'

printf '\n# quarantine and warn\n'
try leat check events.csv --check 'amount: 0..1e6' --check 'id: unique' --action quarantine --rejects bad.parquet --output good.parquet
try leat sql "SELECT id, amount FROM 'good.parquet' ORDER BY id" --csv
leat sql "SELECT id, amount, failed FROM 'bad.parquet' ORDER BY id, amount" --csv
try leat check events.csv --check 'amount: 0..1e6' --action 'quarantine up to 20%' --output none.parquet
ls none.parquet 2>&1
try leat check events.csv --check 'amount: 0..1e6' --action warn --json

printf '\n# mistakes\n'
try leat check events.csv
try leat check events.csv --check 'amount'
try leat check events.csv --check 'amuont: not null'
try leat check events.csv --check 'amount: nul'
try leat check events.csv --check 'code: 0..1'
try leat check events.csv --check 'user: in users.id'
try leat check events.csv --check 'user: in users.uid' --table users=users.csv
try leat check events.csv --check 'user: in users.id' --table users
try leat check events.csv --check 'code: matches ('
try leat check events.csv --check 'amount: not null' --action ignore
try leat check none.csv --check 'amount: not null'

printf '\n# steps\n'
cat >leat.yaml <<'YAML'
sources:
  events: events.csv
  users: users.csv
steps:
  clean:
    sql: SELECT row_number() OVER (ORDER BY id, day) AS n, * FROM events
    key: n
    check:
      amount: [not null, 0..1e6]
      user: in users.id
      code: ["matches [A-Z]{3}", "one of AAA | BBB | CCC"]
      rows: 1..
    checks: quarantine up to 90%
  codes:
    sql: SELECT code, count(*) AS n FROM clean WHERE code IS NOT NULL GROUP BY code
    key: code
YAML
leat build >/dev/null 2>&1 && echo built
leat log clean
cat out/clean/rejects.jsonl
ls out/clean/
leat sql 'SELECT n, id, amount, code FROM clean' --csv
leat sql 'SELECT * FROM codes' --csv
leat show clean | grep metrics
leat profile clean | head -n 1
sed -i 's/0\.\.1e6/0..1e7/' leat.yaml
leat build 2>/dev/null | sed 's/, in .*//'
sed -i 's/quarantine up to 90%/fail/' leat.yaml
leat build 2>&1 | sed -n 's/^failed: //p'
leat log clean-3
try leat show clean --rejects
leat show clean-3 --rejects --json | wc -l
leat show clean-2 --rejects | tail -n 1
sed -i 's/checks: fail/checks: warn/' leat.yaml
leat build >/dev/null 2>&1
leat sql 'SELECT count(*) AS n FROM clean' --csv
wc -l <out/clean/rejects.jsonl
leat show clean --rejects | head -n 1

printf '\n# a join that multiplies and loses rows\n'
printf 'id,name\n1,a\n1,aa\n3,c\n' >names.csv
cat >join.yaml <<'YAML'
sources: {users: users.csv, names: names.csv}
steps:
  joined:
    sql: SELECT users.id, name FROM users JOIN names USING (id)
    key: [id, name]
    check: {id: count as users.id, rows: as users}
  up_to:
    sql: SELECT users.id, name FROM users JOIN names USING (id)
    key: [id, name]
    check: {id: [count up to users.id, "count 1..2"]}
    checks: quarantine
  unique: {sql: SELECT * FROM names, key: id}
  nulls: {sql: "SELECT nullif(id, 3) AS id, name FROM names", key: [name, id]}
YAML
leat build --keep-going --project join.yaml 2>&1 | sed -n 's/^failed: //p' | sort
for step in joined up_to unique nulls; do try leat show $step --rejects --project join.yaml; done
sed -i 's/key: id}/key: [id, name]}/' join.yaml
leat build unique --project join.yaml >/dev/null 2>&1
try leat show unique --rejects --project join.yaml
leat gc --older 0 --project join.yaml >/dev/null
try leat show nulls --rejects --project join.yaml

printf '\n# drift since the last run\n'
awk 'BEGIN { print "id,x,code"; for (i = 0; i < 4000; i++) print i "," i % 997 "," (i % 3 ? "A" : "B") }' >x.csv
cat >drift.yaml <<'YAML'
sources: {x: x.csv}
steps:
  daily: {sql: SELECT * FROM x, key: id, check: {x: drift up to 0.25, rows: drift up to 0.3}}
  first: {sql: SELECT * FROM daily WHERE id < 2000, key: id}
YAML
drift() { leat build --project drift.yaml "$@" 2>&1 | sed 's/, in .*//; s/ran in .*/ran/; s/; see .*//'; }
drift
leat show daily --project drift.yaml | grep -E 'drift|metrics|suffix'
leat made out/daily.parquet --project drift.yaml | grep -c 'drift up to'
awk 'BEGIN { print "id,x,code"; for (i = 0; i < 4000; i++) print i "," i % 997 "," (i % 3 > 1 ? "A" : "B") }' >x.csv
drift
leat show first --project drift.yaml | grep -E '^first|drift|metrics'
leat show daily --project drift.yaml | grep -E '^table|drift|metrics'
drift --accept-drift
leat show daily --project drift.yaml | grep -E '^table|drift|metrics'
leat profile daily --project drift.yaml | tail -n 1
leat show first --project drift.yaml | grep -E '^first|drift|metrics'
sha256sum <out/daily.parquet >accepted
rm -rf .leat out
drift --quiet
leat show daily --project drift.yaml | grep -E '^table|drift|metrics'
sha256sum <out/daily.parquet | cmp - accepted && echo 'the same bytes without a history'

printf '\n# mistakes in leat.yaml\n'
sed 's/0\.\.1e7/0..1e7x/' leat.yaml >bad.yaml && try leat status --project bad.yaml
sed 's/not null, /not nul, /' leat.yaml >bad.yaml && try leat status --project bad.yaml
sed 's/checks: warn/checks: wran/' leat.yaml >bad.yaml && try leat status --project bad.yaml
sed 's/in users.id/in usres.id/' leat.yaml >bad.yaml && try leat status --project bad.yaml
sed 's/rows: 1\.\./rows: {min: 1}/' leat.yaml >bad.yaml && try leat status --project bad.yaml
sed 's/    key: code/    key: code\n    checks: warn/' leat.yaml >bad.yaml && try leat status --project bad.yaml
