/* staging_fetch.c - copy remote objects into the content store
 *
 * A large object is read in parts, several at a time, that are hashed and written in their order. All files together
 * have a fixed number of parts in flight: a file that has none waits for one, others take what is left, so every file
 * gets on, and memory is bounded. The copy gets its name once it is complete and on disk; what a killed build leaves
 * is below tmp, which the next build empties. Each read names the version: if the object was replaced meanwhile, it
 * is looked up again, and fetched from its beginning. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/hash.h"
#include "base/size.h"
#include "step/staging_inside.h"

enum { TRIES = 5, MOST_PARTS = 8, POLL_NS = 50 * 1000 * 1000 };

/* ---- what is known ---- */

bool
leat_digest_is_stand_in(const struct leat_digest *digest)
{
	static const uint8_t zero[8];

	return memcmp(digest->byte, zero, sizeof(zero)) == 0;
}

void
leat_digest_make_stand_in(struct leat_digest *digest)
{
	memset(digest->byte, 0, 8);
}

static void
hash_name(const struct leat_staging *s, const struct leat_remote_file *file, uint64_t name[2])
{
	uint8_t digest[LEAT_SHA256_BYTES];
	struct leat_str text;

	leat_str_init(&text, s->mem, LEAT_URI + LEAT_SETTING);
	leat_str_addf(&text, "%s\n%s", s->storage.endpoint, file->uri);
	leat_sha256(leat_str_text(&text), text.len, digest);
	leat_str_free(&text);
	memcpy(name, digest, 16);
}

/* False: the server names no version, so nothing is known about the object. */
static bool
identify(const struct leat_staging *s, const struct leat_remote_file *file, struct leat_fetched *id)
{
	uint8_t digest[LEAT_SHA256_BYTES];

	leat_sha256(file->version.bytes, file->version.len, digest);
	*id = (struct leat_fetched){.size = file->size};
	hash_name(s, file, id->name);
	memcpy(id->version, digest, sizeof(id->version));
	return file->version.len > 0;
}

static bool
is_known(const struct leat_staging *s, struct leat_cas *cas, const struct leat_remote_file *file,
         struct leat_content *content)
{
	struct leat_fetched id;

	return identify(s, file, &id) && leat_cas_fetched(cas, &id, content);
}

static void
stand_in(const struct leat_remote_file *file, struct leat_content *content)
{
	char text[LEAT_URI + 2 * LEAT_VERSION_BYTES];
	int len = snprintf(text, LEAT_URI, "%s", file->uri);

	len = len < LEAT_URI ? len : LEAT_URI - 1;
	memcpy(text + len, file->version.bytes, file->version.len);
	*content = (struct leat_content){.kind = LEAT_CONTENT_FILE, .bytes = file->size};
	leat_sha256(text, (size_t)len + file->version.len, content->digest.byte);
	leat_digest_make_stand_in(&content->digest);
}

/* ---- parts ---- */

/* With `wait`, until there is one. */
static bool
take_part(struct leat_staging *s, bool wait)
{
	bool taken;

	pthread_mutex_lock(&s->lock);
	while (wait && s->parts == LEAT_PARTS)
		pthread_cond_wait(&s->changed, &s->lock);
	taken = s->parts < LEAT_PARTS;
	s->parts += taken;
	pthread_mutex_unlock(&s->lock);
	return taken;
}

