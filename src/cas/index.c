/* index.c - open the LMDB environment, and look things up in it
 *
 * Look-ups share one read transaction, which is renewed for each: that costs no system call, and shows what other
 * processes wrote. LMDB does not sync: after a power failure the index is made again.
 *
 * A reader of a store whose index cannot be used (missing, of another version, of a run that the machine's stop ended)
 * makes a temporary one elsewhere. It looks every second whether there is another one. */
#include "cas/index.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "cas/index_inside.h"

#define SECOND 1000000000u
enum { READERS = 512, LOCK_BYTES = READERS * 64 + 4096 }; /* a line of the cache for each reader, and a head */

const char *const leat_table_names[LEAT_TABLES] = {
	[LEAT_TABLE_MADE] = "made",     [LEAT_TABLE_STEM] = "stem", [LEAT_TABLE_LAST] = "last",
	[LEAT_TABLE_NUMBER] = "number", [LEAT_TABLE_NEXT] = "next", [LEAT_TABLE_MAKER] = "maker",
	[LEAT_TABLE_HOLDS] = "holds",   [LEAT_TABLE_STAT] = "stat", [LEAT_TABLE_LEARNED] = "learned",
	[LEAT_TABLE_META] = "meta",
};

static void
version_text(char text[64])
{
	snprintf(text, 64, "1 %zu %zu %zu %d", sizeof(struct leat_made_row), sizeof(struct leat_stem_row),
	         sizeof(struct leat_stat_value), __BYTE_ORDER__);
}

enum leat_status
leat_index_fail(struct leat_err *err, const struct leat_cas *cas, int failure, const char *doing)
{
	if (failure > 0)
		return leat_cas_full(err, cas, failure, doing);
	if (failure == MDB_MAP_FULL)
		return leat_fail(err, LEAT_LIMIT, "cannot %s: the index of '%s' is full; 'leat gc' makes room", doing,
		                 cas->folder);
	return leat_fail(err, LEAT_DATA,
	                 "cannot %s: the index of '%s' is damaged (%s); 'leat fsck --repair' makes it again", doing,
	                 cas->folder, mdb_strerror(failure));
}

/* LMDB believes what its first pages say about the file's length, and crashes if they are wrong. */
static bool
is_whole(MDB_env *env, const char *folder, struct stat *file)
{
	char path[PATH_MAX];
	MDB_envinfo info;
	MDB_stat stat_of;

	snprintf(path, sizeof(path), "%s/data.mdb", folder);
	return stat(path, file) == 0 && mdb_env_info(env, &info) == 0 && mdb_env_stat(env, &stat_of) == 0 &&
	       (uint64_t)file->st_size >= ((uint64_t)info.me_last_pgno + 1) * stat_of.ms_psize;
}

/* OPEN expects a complete index, MAKE an empty file. */
enum how { READ, OPEN, MAKE };

static int
open_tables(struct leat_index *index, enum how how)
{
	char version[64];
	MDB_val key = {7, (void *)(uintptr_t) "version"}, value;
	MDB_txn *txn;
	int failure = mdb_txn_begin(index->env, NULL, how == READ ? MDB_RDONLY : 0, &txn);

	if (failure)
		return failure;
	version_text(version);
	for (int i = 0; i < LEAT_TABLES && !failure; i++)
		failure = mdb_dbi_open(txn, leat_table_names[i], how == MAKE ? MDB_CREATE : 0, &index->table[i]);
	if (!failure) {
		failure = mdb_get(txn, index->table[LEAT_TABLE_META], &key, &value);
		if (failure == MDB_NOTFOUND && how == MAKE) {
			value = (MDB_val){strlen(version), version};
			failure = mdb_put(txn, index->table[LEAT_TABLE_META], &key, &value, 0);
		} else if (!failure &&
		           (value.mv_size != strlen(version) || memcmp(value.mv_data, version, value.mv_size))) {
			failure = MDB_VERSION_MISMATCH;
		}
	}
	if (failure) {
		mdb_txn_abort(txn);
		return failure;
	}
	return mdb_txn_commit(txn);
}

static void
close_env(struct leat_index *index)
{
	if (index->read)
		mdb_txn_abort(index->read);
	if (index->env)
		mdb_env_close(index->env);
	index->read = NULL;
	index->env = NULL;
}

/* LMDB maps lock.mdb and writes to the map. Where the disk has no room for that, the kernel ends the process; so room
 * is reserved first. Returns 0 or an errno. */
