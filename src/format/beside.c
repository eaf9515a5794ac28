/* beside.c - where files lie that are made of the data */
#include "format/beside.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/hash.h"

/* "FOLDER/.NAME.leatidx" */
static char *
path_beside(const char *data, struct leat_mem *mem)
{
	const char *slash = strrchr(data, '/');
	int folder = slash ? (int)(slash - data) + 1 : 0;

	return leat_asprintf(mem, "%.*s.%s.leatidx", folder, data, data + folder);
}

/* The user's cache folder, made if need be and `make` is set; NULL: there is none, or no memory. */
static char *
cache_folder(bool make, struct leat_mem *mem)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
	char *folder;

	if (cache && cache[0] == '/')
		folder = leat_asprintf(mem, "%s/leat/index", cache);
	else if (home && home[0] == '/')
		folder = leat_asprintf(mem, "%s/.cache/leat/index", home);
	else
		return NULL;
	for (char *slash = folder; make && slash;) {
		slash = strchr(slash + 1, '/');
		if (slash)
			*slash = '\0';
		(void)mkdir(folder, 0700); /* what fails here fails again, with a message, when the index is written */
		if (slash)
			*slash = '/';
	}
	return folder;
}

/* "CACHE/leat/index/<hash of the data's path>.leatidx"; NULL: there is none, or no memory. */
static char *
path_in_cache(const char *data, bool make, struct leat_mem *mem)
{
	char *folder = cache_folder(make, mem), *absolute = realpath(data, NULL), *path = NULL;
	uint8_t digest[LEAT_SHA256_BYTES];
	char hex[LEAT_SHA256_HEX];

	if (folder && absolute && leat_sha256(absolute, strlen(absolute), digest) == 0) {
		leat_hex(digest, sizeof(digest), hex);
		path = leat_asprintf(mem, "%s/%s.leatidx", folder, hex);
	}
	free(absolute);
	leat_free(mem, folder);
	return path;
}

char *
leat_beside(const char *data, enum leat_beside place, bool make, struct leat_mem *mem)
{
	return place == LEAT_BESIDE_DATA ? path_beside(data, mem) : path_in_cache(data, make, mem);
}
