/* keys.c - see keys.h */
#include "cli/keys.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

enum { CTRL_T = 0x14 };

bool
leat_is_foreground(int fd)
{
	pid_t group = tcgetpgrp(fd);

	return group < 0 || group == getpgrp();
}

void
leat_keys_open(struct leat_keys *keys)
{
	*keys = (struct leat_keys){.fd = -1};
	/* Opened again, because reads must not block, and that is not to be seen by those who share standard input. */
	if (isatty(STDIN_FILENO) && tcgetpgrp(STDIN_FILENO) >= 0)
		keys->fd = open("/dev/tty", O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
}

int
leat_keys_fd(struct leat_keys *keys)
{
	struct termios mode;

	if (keys->fd < 0 || !leat_is_foreground(keys->fd) || tcgetattr(keys->fd, &mode) != 0 ||
	    !(mode.c_lflag & ICANON))
		return -1;
	if (mode.c_cc[VEOL2] == CTRL_T)
		return keys->fd;
	if (!keys->is_set) /* else a shell has set it back while this was in the background */
		keys->was = mode.c_cc[VEOL2];
	keys->is_set = true;
	mode.c_cc[VEOL2] = CTRL_T;
	return tcsetattr(keys->fd, TCSANOW, &mode) == 0 ? keys->fd : -1;
}

bool
leat_keys_read(struct leat_keys *keys, size_t *lines)
{
	bool found = false;
	char typed[256];
	ssize_t got;

	*lines = 0;
	while ((got = read(keys->fd, typed, sizeof(typed))) > 0)
		for (ssize_t i = 0; i < got; i++) {
			found |= typed[i] == CTRL_T;
			*lines += typed[i] == '\n';
		}
	if (got < 0 && errno != EAGAIN && errno != EINTR && leat_is_foreground(keys->fd))
		leat_keys_close(keys); /* the terminal is gone */
	return found;
}

void
leat_keys_close(struct leat_keys *keys)
{
	struct termios mode;

	if (keys->fd < 0)
		return;
	if (keys->is_set && leat_is_foreground(keys->fd) && tcgetattr(keys->fd, &mode) == 0 &&
	    mode.c_cc[VEOL2] == CTRL_T) {
		mode.c_cc[VEOL2] = keys->was;
		tcsetattr(keys->fd, TCSANOW, &mode);
	}
	close(keys->fd);
	keys->fd = -1;
}
