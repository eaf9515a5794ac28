/* write.c - bench_write OUT FILE...: copy TFRecord files record by record, as fast as the system can
 *
 * What is left of writing records if making them costs nothing: each record is copied to a buffer of 1 MiB, and full
 * buffers are written. Everything is in memory before. Prints nanoseconds by the clock and of processor time, and
 * bytes. */
#include <err.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BUFFER = 1 << 20, FRAME = 16 }; /* length, its checksum, and that of the data */

struct file {
	unsigned char *bytes;
	size_t size;
};

static long long
now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static struct file
load(const char *path)
{
	struct file file = {0};
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = 1;

	if (fd < 0 || fstat(fd, &st))
		err(1, "%s", path);
	file.bytes = malloc((size_t)st.st_size + 1);
	if (!file.bytes)
		err(1, "%s", path);
	while (got > 0 && file.size < (size_t)st.st_size) {
		got = read(fd, file.bytes + file.size, (size_t)st.st_size - file.size);
		if (got < 0)
			err(1, "%s", path);
		file.size += (size_t)got;
	}
	close(fd);
	return file;
}

static void
write_all(int fd, const unsigned char *bytes, size_t len)
{
	while (len) {
		ssize_t done = write(fd, bytes, len);

		if (done < 0)
			err(1, "write");
		bytes += done;
		len -= (size_t)done;
	}
}

/* Bytes of the record at `at`, with its frame. */
static size_t
record_size(const struct file *file, size_t at)
{
	uint64_t len;

	if (file->size - at < FRAME)
		errx(1, "a file ends inside a record");
	memcpy(&len, file->bytes + at, sizeof(len));
	if (len > file->size - at - FRAME || len + FRAME > BUFFER)
		errx(1, "a record is longer than its file or than 1 MiB");
	return (size_t)len + FRAME;
}

static void
copy(const struct file *file, int fd, unsigned char *buffer)
{
	size_t used = 0;

	for (size_t at = 0; at < file->size;) {
		size_t len = record_size(file, at);

		if (used + len > BUFFER) {
			write_all(fd, buffer, used);
			used = 0;
		}
		memcpy(buffer + used, file->bytes + at, len);
		used += len;
		at += len;
	}
	write_all(fd, buffer, used);
}

int
main(int argc, char **argv)
{
	unsigned char *buffer = malloc(BUFFER);
	struct file *files = calloc((size_t)argc, sizeof(*files));
	size_t total = 0;
	long long wall, cpu;

	if (argc < 3 || !buffer || !files)
		errx(2, "usage: bench_write OUT FILE...");
	for (int i = 2; i < argc; i++)
		files[i] = load(argv[i]);
	wall = now(CLOCK_MONOTONIC);
	cpu = now(CLOCK_PROCESS_CPUTIME_ID);
	for (int i = 2; i < argc; i++) {
		char path[4096];
		int fd;

		snprintf(path, sizeof(path), "%s/copy-%d", argv[1], i - 2);
		fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		if (fd < 0)
			err(1, "%s", path);
		copy(&files[i], fd, buffer);
		close(fd);
		total += files[i].size;
	}
	printf("%lld %lld %zu\n", now(CLOCK_MONOTONIC) - wall, now(CLOCK_PROCESS_CPUTIME_ID) - cpu, total);
	for (int i = 2; i < argc; i++)
		free(files[i].bytes);
	free(files);
	free(buffer);
	return 0;
}
