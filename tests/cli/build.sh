# Steps: cold, no-op, edits, early cutoff, failures, targets, and a status that writes nothing. Times vary, so they are T.
build() { # Actions of earlier times come longest first: they are sorted here, and their numbers left out.
	printf '$ leat build %s\n' "$*"
	leat build -j 1 "$@" >built 2>&1
	code=$?
	sed -E -e 's/(ran|made before|failed|finished|that), in [0-9].*$/\1/' -e 's/ in [0-9.]+ s/ in T/' \
		-e 's/^([a-z]+)-[0-9]+/\1/' -e "s|$PWD/||" -e "s/(leat log [a-z]+)-[0-9]+/\1-N/" built >lines
	grep ': ran in' lines | sort
	grep -v ': ran in' lines
	[ $code -eq 0 ] || printf '[exit %d]\n' $code
}
status() {
	echo '$ leat status'
	leat status | sed -E -e "s|$PWD/||" -e 's/[0-9]+\.[0-9] s/  T s/' -e 's/ +$//' \
		-e "s/(leat log [a-z]+)-[0-9]+/\1-N/"
}
list() { find . ! -name lock.mdb -printf '%p %s %T@ %C@\n' | sort | sha256sum; }

mkdir raw
for i in 1 2 3; do echo "line of $i" >raw/s-$i.txt; done
cat >count.sh <<'END'
wc -c <"$1" # bytes
END
cat >leat.yaml <<'END'
sources:
  raw: raw/s-{subject}.txt
steps:
  count:
    run: sh count.sh "$raw" >"$out"
    in: raw
    slices: {subject: 1..3}
  sum:
    run: cat "$count"/* >"$out"
    in: count
    suffix: .txt
END
status
build --dry-run
build
cat out/sum.txt
build
status
echo '# one input, another size: its slice and what follows'
echo 'a longer line of 2' >raw/s-2.txt
status
build
cat out/sum.txt
echo '# a comment: the step runs, its output is the same, what follows does not run'
sed -i 's/bytes/all bytes/' count.sh
build
echo '# back again: nothing runs'
sed -i 's/all bytes/bytes/' count.sh
build
echo '# targets'
build count:subject=2
build cuont
build count:subject=7
echo '# a failure: nothing more is started; with --keep-going, all that does not depend on it'
cat >count.sh <<'END'
test "$2" != 2 || { echo "no luck with $2" >&2; exit 3; }
wc -l <"$1"
END
sed -i -e 's/"$raw"/"$raw" "$subject"/' -e 's/count:/lines:/' -e 's/"$count"/"$lines"/' -e 's/in: count/in: lines/' leat.yaml
build
build --keep-going
status
leat log "$(leat status | sed -nE "s/.*'leat log (.*)'.*/\1/p")" 2>/dev/null
cat out/sum.txt
echo '# a failure is shown until its slice is made, also if the same slice was made before, and others are made later'
sed -i 's/no luck/still no luck/' count.sh
build lines:subject=2
build lines:subject=3
list >../before
status
list | cmp - ../before && echo same
echo '# repaired'
sed -i 's/"$2" != 2/"$2" != 0/' count.sh
build lines:subject=2
build
echo '# made since: it would run again, but its old failure is over'
echo 'another line of 2' >raw/s-2.txt
status
build
mv raw/s-2.txt 2.txt
build
status
mv 2.txt raw/s-2.txt

echo '# moved: nothing runs'
mkdir ../moved && cp -a . ../moved/here && (cd ../moved/here && build && cat out/sum.txt)

echo '# status writes nothing (LMDB counts its readers in lock.mdb)'
list >../before
leat status --json
list | cmp - ../before && echo same

echo '# events'
leat build --json -j 1 | sed -E 's/.*"event":"([a-z]+)".*/\1/' | sort | uniq -c | sed 's/^ *//'