static int
reserve_lock(const char *folder)
{
	char path[PATH_MAX];
	int fd, failure = 0;

	if (snprintf(path, sizeof(path), "%s/lock.mdb", folder) >= (int)sizeof(path))
		return ENAMETOOLONG;
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0)
		return errno;
	if (fallocate(fd, FALLOC_FL_KEEP_SIZE, 0, LOCK_BYTES) != 0 && (errno == ENOSPC || errno == EDQUOT))
		failure = errno; /* file systems that cannot reserve are as good as they are */
	close(fd);
	return failure;
}

/* Opens the environment in `folder`. Returns 0 or LMDB's error, after which nothing is open. */
static int
open_env(struct leat_index *index, const char *folder, enum how how)
{
	unsigned flags = MDB_NOTLS | MDB_NOSYNC | (how == READ ? MDB_RDONLY : 0);
	struct stat file;
	int dead, failure = how == READ ? 0 : reserve_lock(folder);

	if (!failure)
		failure = mdb_env_create(&index->env);
	if (failure)
		return failure;
	mdb_env_set_maxdbs(index->env, LEAT_TABLES);
	mdb_env_set_maxreaders(index->env, READERS);
	mdb_env_set_mapsize(index->env, LEAT_INDEX_MAP);
	failure = mdb_env_open(index->env, folder, flags, 0666);
	if (!failure && !is_whole(index->env, folder, &file))
		failure = MDB_CORRUPTED;
	if (!failure)
		mdb_reader_check(index->env, &dead); /* of processes that were killed: they would keep old pages */
	if (!failure)
		failure = open_tables(index, how);
	if (!failure)
		failure = mdb_txn_begin(index->env, NULL, MDB_RDONLY, &index->read);
	if (failure) {
		close_env(index);
		return failure;
	}
	mdb_txn_reset(index->read);
	index->device = file.st_dev;
	index->inode = file.st_ino;
	return 0;
}

static void
real_folder(const struct leat_cas *cas, char folder[PATH_MAX])
{
	leat_cas_path(cas, "index", folder);
}

static bool
is_distrusted(const struct leat_cas *cas)
{
	return faccessat(cas->folder_fd, "index/stale", F_OK, 0) == 0;
}

