# leat profile: what is in a table, and how it moved. Numbers come from awk, so that they are always the same.
rows() { # FROM TO: id, amount, code, day, note
	echo 'id,amount,code,day,note'
	awk -v from="$1" -v to="$2" 'BEGIN { for (i = from; i < to; i++) printf "%d,%.2f,%s,2026-01-%02d,%s\n", i, (i * 7919 % 1009) / 10,
		i % 10 < 5 ? "US" : i % 10 < 8 ? "DE" : "FR", 1 + i % 28, i % 4 ? "note " i % 3 : "" }'
}
rows 0 1000 >events.csv
rows 500 3000 | sed 's/,FR,/,US,/; s/,note 2$/,<b>new<\/b>/' >later.csv

try leat profile events.csv
try leat profile events.csv --compare events.csv
try leat profile later.csv --compare events.csv

printf '\n# Parquet, a pattern, a folder, a result without an extension\n'
leat check events.csv --check 'rows: 1..' --output events.parquet >/dev/null
leat profile events.parquet >parquet.txt; leat profile events.csv >csv.txt
sed 1d csv.txt >a; sed 1d parquet.txt >b; cmp a b && echo the same
mkdir folder && cp events.parquet folder/1.parquet && cp events.parquet folder/2.parquet
leat profile folder | head -n 1
leat profile 'folder/*.parquet' | head -n 1
for threads in 1 2 3; do leat profile folder --threads $threads | md5sum; done | sort -u | wc -l

printf '\n# odd tables\n'
echo 'a,b' >empty.csv
try leat profile empty.csv
printf '{"n": null, "x": 1, "l": [1, 2]}\n{"n": null, "x": 1e300, "l": []}\n{"n": null, "x": -1e300, "l": null}\n' >odd.json
try leat profile odd.json
printf '"a\033[31m\nb","</script><script>alert(1)</script>","x","X"\n\033[2J,"<img src=x onerror=alert(1)>",nan,1\nb,,inf,2\n' >hostile.csv
try leat profile hostile.csv
leat profile events.csv --sample 100 | head -n 1

printf '\n# pages and JSON\n'
try leat profile hostile.csv --html page.html >/dev/null
grep -c '<script>alert\|<img' page.html
grep -c '<script' page.html
leat profile hostile.csv --compare events.csv --html page.html --json >profile.json
python3 -c '
import json
profile = json.load(open("profile.json"))
print(profile["table"], profile["rows"], [column["name"] for column in profile["columns"]])
print(profile["columns"][2]["nan"], profile["columns"][2]["infinite"], profile["drift"]["moved"])'

printf '\n# mistakes\n'
try leat profile none.parquet
try leat profile
echo x >text.txt
try leat profile text.txt
try leat profile events.csv --html no/such/folder/page.html
try leat profile events.csv --compare none.csv
