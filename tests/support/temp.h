/* temp.h - a folder of its own for a test, and whole files in it */
#ifndef TEST_TEMP_H
#define TEST_TEMP_H

#include <fcntl.h>
#include <ftw.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

struct temp {
	char folder[64];
	char path[512]; /* of the last file named */
};

void temp_make(struct temp *temp);
void temp_remove(struct temp *temp);

/* "FOLDER/NAME", valid until the next call. */
const char *temp_path(struct temp *temp, const char *name);
const char *temp_write(struct temp *temp, const char *name, const void *bytes, size_t len);

/* The whole file, to be freed. */
unsigned char *temp_read(const char *path, size_t *len);

/* As if it had been changed in the moment that comes: a busy machine may take its time until it is looked at. */
void temp_change_now(struct temp *temp, const char *name);
bool temp_exists(struct temp *temp, const char *name);

#endif
