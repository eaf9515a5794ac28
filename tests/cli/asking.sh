# What was made, from what, what it printed, and how two builds differ.
plain() { # runs, times and figures differ
	"$@" 2>&1 | sed -E 's/[0-9]{8}T[0-9]{6}-[0-9]+/RUN/g; s/[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}/WHEN/; s/^(  took +).*/\1LONG/; s|/[^ ]*/\.leat|.leat|'
}
mkdir raw
echo 1 >raw/s-1.txt
echo 2 >raw/s-2.txt
printf 'tr 12 ab <"$1" >"$2"\n' >tool.sh
cat >leat.yaml <<'EOF'
sources: {raw: 'raw/s-{k}.txt'}
steps:
  each:
    run: echo "this is $k"; sh tool.sh "$raw" "$out"
    in: raw
    slices: {k: [1, 2]}
  all:
    run: cat "$each"/* >"$out"; echo "$limit" >>"$out"; test "$limit" -lt 9
    in: each
    params: {limit: 5}
EOF
try leat show all
leat build --quiet --jobs 1 2>/dev/null
first=$(ls .leat/runs | sed -n 's/\.jsonl$//p')
try plain leat show all
try plain leat show each
try plain leat show each:k=2
try leat show each-99
try plain leat log each:k=2
try plain leat made out/all
cp out/each/1 copy
try plain leat made copy
try plain leat made leat.yaml
sed -i 's/limit: 5/limit: 7/' leat.yaml
leat build --quiet --jobs 1 2>/dev/null
echo "$ leat diff FIRST"
plain leat diff "$first"
try plain leat diff nothing
sed -i 's/limit: 7/limit: 9/; s/"$limit" >>/"$limit" failing; echo "$limit" >>/' leat.yaml
leat build --quiet --jobs 1 >/dev/null 2>&1 || echo failed
try plain leat log all
try leat why none
echo '# builds'
plain leat log | sed -E 's/, in [0-9].*//'
plain leat log --builds 1 | sed -E 's/, in [0-9].*//'

echo '# slices and metrics that are in one of the builds only'
mkdir other
cd other || exit 1
project() { # slices, metrics
	cat >leat.yaml <<-YAML
		steps:
		  fit:
		    run: |
		      echo "\$k" >"\$out"
		      echo '{$2}' >\$(sed -E 's/.*"metrics":"([^"]*)".*/\1/' "\$LEAT_STEP")
		    slices: {k: [$1]}
	YAML
	leat build --quiet --jobs 1
}
project '1, 2, 3' '"loss":0.5,"good":true,"only":1'
first=$(ls .leat/runs | sed -n 's/\.jsonl$//p')
project '1, 2, 4, 5' '"loss":0.25,"good":false,"new":"x"'
echo '$ leat diff FIRST'
leat diff "$first" | sed -E "s/$first/FIRST/; s/[0-9]{8}T[0-9]{6}-[0-9]+/LAST/"

echo '# how many slices are not shown'
for k in $(seq 22); do echo "n = $k" >"m$k.py"; done
cat >job.py <<'EOF'
import importlib, sys
print(importlib.import_module("m" + sys.argv[1]).n, file=open(sys.argv[2], "w"))
EOF
cat >leat.yaml <<'EOF'
steps:
  many:
    run: python3 job.py "$k" "$out"
    slices: {k: 1..22, j: [1, 2]}
EOF
leat build --quiet
for k in $(seq 22); do echo "n = -$k" >"m$k.py"; done
echo '$ leat why many'
leat why many >why
grep -c '^2 slices of many' why
tail -1 why
