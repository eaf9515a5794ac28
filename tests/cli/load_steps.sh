# Sources with columns: loaded file by file, before the steps that read them.
build() { # Times vary, and with them the order and numbers of actions.
	printf '$ leat build %s\n' "$*"
	leat build -j 1 "$@" 2>&1 | sed -E -e 's/[0-9.]+ m?s\b/T/g' -e 's/^([a-z]+)-[0-9]+/\1/' \
		-e "s|$PWD/||" -e 's/(leat log [a-z]+)-[0-9]+/\1-N/' | sort
}
mkdir raw
printf 'user,amount\n1,2.5\n2,3.5\n' >raw/e-1.csv
printf 'user,amount\n3,1\nx,2\n4,2\n' >raw/e-2.csv
cat >leat.yaml <<'YAML'
sources:
  events: {files: 'raw/e-*.csv', columns: {user: int64, amount: double}, rejects: 50%}
steps:
  list:
    run: (cd "$events" && ls */*) > "$out"
    in: events
YAML
try leat graph
build
cat out/list
cat out/events/raw%2Fe-2.csv/counts.json
try leat show events --rejects
try leat show events:file=raw/e-2.csv --rejects --json
try leat graph

printf '\n# a new file is loaded alone, and a changed one\n'
printf 'user,amount\n9,9\n' >raw/e-3.csv
build
printf 'user,amount\n1,2.5\n2,4.5\n' >raw/e-1.csv
try leat why events
build
build

printf '\n# too many rejects\n'
sed -i 's/50%/0.1%/' leat.yaml
build -k
try leat show events --rejects | sed 's/events-[0-9]*/events-N/'
sed -i 's/0.1%/1/' leat.yaml
build
printf 'user,amount\n9,9\n' | gzip -n | head -c 25 >raw/e-4.csv
build -k
rm raw/e-4.csv

printf '\n# a query reads all rows, and the numbers are metrics\n'
cat >>leat.yaml <<'YAML'
  total: {sql: 'SELECT count(*) AS n, max(amount) AS most FROM events', key: n}
YAML
build total
leat sql "SELECT * FROM 'out/total.parquet'"
leat show events:file=raw/e-2.csv | grep metrics

printf '\n# leat.yaml\n'
refused() { # SOURCE
	printf 'sources:\n  e: %s\nsteps: {a: {run: x, in: e}}\n' "$1" >bad.yaml
	try leat graph --project bad.yaml
}
refused '{files: raw/e-1.csv, columns: {user: int46}}'
refused '{files: raw/e-1.csv, columns: {user: int64}, rejects: x}'
refused '{files: raw/e-1.csv, columns: {user: int64}, colour: x}'
refused '{files: raw/e-1.csv, columns: [user]}'
refused '{files: raw/e-1.csv, columns: {user: }}'
refused '{files: raw/e-1.csv, rejects: 1%}'
refused '{columns: {user: int64}}'
refused '{files: "raw/e-{n}.csv", columns: {user: int64}}'
refused '{files: raw/none-*.csv, columns: {user: int64}}'
refused '{files: raw/e-1.csv, columns: {user: int64}, delimiter: ab}'
printf 'sources:\n  a: {files: raw/e-1.csv, columns: {user: int64}}\nsteps: {a: {run: x}}\n' >bad.yaml
try leat graph --project bad.yaml
printf 'sources:\n  e: {files: raw/e-1.csv}\nsteps: {a: {run: wc -l "$e", in: e}}\n' >plain.yaml
try leat graph --project plain.yaml
try leat show list --rejects
