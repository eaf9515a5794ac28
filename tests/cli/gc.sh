# The store of a project: what gc keeps and removes, what fsck finds and repairs.
try leat gc
try leat fsck
cat >leat.yaml <<'YAML'
steps:
  one:
    run: echo $number >"$out"
    params: {number: 1}
YAML
leat build >/dev/null 2>&1
sed -i 's/number: 1/number: 22/' leat.yaml
leat build >/dev/null 2>&1
try cat out/one
try leat fsck | sed 's/[0-9]* blobs.*B:/... blobs:/'
try leat gc --older 0 --dry-run | sed 's/ and .*//'
try leat gc --keep one-9
try leat gc --keep one
try leat gc --keep one-1
try leat gc --older 0 | sed 's/ and .*//'
try leat gc --release one-1
try leat gc --release one-1
try leat gc --older 0 | sed 's/ and .*//'
# Damage, as a command that is root can do it.
chmod u+w "$(readlink -f out/one)"
echo 33 >"$(readlink -f out/one)"
leat fsck 2>&1 | sed 's/[0-9a-f]\{64\}/HASH/; s/cas.[0-9a-f]*/cas\/../; s/[0-9]* blobs.*B:/... blobs:/; s/'"'"'[^'"'"']*leat'"'"'/STORE/'
leat fsck --repair 2>&1 | sed 's/[0-9a-f]\{64\}/HASH/; s/cas.[0-9a-f]*/cas\/../; s/[0-9]* blobs.*B:/... blobs:/'
leat build >/dev/null 2>&1
try cat out/one
try leat fsck | sed 's/[0-9]* blobs.*B:/... blobs:/'
# All may go: it is made again.
leat gc --older 0 --size 1 | sed 's/ and .*//'
leat build >/dev/null 2>&1
try cat out/one
try leat gc --help