static void
give_part(struct leat_staging *s)
{
	pthread_mutex_lock(&s->lock);
	s->parts--;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

struct part {
	struct leat_waiter waiter;
	struct leat_err err;
	char *bytes;
	size_t len;
};

struct fetch {
	struct leat_staging *s;
	const struct leat_object *object;
	struct leat_sha256 *sha;
	int fd;
	const char *path; /* for messages */
	struct part part[MOST_PARTS];
	size_t first, count; /* those in flight */
	uint64_t next;       /* offset of the next one */
	uint64_t done;
};

static struct leat_hashing *
watched(struct leat_staging *s)
{
	struct leat_hashing *hashing;

	pthread_mutex_lock(&s->lock);
	hashing = s->hashing;
	pthread_mutex_unlock(&s->lock);
	return hashing;
}

static enum leat_status
start_part(struct fetch *f, struct leat_err *err)
{
	struct part *part = &f->part[(f->first + f->count) % MOST_PARTS];
	uint64_t left = f->object->size - f->next;
	enum leat_status status;

	part->len = left < LEAT_PART ? (size_t)left : LEAT_PART;
	part->bytes = leat_realloc_raw(f->s->mem, NULL, part->len);
	if (!part->bytes)
		return leat_fail_mem(err, f->s->mem, part->len, "a part of a remote file");
	leat_err_clear(&part->err);
	status = leat_wait_start(&part->waiter, f->object, f->next, part->bytes, part->len, &part->err);
	if (status != LEAT_OK) {
		leat_free(f->s->mem, part->bytes);
		return leat_fail_as(err, &part->err);
	}
	f->next += part->len;
	f->count++;
	return LEAT_OK;
}

static enum leat_status
start_parts(struct fetch *f, struct leat_err *err)
{
	while (f->count < MOST_PARTS && f->next < f->object->size && take_part(f->s, f->count == 0)) {
		enum leat_status status = start_part(f, err);

		if (status != LEAT_OK) {
			give_part(f->s);
			return status;
		}
	}
	return LEAT_OK;
}

static enum leat_status
write_all(struct fetch *f, const char *bytes, size_t len, struct leat_err *err)
{
	while (len > 0) {
		ssize_t put = write(f->fd, bytes, len);

		if (put < 0 && errno != EINTR)
			return leat_fail_errno(err, errno, "cannot write a copy of '%s' to '%s'", f->object->uri,
			                       f->path);
		bytes += put > 0 ? put : 0;
		len -= put > 0 ? (size_t)put : 0;
	}
	return LEAT_OK;
}

/* The oldest one. `keep`: its bytes are wanted. */
static enum leat_status
end_part(struct fetch *f, bool keep, struct leat_err *err)
{
	struct part *part = &f->part[f->first];
	enum leat_status status = leat_wait_end(&part->waiter, &part->err);
	struct leat_hashing *hashing = watched(f->s);

	f->first = (f->first + 1) % MOST_PARTS;
	f->count--;
	if (status != LEAT_OK && keep)
		status = status == LEAT_CANCELLED || status == LEAT_AGAIN ? LEAT_END : leat_fail_as(err, &part->err);
	if (status == LEAT_OK && keep) {
		leat_sha256_add(f->sha, part->bytes, part->len);
		f->done += part->len;
		if (hashing)
			atomic_fetch_add(&hashing->fetched_bytes, part->len);
		status = write_all(f, part->bytes, part->len, err);
	}
	leat_free(f->s->mem, part->bytes);
	give_part(f->s);
	return status;
}

static enum leat_status
fetch_parts(struct fetch *f, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	while (status == LEAT_OK && f->done < f->object->size) {
		status = start_parts(f, err);
		if (status == LEAT_OK)
			status = end_part(f, true, err);
	}
	while (f->count > 0)
		end_part(f, false, NULL);
	return status;
}

/* ---- a file ---- */

static enum leat_status
check_room(const struct leat_staging *s, struct leat_cas *cas, const struct leat_object *object, struct leat_err *err)
{
	char needed[32], there[32];
	struct statvfs fs;
	uint64_t room;

	(void)s;
	if (statvfs(leat_cas_folder(cas), &fs) != 0)
		return LEAT_OK;
	room = (uint64_t)fs.f_bavail * fs.f_frsize;
	if (object->size <= room)
		return LEAT_OK;
	return leat_fail(err, LEAT_IO,
	                 "a copy of '%s' needs %s, but %s are free in '%s'; 'leat gc' removes what is not used",
	                 object->uri, leat_format_size(needed, sizeof(needed), object->size),
	                 leat_format_size(there, sizeof(there), room), leat_cas_folder(cas));
}

/* Fetches one version. LEAT_DATA: there is another one now. */
static enum leat_status
fetch_object(struct leat_staging *s, struct leat_cas *cas, const struct leat_object *object,
             struct leat_content *content, struct leat_err *err)
{
	struct leat_hashing *hashing = watched(s);
	char path[PATH_MAX];
	struct fetch f = {.s = s, .object = object, .path = path};
	enum leat_status status = check_room(s, cas, object, err);

	if (status != LEAT_OK)
		return status;
	leat_cas_temp_path(cas, path);
	f.sha = leat_sha256_new();
	f.fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444);
	if (!f.sha || f.fd < 0)
		status = f.sha ? leat_fail_errno(err, errno, "cannot create '%s'", path)
		               : leat_fail_mem(err, s->mem, 1, "a hash");
	if (status == LEAT_OK)
		status = fetch_parts(&f, err);
	if (status == LEAT_OK && fdatasync(f.fd) != 0)
		status = leat_fail_errno(err, errno, "cannot write '%s'", path);
	if (f.fd >= 0 && close(f.fd) != 0 && status == LEAT_OK)
		status = leat_fail_errno(err, errno, "cannot write '%s'", path);
	if (status == LEAT_OK) {
		*content = (struct leat_content){.kind = LEAT_CONTENT_FILE, .bytes = object->size};
		leat_sha256_end(f.sha, content->digest.byte);
		status = leat_cas_adopt(cas, path, content, err);
	}
	leat_sha256_free(f.sha);
	if (status != LEAT_OK) {
		unlink(path);
		if (hashing)
			atomic_fetch_sub(&hashing->fetched_bytes, f.done);
	}
	return status;
}

/* The totals have the size that it had when it was counted. */
static void
recount(struct leat_staging *s, uint64_t was, uint64_t now)
{
	struct leat_hashing *hashing = watched(s);

	if (hashing)
		atomic_fetch_add(&hashing->fetch_bytes, now - was);
}

static enum leat_status
fetch_latest(struct leat_staging *s, struct leat_cas *cas, struct leat_remote_file *file, struct leat_content *content,
             struct leat_err *err)
{
	enum leat_status status = LEAT_DATA;
	struct leat_err why;

