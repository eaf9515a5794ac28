# leat load: rows and rejects of CSV files. Without DuckDB there is one sentence.
cat >events.csv <<'CSV'
user,ts,amount,note
1,2026-11-18T12:30:00Z,2.5,"hello, ""you"""
2,2026-11-18,-1e3,
3,2026-11-18 12:30:00+02:00,nan,"two
lines"
CSV
columns='user int64, ts timestamp, amount double, note text'
try leat load events.csv --columns "$columns" --out clean
cat clean/counts.json
wc -c <clean/rejects.jsonl
ls clean

printf '\n# bad records are set aside\n'
cat >dirty.csv <<'CSV'
note,user,ts,amount
fine,1,2026-11-18,1.5
10003.7 is no int64,10003.7,2026-11-18,1
no date,2,2026-02-30,1
"not closed,3,2026-11-18,1
also fine,4,2026-11-18,
too few,5
"after" quote,6,2026-11-18,1

too large,7,2026-11-18,1e999
5" pipe,8,2026-11-18,1
the end,9,2026-11-18,7
CSV
printf 'half \303,10,2026-11-18,1\n' >>dirty.csv
try leat load dirty.csv events.csv --columns "$columns" --rejects 60% --out kept
cat kept/counts.json kept/rejects.jsonl

printf '\n# too many\n'
try leat load dirty.csv --columns "$columns" --rejects 0.1% --show 2 --out many
ls many
try leat load dirty.csv --columns "$columns" --rejects 7 --out some
try leat load dirty.csv --columns "$columns" --rejects 7 --out some
try leat load dirty.csv --columns "$columns" --rejects 7 --overwrite --quiet --out some

printf '\n# headers\n'
try leat load events.csv --columns 'user int64, ts timestamp, amount double' --out a
try leat load events.csv --columns 'user int64, ts timestamp, amount double, note skip' --out b
try leat load events.csv --columns 'user int64, ts timestamp, amount double, note text, when date' --out c
printf 'a,a\n1,2\n' >twice.csv
try leat load twice.csv --columns 'a int64' --out d
: >empty.csv
try leat load empty.csv --columns 'a int64' --out e
printf '1\tNA\n2\t-\n-\t3\n' >plain.tsv
try leat load plain.tsv --no-header --delimiter tab --columns 'a int64, b float' --null NA --null - --out f

printf '\n# compressed files\n'
gzip -nc events.csv >events.csv.gz
try leat load events.csv.gz --columns "$columns" --out g
cmp clean/rows.parquet g/rows.parquet && echo same rows
head -c 60 events.csv.gz >short.csv.gz
try leat load short.csv.gz --columns "$columns" --out h
iconv -f utf-8 -t utf-16 events.csv >wide.csv
try leat load wide.csv --columns "$columns" --out i

printf '\n# usage\n'
try leat load events.csv --out j
try leat load events.csv --columns 'user int46' --out j
try leat load events.csv --columns 'user int64' --rejects much --out j
try leat load events.csv --columns 'user int64' --delimiter ab --out j
try leat load nothing.csv --columns 'user int64' --out k

printf '\n# JSON Lines\n'
printf '{"user": 1, "note": "a"}\n{"user": 1.5}\n{"note": ["x"]}\n' | gzip -n >lines.jsonl.gz
try leat load lines.jsonl.gz --columns 'user int64, note text' --rejects 1 --out l
cat l/rejects.jsonl
try leat sql "SELECT * FROM 'l/rows.parquet'"

printf '\n# names that look like patterns\n'
try leat load events.csv --columns "$columns" --out "it's [a] *?=1"
