# Every mistake names the file, or the row, and leaves no files behind.
mkdir -p cells/a cells/b empty flat
printf 'x' >cells/a/1.jpg
printf 'y' >cells/b/2.jpg
printf 'z' >flat/3.jpg
try leat pack
try leat pack cells
try leat pack cells -o
try leat pack cells flat -o out
try leat pack cells -o out --shards many
try leat pack cells -o out --shards 1000000
try leat pack cells -o out --shards 3
try leat pack cells -o out --shard-size 1xb
try leat pack cells -o out --shard 3
try leat pack missing -o out
try leat pack empty -o out
try leat pack flat -o out
try leat pack cells -o cells/a/1.jpg/out
mkdir cells/c
try leat pack cells -o out
: >cells/c/empty.png
try leat pack cells -o out --shards 3
rm -r cells/c
ln -s nowhere cells/b/link.jpg
try leat pack cells -o out
printf 'cells/a/1.jpg,1\ncells/b/2.jpg\n' >short.csv
try leat pack short.csv -o out
printf 'cells/a/1.jpg,1\n\n"cells/b/\n2.jpg",2\n' >gone.csv
try leat pack gone.csv -o out
printf 'cells/a/1.jpg,\n' >label.csv
try leat pack label.csv -o out
printf 'path,label\n"cells/a/1.jpg,1\n' >quote.csv
try leat pack quote.csv -o out
printf 'path,label\n' >none.csv
try leat pack none.csv -o out
mkfifo pipe.csv
try leat pack pipe.csv -o out
printf 'path,label\npipe.csv,1\n' >pipes.csv
try leat pack pipes.csv -o out
ls -A | grep out

# What is there stays until the new files are complete.
mkdir -p good/a bad/a
printf 'x' >good/a/1.jpg
printf 'y' >good/a/2.jpg
printf 'z' >bad/a/1.jpg
: >bad/a/2.jpg
leat pack good -o kept --shards 2 >/dev/null
cksum kept-* >before
try leat pack bad -o kept --shards 2 --no-shuffle --overwrite
cksum kept-* | cmp before - && echo "the earlier files are as they were"
# With a signal that waits from the start on, it stops, wherever that is.
cat >stopped.py <<'END'
import os, signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
pid = os.getpid()
if os.fork() == 0:
    os.kill(pid, signal.SIGTERM)
    os._exit(0)
os.wait()
os.execvp(sys.argv[1], sys.argv[1:])
END
python3 stopped.py leat pack good -o kept --shards 1 --overwrite
echo "exit $?"
cksum kept-* | cmp before - && echo "the earlier files are as they were"
ls -A | grep kept