	for (int i = 0; i < TRIES && status == LEAT_DATA; i++) {
		struct leat_object object;
		uint64_t was = file->size;
		char *uri = NULL;

		leat_err_clear(&why);
		if (i > 0 && (status = leat_staging_look(s, file->uri, file, &why)) != LEAT_OK)
			break;
		recount(s, was, file->size);
		status = leat_staging_object(s, file, &object, &uri, &why);
		if (status == LEAT_OK)
			status = fetch_object(s, cas, &object, content, &why);
		leat_free(s->mem, uri);
	}
	if (status == LEAT_OK || status == LEAT_END)
		return status;
	if (status == LEAT_CANCELLED)
		return LEAT_END;
	return leat_fail_as(err, &why);
}

static enum leat_status
fetch(struct leat_staging *s, struct leat_cas *cas, struct leat_remote_file *file, struct leat_content *content,
      struct leat_err *err)
{
	enum leat_status status = fetch_latest(s, cas, file, content, err);
	struct leat_hashing *hashing = watched(s);
	struct leat_fetched id;

	if (status != LEAT_OK)
		return status;
	if (identify(s, file, &id))
		leat_cas_set_fetched(cas, &id, &content->digest);
	if (hashing)
		atomic_fetch_add(&hashing->fetched_files, 1);
	return LEAT_OK;
}

/* One thread at a time deals with a file. */
static void
begin_file(struct leat_staging *s, struct leat_remote_file *file)
{
	pthread_mutex_lock(&s->lock);
	while (file->is_busy)
		pthread_cond_wait(&s->changed, &s->lock);
	file->is_busy = true;
	pthread_mutex_unlock(&s->lock);
}

static void
end_file(struct leat_staging *s, struct leat_remote_file *file)
{
	pthread_mutex_lock(&s->lock);
	file->is_busy = false;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
}

void
leat_staging_count(struct leat_staging *s, struct leat_cas *cas, struct leat_remote_file *file)
{
	struct leat_hashing *hashing = watched(s);
	struct leat_content content;

	begin_file(s, file);
	if (hashing && !file->is_counted && !is_known(s, cas, file, &content)) {
		file->is_counted = true;
		atomic_fetch_add(&hashing->fetch_bytes, file->size);
		atomic_fetch_add(&hashing->fetch_files, 1);
	}
	end_file(s, file);
}

enum leat_status
leat_staging_hash(struct leat_staging *s, struct leat_cas *cas, struct leat_remote_file *file, bool may_fetch,
                  struct leat_content *content, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	begin_file(s, file);
	if (is_known(s, cas, file, content)) {
		if (may_fetch) /* else nothing is written */
			leat_cas_touch(cas, &content->digest);
	} else if (may_fetch) {
		status = fetch(s, cas, file, content, err);
	} else {
		stand_in(file, content);
	}
	end_file(s, file);
	return status;
}

enum leat_status
leat_staging_bring(struct leat_staging *s, struct leat_cas *cas, struct leat_remote_file *file,
                   const struct leat_content *content, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	struct leat_content now = *content;

	begin_file(s, file);
	if (!leat_cas_has(cas, content))
		status = fetch(s, cas, file, &now, err);
	end_file(s, file);
	if (status == LEAT_OK && !leat_digest_equal(&now.digest, &content->digest))
		status = leat_fail(err, LEAT_DATA, "'%s' changed while the build ran; build again", file->uri);
	return status;
}

/* ---- stopping ---- */

static void
watch(void *arg, unsigned number)
{
	struct leat_staging *s = arg;
	struct timespec until;

	(void)number;
	pthread_mutex_lock(&s->lock);
	while (s->is_watched) {
		if (s->stop && atomic_load(s->stop) && !atomic_load(&s->stores.interrupted)) {
			pthread_mutex_unlock(&s->lock);
			leat_stores_interrupt(&s->stores, true);
			pthread_mutex_lock(&s->lock);
			continue;
		}
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += POLL_NS;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
		pthread_cond_timedwait(&s->changed, &s->lock, &until);
	}
	pthread_mutex_unlock(&s->lock);
}

enum leat_status
leat_staging_watch(struct leat_staging *s, const atomic_bool *stop, struct leat_hashing *hashing, struct leat_err *err)
{
	enum leat_status status;

	pthread_mutex_lock(&s->lock);
	s->stop = stop;
	s->hashing = hashing;
	s->is_watched = true;
	pthread_mutex_unlock(&s->lock);
	if (hashing)
		atomic_store(&hashing->fetch_begun_ns, leat_now());
	status = leat_threads_start(&s->watcher, s->mem, 1, "leat-stop", watch, s, err);
	if (status != LEAT_OK)
		leat_staging_unwatch(s);
	return status;
}

void
leat_staging_unwatch(struct leat_staging *s)
{
	pthread_mutex_lock(&s->lock);
	s->is_watched = false;
	s->hashing = NULL;
	pthread_cond_broadcast(&s->changed);
	pthread_mutex_unlock(&s->lock);
	leat_threads_join(&s->watcher);
	leat_stores_interrupt(&s->stores, false);
}
