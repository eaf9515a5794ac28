/* node.c - a store on a shared folder, as a machine sees it that runs actions for a build elsewhere
 *
 * It puts blobs and makes views, in the run of that build: what it writes goes below tmp/RUN, which the next build
 * removes if this one is killed. It has no index: LMDB works on one machine only, and nodes never plan. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "cas/inside.h"

/* Unique among machines: process numbers are not. */
static enum leat_status
make_folder(struct leat_cas *cas, const char *run, struct leat_err *err)
{
	char host[256] = "", name[LEAT_CAS_NAME];
	uint8_t digest[LEAT_SHA256_BYTES];

	(void)gethostname(host, sizeof(host) - 1);
	leat_sha256(host, strlen(host), digest);
	snprintf(cas->run, sizeof(cas->run), "%s/%02x%02x%02x%02x-%ld", run, digest[0], digest[1], digest[2], digest[3],
	         (long)getpid());
	snprintf(name, sizeof(name), "tmp/%s", cas->run);
	return mkdirat(cas->folder_fd, name, 0777) == 0 || errno == EEXIST
	               ? LEAT_OK
	               : leat_cas_full(err, cas, errno, "make a folder");
}

enum leat_status
leat_cas_join(struct leat_cas *cas, const char *run, struct leat_err *err)
{
	char name[LEAT_CAS_NAME];

	if (strlen(run) > LEAT_RUN_NAME / 2 || strchr(run, '/') || *run == '.' || *run == '\0')
		return leat_fail(err, LEAT_INVALID, "'%s' is not the name of a run", run);
	snprintf(name, sizeof(name), "runs/%s.open", run);
	cas->run_fd = openat(cas->folder_fd, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (cas->run_fd < 0 && errno == ENOENT)
		return leat_fail(err, LEAT_DATA, "there is no build %s in the store '%s'; has it ended?", run,
		                 cas->folder);
	if (cas->run_fd < 0)
		return leat_fail_errno(err, errno, "cannot open '%s/%s'", cas->folder, name);
	return make_folder(cas, run, err);
}

void
leat_cas_leave(struct leat_cas *cas)
{
	char name[LEAT_CAS_NAME], path[PATH_MAX];

	snprintf(name, sizeof(name), "tmp/%s", cas->run);
	leat_cas_path(cas, name, path);
	leat_remove_tree(path);
	(void)leat_sync_end(cas);
	close(cas->run_fd);
	cas->run_fd = -1;
}
