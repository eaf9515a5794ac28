# Where output goes: a full disk is an error, a reader that went away is not worth a word, no colours in files.
leat ops >/dev/full
echo "exit $?"
leat ops | head -n 1
leat ops resize | grep -c "$(printf '\033')"
