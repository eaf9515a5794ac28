/* credentials_keeper.c - see credentials_keeper.h */
#include "store/credentials_keeper.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/str.h"
#include "base/threads.h"

enum {
	MEMORY = 16 << 20, /* for finding, all keepers together */
	POLL_MS = 20,      /* how soon leat_keeper_wait notices an interrupt */
};

static const int64_t second = 1000000000, most_early = 300 * 1000000000ll;
static const uint64_t first_pause = 1000000000, longest_pause = 30 * 1000000000ull;

struct leat_keeper {
	struct leat_keeper *next;       /* under all.lock */
	unsigned refs;                  /* likewise: stores, and the thread that finds */
	uint8_t key[LEAT_SHA256_BYTES]; /* of the settings and the environment */
	struct leat_storage storage;
	int pid;
	atomic_bool finding; /* a thread is at it */
	pthread_rwlock_t lock;
	/* Under the lock: */
	bool has;
	unsigned version; /* how often credentials were found */
	struct leat_credentials credentials;
	int64_t refresh_ns, invalid_ns; /* since 1970: when to find new ones, and when these have expired */
	unsigned failures;              /* since credentials were last found */
	uint64_t retry_ns;              /* monotonic: not before */
	struct leat_err err;            /* of the last failure */
};

/* Of this process: credentials belong to it, not to a feed. */
static struct {
	pthread_mutex_t lock;
	pthread_cond_t found; /* or not */
	pthread_once_t once;
	struct leat_mem mem;
	struct leat_keeper *keeper;
} all = {.lock = PTHREAD_MUTEX_INITIALIZER, .found = PTHREAD_COND_INITIALIZER, .once = PTHREAD_ONCE_INIT};

static int64_t
wall_clock(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return (int64_t)t.tv_sec * second + t.tv_nsec;
}

/* ---- the process ---- */

static void
before_fork(void)
{
	pthread_mutex_lock(&all.lock);
}

static void
after_fork(void)
{
	pthread_mutex_unlock(&all.lock);
}

/* The threads of the parent's keepers are not here. */
static void
in_child(void)
{
	pthread_mutex_init(&all.lock, NULL);
	pthread_cond_init(&all.found, NULL);
	all.keeper = NULL;
}

static void
begin(void)
{
	leat_mem_init(&all.mem, MEMORY);
	pthread_atfork(before_fork, after_fork, in_child);
}

/* Everything that decides which credentials are found: a few settings, and variables with such names. */
static bool
make_key(const struct leat_storage *storage, uint8_t key[LEAT_SHA256_BYTES])
{
	struct leat_str text;
	bool made;

	leat_str_init(&text, &all.mem, MEMORY / 4);
	for (char **entry = environ; entry && *entry; entry++)
		if (strncmp(*entry, "AWS_", 4) == 0 || strncmp(*entry, "HOME=", 5) == 0)
			leat_str_addf(&text, "%s\n", *entry);
	leat_str_addf(&text, "%u %d %s\n%s\n%s\n%s", (unsigned)storage->given, storage->anonymous, storage->profile,
	              storage->region, storage->ca_bundle, storage->proxy);
	made = !text.failed && leat_sha256(leat_str_text(&text), text.len, key) == 0;
	if (text.text)
		explicit_bzero(text.text, text.len);
	leat_str_free(&text);
	return made;
}

/* ---- finding ---- */

static void
unref(struct leat_keeper *keeper)
{
	struct leat_keeper **at = &all.keeper;
	bool last;

	pthread_mutex_lock(&all.lock);
	last = --keeper->refs == 0;
	while (last && *at && *at != keeper)
		at = &(*at)->next;
	if (last && *at)
		*at = keeper->next;
	pthread_cond_broadcast(&all.found);
	pthread_mutex_unlock(&all.lock);
	if (!last)
		return;
	leat_credentials_forget(&keeper->credentials);
	pthread_rwlock_destroy(&keeper->lock);
	leat_free(&all.mem, keeper);
}

