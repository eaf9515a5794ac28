# The disk cache of remote data: one that is empty, and what is none.
LEAT_DISK_CACHE=cache LEAT_DISK_CACHE_SIZE=1MiB LEAT_NET_PATIENCE=0.01 leat ls http://127.0.0.1:1/x >/dev/null 2>&1
try leat cache ls cache
try leat cache gc cache --days 30 --size 1MB
try leat cache rm cache
chmod g+w cache
LEAT_DISK_CACHE=cache try leat ls http://127.0.0.1:1/x
LEAT_DISK_CACHE=other LEAT_DISK_CACHE_SIZE=1KB try leat ls http://127.0.0.1:1/x
try leat cache ls nowhere
mkdir none
try leat cache ls none
try leat cache mv cache
try leat help cache
