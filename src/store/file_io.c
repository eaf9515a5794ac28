/* file_io.c - local files: asynchronous reads on a pool of I/O threads
 *
 * The threads start with the first read. A read that is cancelled while still queued never
 * reaches the kernel.
 *
 * Threads: any may submit and cancel. The lock guards the queue of reads. */
#include "store/file.h"

#include "base/clock.h"

static void
finish_read(struct leat_read *read, enum leat_status status, uint64_t begin)
{
	read->status = status;
	read->took_ns = leat_now() - begin;
	read->done(read);
}

static void
do_read(struct leat_read *read, unsigned thread)
{
	uint64_t begin = leat_now();
	size_t got;

	read->thread = thread;
	if (atomic_load(&read->cancelled))
		finish_read(read, LEAT_AGAIN, begin);
	else if (read->work)
		finish_read(read, read->work(read), begin);
	else
		finish_read(read, leat_file_read(&read->object, read->offset, read->iov, read->iovs, &got, read->err),
		            begin);
}

static struct leat_read *
take_read(struct leat_file_io *io)
{
	struct leat_read *read;

	pthread_mutex_lock(&io->lock);
	while (!io->first && !io->stop)
		pthread_cond_wait(&io->work, &io->lock);
	read = io->first;
	if (read)
		io->first = read->next;
	if (!io->first)
		io->last = &io->first;
	pthread_mutex_unlock(&io->lock);
	return read;
}

static void
io_body(void *arg, unsigned i)
{
	struct leat_file_store *store = arg;
	struct leat_read *read;

	while ((read = take_read(&store->io)) != NULL)
		do_read(read, i);
}

void
leat_file_io_open(struct leat_file_store *store)
{
	pthread_mutex_init(&store->io.lock, NULL);
	pthread_cond_init(&store->io.work, NULL);
	store->io.last = &store->io.first;
}

void
leat_file_io_close(struct leat_file_store *store)
{
	struct leat_file_io *io = &store->io;

	pthread_mutex_lock(&io->lock);
	io->stop = true;
	pthread_cond_broadcast(&io->work);
	pthread_mutex_unlock(&io->lock);
	leat_threads_join(&io->threads);
	pthread_cond_destroy(&io->work);
	pthread_mutex_destroy(&io->lock);
}

/* Under the lock; new threads block on it until the caller releases it. */
static enum leat_status
start_threads(struct leat_file_store *store)
{
	struct leat_file_io *io = &store->io;
	enum leat_status status;

	if (io->started)
		return io->threads.count ? LEAT_OK : LEAT_AGAIN;
	io->started = true;
	status = leat_threads_start(&io->threads, store->base.mem, LEAT_FILE_IO_THREADS, "leat-io", io_body, store,
	                            NULL);
	return status == LEAT_OK ? LEAT_OK : LEAT_AGAIN;
}

enum leat_status
leat_file_submit(struct leat_store *base, struct leat_read *read)
{
	struct leat_file_store *store = leat_file_store_of(base);
	struct leat_file_io *io = &store->io;
	enum leat_status status;

	read->next = NULL;
	pthread_mutex_lock(&io->lock);
	status = start_threads(store);
	if (status == LEAT_OK) {
		*io->last = read;
		io->last = &read->next;
		pthread_cond_signal(&io->work);
	}
	pthread_mutex_unlock(&io->lock);
	return status;
}

void
leat_file_cancel(struct leat_store *store, struct leat_read *read)
{
	(void)store;
	atomic_store(&read->cancelled, true);
}
