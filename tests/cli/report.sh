# `leat report`: pages of saved runs, and comparisons. Figures are made up, so that the output is always the same.
run() { # RATE [EPOCH_SECONDS...]: JSON of a run whose epochs of 1,000 samples took so long
	rate=$1 epochs= i=0
	shift
	for seconds; do
		epochs="$epochs${epochs:+, }{\"epoch\": $i, \"samples\": 1000, \"seconds\": $seconds, \"wait_share\": 0.25}"
		i=$((i + 1))
	done
	echo "{\"samples_per_s\": $rate, \"mb_per_s\": 1.5, \"wait_share\": 0.25, \"threads\": $i, \"epochs\": [$epochs]}"
}
run 990 1.2 1.00 1.01 0.99 1.00 >a.json
run 985 1.3 1.01 1.01 1.00 0.99 >same.json
run 880 1.3 1.11 1.12 1.11 1.10 >slower.json
run 990 1.0 >short.json
run 1090 1.1 >shorter.json

try leat report a.json -o a.html
try leat report a.html -o again.html
try cmp a.html again.html
try leat report --compare a.json a.html
try leat report --compare a.json same.json
try leat report --compare a.json slower.json -o compared.html
try leat report --compare short.json shorter.json
try leat report --compare a.json slower.json --json
grep -c 'id="leat-compare"' compared.html

# Mistakes
try leat report a.json
try leat report a.json same.json
try leat report --compare a.json
try leat report compared.html -o x.html
try leat report none.json -o x.html
echo '<p>hello' >other.html
try leat report other.html -o x.html
echo '{"samples_per_s": 0}' >zero.json
try leat report --compare a.json zero.json
echo '{"samples": ' >cut.json
try leat report cut.json -o x.html
try leat report a.json -o no/such/folder/x.html
ls

# The report of a feed
mkdir -p cells/a
for i in 1 2 3 4 5 6 7 8; do cp "$golden/tf/420.jpg" "cells/a/$i.jpg"; done
leat pack cells --output data --shards 1 >/dev/null
spec="tfrecord('data-*') | example(image=bytes, label=int64) | decode | resize(8, 8) | batch(4)"
leat feed "$spec" --epochs 3 --quiet --report run.html >/dev/null && echo written
leat report run.html -o copy.html && leat report copy.html -o third.html && cmp copy.html third.html && echo "the same"
sed -n 's/.*id="leat-timeline">//p' copy.html | grep -o '"tags":\[[^]]*\]'
try leat feed "$spec" --quiet --report no/such/folder/run.html
