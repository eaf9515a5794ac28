/* index_check.c - is LMDB able to read this index?
 *
 * LMDB trusts its file: a few wrong bytes, of a failing disk say, end the process with SIGSEGV or SIGBUS, or let it
 * loop. So a child process reads all of it first. Whatever happens there, the parent only learns that it went wrong,
 * and makes the index again from the manifests. That costs a fork and a pass over the file; it is done after a run that
 * died, and by fsck. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cas/index_inside.h"

enum { MOST_SECONDS = 300, LONGEST_KEY = 511 };

struct reader {
	MDB_env *env;
	MDB_txn *txn;
	size_t left;      /* rows that fit into the file: a loop has more */
	size_t last_page; /* of the file */
	unsigned char sum;
};

static void
touch(struct reader *r, const MDB_val *value)
{
	for (size_t i = 0; i < value->mv_size; i++)
		r->sum ^= ((const volatile unsigned char *)value->mv_data)[i];
}

/* A row of the list of free pages: their count, and their numbers. */
static bool
is_free_list(const struct reader *r, const MDB_val *value)
{
	size_t count, page;

	if (value->mv_size < sizeof(count))
		return false;
	memcpy(&count, value->mv_data, sizeof(count));
	if (count >= value->mv_size / sizeof(page))
		return false;
	for (size_t i = 1; i <= count; i++) {
		memcpy(&page, (const char *)value->mv_data + i * sizeof(page), sizeof(page));
		if (page < 2 || page > r->last_page)
			return false;
	}
	return true;
}

/* Rows are in order: else some are not found. */
static bool
read_table(struct reader *r, MDB_dbi table, bool is_free)
{
	unsigned char last[LONGEST_KEY];
	MDB_val key, value, before = {0, last};
	MDB_cursor *cursor;
	int failure = mdb_cursor_open(r->txn, table, &cursor);

	if (failure)
		return false;
	while ((failure = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
		if (r->left-- == 0 || key.mv_size > sizeof(last) ||
		    (before.mv_size > 0 && mdb_cmp(r->txn, table, &before, &key) >= 0))
			return false;
		touch(r, &key);
		touch(r, &value);
		if (is_free && !is_free_list(r, &value))
			return false;
		memcpy(last, key.mv_data, key.mv_size);
		before.mv_size = key.mv_size;
	}
	return failure == MDB_NOTFOUND;
}

static bool
read_all(const char *folder, size_t bytes)
{
	struct reader r = {.left = bytes / 8};
	MDB_envinfo info;
	MDB_stat pages;

	if (mdb_env_create(&r.env) || mdb_env_set_maxdbs(r.env, LEAT_TABLES) ||
	    mdb_env_set_mapsize(r.env, LEAT_INDEX_MAP) ||
	    mdb_env_open(r.env, folder, MDB_RDONLY | MDB_NOLOCK | MDB_NOTLS, 0) || mdb_env_info(r.env, &info) ||
	    mdb_env_stat(r.env, &pages) || pages.ms_psize == 0)
		return false;
	r.last_page = info.me_last_pgno;
	if (r.last_page >= bytes / pages.ms_psize || mdb_txn_begin(r.env, NULL, MDB_RDONLY, &r.txn) ||
	    !read_table(&r, 0, true))
		return false;
	for (int i = 0; i < LEAT_TABLES; i++) {
		MDB_dbi table;

		if (mdb_dbi_open(r.txn, leat_table_names[i], 0, &table) || !read_table(&r, table, false))
			return false;
	}
	return true;
}

/* Ends without a trace, whatever the index is like: no core, no handler, no message of LMDB's. */
static void __attribute__((noreturn)) check_in_child(const char *folder, size_t bytes)
{
	static const int fatal[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL, SIGXCPU};
	int nowhere = open("/dev/null", O_WRONLY | O_CLOEXEC);
	sigset_t none;

	for (size_t i = 0; i < sizeof(fatal) / sizeof(*fatal); i++)
		signal(fatal[i], SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
	setrlimit(RLIMIT_CPU, &(struct rlimit){MOST_SECONDS, MOST_SECONDS});
	if (nowhere >= 0)
		dup2(nowhere, STDERR_FILENO);
	_exit(read_all(folder, bytes) ? 0 : 1);
}

bool
leat_index_is_sound(const char *folder)
{
	char path[PATH_MAX];
	struct stat file;
	int status = 0;
	pid_t child;

	if (snprintf(path, sizeof(path), "%s/data.mdb", folder) >= (int)sizeof(path) || stat(path, &file) != 0)
		return false;
	child = fork();
	if (child == 0)
		check_in_child(folder, (size_t)file.st_size);
	if (child < 0)
		return true; /* nobody can tell */
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return true;
	return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}