/* In [0, limit): processes that were started together do not ask together. */
static int64_t
random_below(const struct leat_keeper *keeper, int64_t limit)
{
	return limit > 0 ? (int64_t)(leat_mix64(leat_now() ^ (uint64_t)keeper->pid << 32) % (uint64_t)limit) : 0;
}

/* Under the lock. If new credentials have expired already, our clock may be wrong: the server decides, and others are
 * looked for soon. */
static void
set_times(struct leat_keeper *keeper)
{
	int64_t now = wall_clock(), expires = keeper->credentials.expires * second, early = (expires - now) / 5;

	keeper->refresh_ns = keeper->invalid_ns = INT64_MAX;
	if (!keeper->credentials.expires)
		return;
	if (expires <= now) {
		keeper->refresh_ns = now + (int64_t)longest_pause;
		return;
	}
	if (early > most_early)
		early = most_early;
	keeper->invalid_ns = expires;
	keeper->refresh_ns = expires - early - random_below(keeper, early / 2);
}

static void
note_failure(struct leat_keeper *keeper, const struct leat_err *err)
{
	uint64_t pause = keeper->failures < 5 ? first_pause << keeper->failures : longest_pause;

	keeper->err = *err;
	keeper->failures++;
	keeper->retry_ns = leat_now() + pause;
}

static void
find(void *arg)
{
	struct leat_keeper *keeper = arg;
	struct leat_credentials found;
	struct leat_err err;
	enum leat_status status;

	leat_err_clear(&err);
	status = leat_credentials_find(&found, &keeper->storage, &all.mem, &err);
	pthread_rwlock_wrlock(&keeper->lock);
	if (status == LEAT_OK) {
		keeper->credentials = found;
		keeper->has = true;
		keeper->version++;
		keeper->failures = 0;
		keeper->retry_ns = 0;
		set_times(keeper);
	} else {
		note_failure(keeper, &err);
	}
	pthread_rwlock_unlock(&keeper->lock);
	leat_credentials_forget(&found);
	atomic_store(&keeper->finding, false);
	unref(keeper);
}

/* Unless a thread is at it already. */
static void
start_finding(struct leat_keeper *keeper)
{
	struct leat_err err;

	if (atomic_exchange(&keeper->finding, true))
		return;
	pthread_mutex_lock(&all.lock);
	keeper->refs++;
	pthread_mutex_unlock(&all.lock);
	leat_err_clear(&err);
	if (leat_thread_detach("leat-keys", find, keeper, &err) == LEAT_OK)
		return;
	pthread_rwlock_wrlock(&keeper->lock);
	note_failure(keeper, &err);
	pthread_rwlock_unlock(&keeper->lock);
	atomic_store(&keeper->finding, false);
	unref(keeper);
}

/* ---- opening and closing ---- */

static struct leat_keeper *
find_or_make(const struct leat_storage *storage, const uint8_t key[LEAT_SHA256_BYTES])
{
	struct leat_keeper *keeper;

	pthread_mutex_lock(&all.lock);
	for (keeper = all.keeper; keeper && memcmp(keeper->key, key, LEAT_SHA256_BYTES) != 0;)
		keeper = keeper->next;
	if (!keeper && (keeper = leat_alloc(&all.mem, sizeof(*keeper))) != NULL) {
		memcpy(keeper->key, key, LEAT_SHA256_BYTES);
		keeper->storage = *storage;
		keeper->pid = getpid();
		pthread_rwlock_init(&keeper->lock, NULL);
		keeper->next = all.keeper;
		all.keeper = keeper;
	}
	if (keeper)
		keeper->refs++;
	pthread_mutex_unlock(&all.lock);
	return keeper;
}

