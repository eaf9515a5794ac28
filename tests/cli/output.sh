# Where output goes: a full disk is an error, a reader that went away is not worth a word, no colours in files.
leat ops >/dev/full
echo "exit $?"
leat ops | head -n 1
leat ops resize | grep -c "$(printf '\033')"
cat >terminal.py <<'END'
# Runs a command on a terminal of 70 columns and shows what it writes.
import fcntl, os, pty, struct, sys, termios
pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(1, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 70, 0, 0))
    os.execvp(sys.argv[1], sys.argv[1:])
out = b""
try:
    while chunk := os.read(fd, 4096):
        out += chunk
except OSError:
    pass
os.waitpid(pid, 0)
print(out.decode().replace("\r\n", "\n").replace("\033", "ESC"), end="")
END
TERM=xterm
export TERM
python3 terminal.py leat ops decode
python3 terminal.py leat ops take
NO_COLOR=1 python3 terminal.py leat ops take | head -n 1
TERM=dumb python3 terminal.py leat ops take | head -n 1
