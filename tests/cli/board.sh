# The board refuses what it cannot serve, with a reason.
try leat board nowhere
LEAT_BOARD_TOKEN=short try leat board
LEAT_BOARD_TOKEN='with spaces in it, and long' try leat board
try leat board --port 70000
# It serves until it is told to end.
LEAT_BOARD_TOKEN=0123456789abcdef leat board --port 0 >url 2>said &
board=$!
while [ ! -s url ]; do
	kill -0 $board || break
	sleep 0.05
done
sed "s/1:[0-9]*/1:PORT/" url
kill -TERM $board
wait $board
echo "[exit $?]"
cat said