enum leat_status
leat_keeper_open(struct leat_keeper **keeper, const struct leat_storage *storage, struct leat_err *err)
{
	uint8_t key[LEAT_SHA256_BYTES];
	const struct leat_credentials *credentials;
	unsigned version;

	pthread_once(&all.once, begin);
	*keeper = make_key(storage, key) ? find_or_make(storage, key) : NULL;
	if (!*keeper)
		return leat_fail_mem(err, &all.mem, sizeof(**keeper), "credentials");
	if (leat_keeper_lock(*keeper, &credentials, &version, NULL) == LEAT_OK)
		leat_keeper_unlock(*keeper);
	return LEAT_OK;
}

void
leat_keeper_close(struct leat_keeper *keeper)
{
	if (keeper && keeper->pid == getpid())
		unref(keeper);
}

/* ---- using them ---- */

/* Under the lock. LEAT_AGAIN: perhaps soon. */
static enum leat_status
explain(const struct leat_keeper *keeper, bool finding, struct leat_err *err)
{
	if (!keeper->version && keeper->failures && !finding)
		return leat_fail_as(err, &keeper->err);
	if (keeper->failures)
		leat_fail(err, LEAT_AGAIN, "the credentials have expired; new ones: %s", keeper->err.text);
	else
		leat_fail(err, LEAT_AGAIN, "finding credentials takes too long");
	return LEAT_AGAIN;
}

enum leat_status
leat_keeper_lock(struct leat_keeper *keeper, const struct leat_credentials **credentials, unsigned *version,
                 struct leat_err *err)
{
	int64_t now = wall_clock();
	bool usable, due, finding;
	enum leat_status status;

	pthread_rwlock_rdlock(&keeper->lock);
	usable = keeper->has && now < keeper->invalid_ns;
	due = (!keeper->has || now >= keeper->refresh_ns) && leat_now() >= keeper->retry_ns;
	if (due) {
		pthread_rwlock_unlock(&keeper->lock);
		start_finding(keeper);
		pthread_rwlock_rdlock(&keeper->lock);
		usable = keeper->has && now < keeper->invalid_ns;
	}
	*credentials = &keeper->credentials;
	*version = keeper->version;
	if (usable)
		return LEAT_OK;
	finding = due || atomic_load(&keeper->finding);
	status = explain(keeper, finding, err);
	pthread_rwlock_unlock(&keeper->lock);
	return status;
}

void
leat_keeper_unlock(struct leat_keeper *keeper)
{
	pthread_rwlock_unlock(&keeper->lock);
}

void
leat_keeper_drop(struct leat_keeper *keeper, unsigned version)
{
	pthread_rwlock_wrlock(&keeper->lock);
	if (keeper->version == version)
		keeper->has = false;
	pthread_rwlock_unlock(&keeper->lock);
}

static void
wait_a_little(void)
{
	struct timespec until;

	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_nsec += POLL_MS * 1000000;
	if (until.tv_nsec >= second) {
		until.tv_sec++;
		until.tv_nsec -= second;
	}
	pthread_mutex_lock(&all.lock);
	pthread_cond_timedwait(&all.found, &all.lock, &until);
	pthread_mutex_unlock(&all.lock);
}

enum leat_status
leat_keeper_wait(struct leat_keeper *keeper, const atomic_bool *interrupted, struct leat_err *err)
{
	const struct leat_credentials *credentials;
	unsigned version;
	enum leat_status status;

	if (keeper->pid != getpid())
		return leat_fail(err, LEAT_INVALID,
		                 "remote data was opened in another process; open the feed after the fork");
	for (;;) {
		if (interrupted && atomic_load(interrupted))
			return leat_fail(err, LEAT_CANCELLED, "interrupted while looking for credentials");
		leat_err_clear(err);
		status = leat_keeper_lock(keeper, &credentials, &version, err);
		if (status == LEAT_AGAIN && version == 0)
			wait_a_little();
		else
			break;
	}
	if (status == LEAT_OK)
		leat_keeper_unlock(keeper);
	if (status != LEAT_AGAIN)
		return status;
	leat_err_clear(err); /* they have expired: requests wait, as long as for a server */
	return LEAT_OK;
}
