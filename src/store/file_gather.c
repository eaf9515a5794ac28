/* file_gather.c - copy many small pieces of local files with one system call
 *
 * A read of 1 KiB from the page cache costs 1 us, and copying it a tenth of that. So files are mapped, and
 * process_vm_writev to this very process copies all pieces of a run from the mappings: one call, in which
 * the kernel handles faults. Where a file was truncated, it returns EFAULT; a copy of our own would raise SIGBUS.
 *
 * Nothing but the kernel ever touches these mappings. Prefetching does not count: it never faults.
 *
 * A page that is not in the page cache makes the call block. The thread's major faults tell, after the fact. Asking
 * mincore beforehand would cost more, and it lies about files that the user can only read.
 *
 * The version of each file is checked after the copy, so no byte of another one is used: the rest of a page
 * after a new end of a file reads as zeros.
 *
 * Threads: any. A mapping is made on first use, and stays until the file is forgotten. */
#include "store/file.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"

enum {
	LINE = 64,
	LINES = 2,                      /* to prefetch of a piece: the CPU finds out about the rest by itself */
	SLOTS = 2 * LEAT_GATHER_PIECES, /* of a hash table of files, a power of two */
};

void
leat_file_gather_forget(const struct leat_object *object)
{
	unsigned char *bytes = atomic_load(&object->open->gathered);

	if (bytes)
		munmap(bytes, (size_t)object->size);
}

static enum leat_status
map(const struct leat_object *object, unsigned char **bytes)
{
	unsigned char *other = NULL;
	enum leat_status status;
	int fd;

	if (object->size == 0 || object->size > SIZE_MAX / 2)
		return LEAT_DATA;
	status = leat_file_open(object, &fd, NULL);
	if (status != LEAT_OK)
		return status;
	*bytes = mmap(NULL, (size_t)object->size, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (*bytes == MAP_FAILED)
		return LEAT_UNSUPPORTED;
	(void)madvise(*bytes, (size_t)object->size, MADV_RANDOM); /* a fault reads one page, not those around it */
	if (!atomic_compare_exchange_strong(&object->open->gathered, &other, *bytes)) {
		munmap(*bytes, (size_t)object->size); /* another thread was faster */
		*bytes = other;
	}
	return LEAT_OK;
}

/* Where a piece is in memory. */
static enum leat_status
find(const struct leat_piece *piece, struct iovec *iov)
{
	const struct leat_object *object = piece->object;
	unsigned char *bytes = atomic_load_explicit(&object->open->gathered, memory_order_acquire);
	enum leat_status status = bytes ? LEAT_OK : map(object, &bytes);

	if (status != LEAT_OK)
		return status;
	if (piece->length > object->size || piece->offset > object->size - piece->length)
		return LEAT_DATA;
	*iov = (struct iovec){bytes + piece->offset, piece->length};
	for (size_t at = 0; at < LINES * LINE && at < piece->length; at += LINE)
		__builtin_prefetch(bytes + piece->offset + at);
	return LEAT_OK;
}

static long
major_faults(void)
{
	struct rusage usage;

	return getrusage(RUSAGE_THREAD, &usage) == 0 ? usage.ru_majflt : 0;
}

static enum leat_status
copy(const struct iovec *from, size_t count, unsigned char *to, size_t bytes, uint64_t *waited_ns)
{
	struct iovec all = {to, bytes};
	long before = major_faults();
	uint64_t begin = leat_now();
	ssize_t copied = process_vm_writev(getpid(), from, count, &all, 1, 0);
	int failure = copied < 0 ? errno : 0;

	if (major_faults() != before)
		*waited_ns = leat_now() - begin;
	if (copied < 0)
		return failure == EFAULT || failure == EINTR || failure == ENOMEM ? LEAT_DATA : LEAT_UNSUPPORTED;
	return (size_t)copied == bytes ? LEAT_OK : LEAT_DATA;
}

/* Checks each file once. */
static enum leat_status
check(const struct leat_piece *piece, size_t count)
{
	const struct leat_open *checked[SLOTS] = {NULL};
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < count && status == LEAT_OK; i++) {
		const struct leat_open *open = piece[i].object->open;
		size_t slot = (size_t)((uintptr_t)open / sizeof(*open)) % SLOTS;

		while (checked[slot] && checked[slot] != open)
			slot = (slot + 1) % SLOTS;
		if (checked[slot])
			continue;
		checked[slot] = open;
		status = leat_file_check_open(piece[i].object, NULL);
	}
	return status;
}

enum leat_status
leat_file_gather(const struct leat_piece *piece, size_t count, unsigned char *to, uint64_t *waited_ns)
{
	struct iovec from[LEAT_GATHER_PIECES];
	enum leat_status status = LEAT_OK;
	size_t bytes = 0;

	*waited_ns = 0;
	for (size_t i = 0; i < count && status == LEAT_OK; i++) {
		status = find(&piece[i], &from[i]);
		bytes += piece[i].length;
	}
	if (status == LEAT_OK)
		status = copy(from, count, to, bytes, waited_ns);
	return status == LEAT_OK ? check(piece, count) : status;
}
