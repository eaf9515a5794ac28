/* replay.c - gives a fuzzer every file of a folder, and every file with bytes cut off or changed
 *
 * What a fuzzer once found stays found: the seeds are replayed by the tests, with the
 * compiler and sanitizers of the day, without libFuzzer. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MOST_BYTES = 1 << 20, CUTS = 64, FLIPS = 256 };

/* An exact copy on the heap, so that a sanitizer sees a read behind its end. */
static void
give(const uint8_t *data, size_t size)
{
	uint8_t *copy = malloc(size ? size : 1);

	if (!copy)
		exit(1);
	memcpy(copy, data, size);
	LLVMFuzzerTestOneInput(copy, size);
	free(copy);
}

static void
give_variants(uint8_t *data, size_t size)
{
	uint64_t state = 88172645463325252u + size;

	give(data, size);
	for (size_t i = 0; i < CUTS && size > 0; i++)
		give(data, size * i / CUTS);
	for (int i = 0; i < FLIPS && size > 0; i++) {
		size_t at;
		uint8_t was;

		state ^= state << 13;
		state ^= state >> 7;
		state ^= state << 17;
		at = (size_t)(state >> 16) % size;
		was = data[at];
		data[at] ^= (uint8_t)(1u << (state & 7));
		give(data, size);
		data[at] = was;
	}
}

static int
replay_file(const char *folder, const char *name)
{
	static uint8_t data[MOST_BYTES];
	char path[4096];
	FILE *file;
	size_t size;

	snprintf(path, sizeof path, "%s/%s", folder, name);
	file = fopen(path, "rb");
	if (!file) {
		perror(path);
		return -1;
	}
	size = fread(data, 1, sizeof data, file);
	fclose(file);
	give_variants(data, size);
	return 0;
}

int
main(int argc, char **argv)
{
	struct dirent *entry;
	int files = 0;
	DIR *dir;

	if (argc != 2 || !(dir = opendir(argv[1]))) {
		fprintf(stderr, "usage: %s CORPUS_FOLDER\n", argv[0]);
		return 2;
	}
	while ((entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.' && replay_file(argv[1], entry->d_name) == 0)
			files++;
	closedir(dir);
	printf("%d files replayed\n", files);
	return files > 0 ? 0 : 1;
}
