/* keys.h - notice ^T on the terminal, as the shells of BSD and macOS do
 *
 * The terminal stays in canonical mode: ^T is only made a second character that ends a line (VEOL2), so what is typed
 * arrives as soon as ^T is. Whoever is killed leaves a terminal that works. The keyboard belongs to the foreground: in
 * the background, and while another program such as a pager has the terminal in another mode, nothing is read.
 *
 * One thread, which blocks SIGTTIN and SIGTTOU: else the process may be stopped. */
#ifndef LEAT_CLI_KEYS_H
#define LEAT_CLI_KEYS_H

#include <stdbool.h>
#include <stddef.h>
#include <termios.h>

struct leat_keys {
	int fd; /* -1: standard input is not the terminal that controls this process */
	bool is_set;
	cc_t was; /* VEOL2 */
};

void leat_keys_open(struct leat_keys *keys);
void leat_keys_close(struct leat_keys *keys); /* leaves the terminal as it was */
/* The descriptor to wait for, for a second or so; -1: the keyboard is somebody else's now. */
int leat_keys_fd(struct leat_keys *keys);
/* Reads all that was typed. True: ^T is in it. *lines: how often the terminal has begun a line since, by its echo. */
bool leat_keys_read(struct leat_keys *keys, size_t *lines);
/* False: `fd` is the terminal that controls this process, and another process group has it. */
bool leat_is_foreground(int fd);

#endif
