/* fetched.c - copies of remote objects in the store, and which version each is of
 *
 * A copy is a blob like any other. What version of an object it is of is kept in the stat cache of the index, whose
 * keys are otherwise devices and inodes: 128 bits of a hash cannot be mistaken for those. If the index is lost, objects
 * are fetched again. No result refers to a copy, so gc goes by its ctime: each build that uses it sets it, once a day.
 */
#include <errno.h>
#include <fcntl.h>
#include <time.h>
#include <unistd.h>

#include "cas/inside.h"

enum { DAY_S = 86400 };

static struct leat_stat_key
key_of(const struct leat_fetched *object)
{
	return (struct leat_stat_key){object->name[0], object->name[1]};
}

bool
leat_cas_fetched(struct leat_cas *cas, const struct leat_fetched *object, struct leat_content *content)
{
	const struct leat_stat_key key = key_of(object);
	struct leat_stat_value kept;

	if (!leat_index_stat(cas, &key, &kept) || kept.size != object->size ||
	    (uint64_t)kept.mtime_ns != object->version[0] || (uint64_t)kept.ctime_ns != object->version[1])
		return false;
	*content = (struct leat_content){.kind = LEAT_CONTENT_FILE, .bytes = kept.size, .digest = kept.digest};
	return true;
}

void
leat_cas_set_fetched(struct leat_cas *cas, const struct leat_fetched *object, const struct leat_digest *digest)
{
	const struct leat_stat_key key = key_of(object);
	const struct leat_stat_value value = {.size = object->size,
	                                      .mtime_ns = (int64_t)object->version[0],
	                                      .ctime_ns = (int64_t)object->version[1],
	                                      .digest = *digest};

	leat_index_stat_set(cas, &key, &value);
	leat_index_flush(cas); /* a build that is killed now need not fetch it again */
}

enum leat_status
leat_cas_adopt(struct leat_cas *cas, const char *path, const struct leat_content *content, struct leat_err *err)
{
	enum leat_status status = leat_cas_need_run(cas, err);

	return status == LEAT_OK ? leat_cas_place_blob(cas, AT_FDCWD, path, &content->digest, content->bytes, err)
	                         : status;
}

void
leat_cas_touch(struct leat_cas *cas, const struct leat_digest *digest)
{
	const struct timespec times[] = {{.tv_nsec = UTIME_NOW}, {.tv_nsec = UTIME_OMIT}};
	char name[LEAT_CAS_NAME];
	struct stat blob;

	leat_cas_name("cas", digest, name);
	if (fstatat(cas->folder_fd, name, &blob, AT_SYMLINK_NOFOLLOW) == 0 && time(NULL) - blob.st_ctime > DAY_S)
		utimensat(cas->folder_fd, name, times, AT_SYMLINK_NOFOLLOW);
}