enum leat_status
leat_index_distrust(struct leat_cas *cas, struct leat_err *err)
{
	int fd = openat(cas->folder_fd, "index/stale", O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
	enum leat_status status = LEAT_OK;

	if (fd < 0 || fsync(fd) != 0)
		status = leat_cas_full(err, cas, errno, "change the index");
	if (fd >= 0)
		close(fd);
	return status;
}

void
leat_index_trust(struct leat_cas *cas)
{
	if (syncfs(cas->folder_fd) == 0)
		unlinkat(cas->folder_fd, "index/stale", 0);
}

void
leat_index_remove(struct leat_cas *cas)
{
	unlinkat(cas->folder_fd, "index/data.mdb", 0);
	unlinkat(cas->folder_fd, "index/lock.mdb", 0);
}

/* Asked only where there is a reason for doubt. */
static bool
is_damaged(const struct leat_cas *cas, const char *folder)
{
	return cas->doubts_index && !leat_index_is_sound(folder);
}

/* Only this process uses the store: what cannot be opened is made again. */
static enum leat_status
open_or_make(struct leat_cas *cas, const char *folder, struct leat_err *err)
{
	struct leat_index *index = cas->index;
	struct stat file;
	bool exists = fstatat(cas->folder_fd, "index/data.mdb", &file, 0) == 0;
	bool may_open = exists && !is_distrusted(cas) && !is_damaged(cas, folder);
	int failure = may_open ? open_env(index, folder, OPEN) : MDB_INVALID;
	enum leat_status status;

	if (!failure)
		return LEAT_OK;
	index->is_remade = exists;
	if (failure > 0)
		return leat_index_fail(err, cas, failure, "open the index");
	status = leat_index_distrust(cas, err);
	if (status != LEAT_OK)
		return status;
	leat_index_remove(cas);
	failure = open_env(index, folder, MAKE);
	if (failure)
		return leat_index_fail(err, cas, failure, "make the index");
	status = leat_index_fill(cas, err);
	if (status == LEAT_OK)
		leat_index_trust(cas);
	return status;
}

static enum leat_status
make_temporary(struct leat_cas *cas, struct leat_err *err)
{
	const char *temp = getenv("TMPDIR");
	char folder[PATH_MAX - 16], file[PATH_MAX];
	int failure;

	snprintf(folder, sizeof(folder), "%s/leat-index-XXXXXX", temp && *temp ? temp : "/tmp");
	if (!mkdtemp(folder))
		return leat_fail_errno(err, errno, "cannot make a folder '%s' for an index of '%s'", folder,
		                       cas->folder);
	failure = open_env(cas->index, folder, MAKE);
	for (int i = 0; i < 2; i++) { /* while they are open, they stay */
		snprintf(file, sizeof(file), "%s/%s", folder, i ? "lock.mdb" : "data.mdb");
		unlink(file);
	}
	rmdir(folder);
	if (failure)
		return leat_index_fail(err, cas, failure, "make a temporary index");
	cas->index->is_temporary = true;
	return leat_index_fill(cas, err);
}

static enum leat_status
open_to_read(struct leat_cas *cas, const char *folder, struct leat_err *err)
{
	cas->index->is_temporary = false;
	cas->index->checked_ns = leat_now();
	if (!is_distrusted(cas) && !leat_runs_suspect(cas) && !is_damaged(cas, folder) &&
	    open_env(cas->index, folder, READ) == 0)
		return LEAT_OK;
	return make_temporary(cas, err);
}

enum leat_status
leat_index_open(struct leat_cas *cas, struct leat_err *err)
{
	struct leat_index *index = leat_alloc(cas->mem, sizeof(*index));
	char folder[PATH_MAX];
	int failure;

	if (!index)
		return leat_fail_mem(err, cas->mem, sizeof(*index), "the index");
	cas->index = index;
	index->mem = cas->mem;
	pthread_mutex_init(&index->lock, NULL);
	pthread_mutex_init(&index->waiting_lock, NULL);
	real_folder(cas, folder);
	if (cas->mode == LEAT_CAS_READ)
		return open_to_read(cas, folder, err);
	if (cas->alone)
		return open_or_make(cas, folder, err);
	failure = is_damaged(cas, folder) ? MDB_CORRUPTED : open_env(index, folder, OPEN);
	return failure ? leat_index_fail(err, cas, failure, "open the index") : LEAT_OK;
}

enum leat_status
leat_index_remake(struct leat_cas *cas, struct leat_err *err)
{
	enum leat_status status = leat_index_distrust(cas, err);
	char folder[PATH_MAX];

	if (status != LEAT_OK)
		return status;
	close_env(cas->index);
	real_folder(cas, folder);
	return open_or_make(cas, folder, err);
}

void
leat_index_close(struct leat_cas *cas)
{
	if (!cas->index)
		return;
	close_env(cas->index);
	pthread_mutex_destroy(&cas->index->lock);
	pthread_mutex_destroy(&cas->index->waiting_lock);
	leat_free(cas->mem, cas->index);
	cas->index = NULL;
}

/* A reader's index may have been made again by a build. Called with the lock. */
static enum leat_status
follow(struct leat_cas *cas, struct leat_err *err)
{
	struct leat_index *index = cas->index;
	char folder[PATH_MAX];
	struct stat file;
	bool exists;

	if (leat_now() - index->checked_ns < SECOND)
		return LEAT_OK;
	index->checked_ns = leat_now();
	exists = fstatat(cas->folder_fd, "index/data.mdb", &file, 0) == 0;
	if (!exists || (file.st_ino == index->inode && file.st_dev == index->device) ||
	    (index->is_temporary && (is_distrusted(cas) || leat_runs_suspect(cas))))
		return LEAT_OK;
	close_env(index);
	real_folder(cas, folder);
	return open_to_read(cas, folder, err);
}

bool
leat_index_look(struct leat_cas *cas, struct leat_err *err)
{
	struct leat_index *index = cas->index;
	int failure = 0;

	pthread_mutex_lock(&index->lock);
	if (cas->mode == LEAT_CAS_WRITE || follow(cas, err) == LEAT_OK) {
		failure = index->read ? mdb_txn_renew(index->read) : MDB_INVALID;
		if (!failure)
			return true;
		leat_index_fail(err, cas, failure, "read the index");
	}
	pthread_mutex_unlock(&index->lock);
	return false;
}

void
leat_index_looked(struct leat_cas *cas)
{
	mdb_txn_reset(cas->index->read);
	pthread_mutex_unlock(&cas->index->lock);
}

int
leat_index_get(struct leat_index *index, enum leat_table table, const void *key, size_t len, MDB_val *value)
{
	MDB_val name = {len, (void *)(uintptr_t)key};

	return mdb_get(index->read, index->table[table], &name, value);
}
