/* cas.h - the content store: blobs by content, and which action made them
 *
 *	.leat/format               "leat content store 1"
 *	.leat/cas/ab/HASH          blobs, read-only
 *	.leat/act/ab/KEY           manifests (manifest.h): the truth about what was made
 *	.leat/view/HASH/           folders of links to blobs, made from trees when somebody needs a folder
 *	.leat/index/               an LMDB environment (index.h), made again from the manifests when it is missing
 *	.leat/runs/RUN.jsonl       what each build did (step/run_log.h); RUN.open while its bytes may not be on disk yet
 *	.leat/refs/NAME            contents and keys that gc keeps
 *	.leat/tmp/RUN/             sandboxes and files being written
 *	.leat/remote               what was on servers when a build looked last (step/staging.h)
 *	.leat/resume/HASH/         checkpoints of steps that resume, locked while in use (step/runner.h)
 *
 * Nothing is changed in place. A blob is written under tmp, and then renamed; a manifest comes after the blobs that it
 * names. So kill -9 loses only what was running. There are no lock files: a run holds flock on RUN.open, which ends
 *with its process, and several builds may use one store at a time.
 *
 * Durability is by groups: a thread calls syncfs at most once a second while there is something new, and RUN.open is
 * removed after the last one. After a power failure (RUN.open is from another boot), the next build hashes what that
 * run made, and forgets what is damaged.
 *
 * A store opened for reading changes nothing: LEAT_DATA if there is none. All functions may be called by any thread. A
 * process opens a store once at a time: LMDB cannot be opened twice. */
#ifndef LEAT_CAS_CAS_H
#define LEAT_CAS_CAS_H

#include <limits.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "cas/content.h"

struct leat_cas;

enum leat_cas_mode {
	LEAT_CAS_READ,
	LEAT_CAS_WRITE,
	LEAT_CAS_NODE, /* for actions of a build on another machine: blobs and views, no index; see leat_cas_join */
};

/* `folder` is the path of .leat. For writing it is made if it is missing; what dead runs left behind is removed, and
 * their processes (step/sandbox.h) are the caller's to end. */
enum leat_status leat_cas_open(struct leat_cas **cas, struct leat_mem *mem, const char *folder, enum leat_cas_mode mode,
                               struct leat_err *err);
void leat_cas_close(struct leat_cas *cas);               /* syncs; accepts NULL */
const char *leat_cas_folder(const struct leat_cas *cas); /* absolute */
bool leat_cas_is_current(const struct leat_cas *cas);    /* false: the folder was deleted or replaced since */

/* Begins a run of this process: makes RUN.open and tmp/RUN. Its name sorts by time: 20261117T201530-4711. Until then
 * nothing may be put. leat_cas_close ends it. */
enum leat_status leat_cas_begin(struct leat_cas *cas, struct leat_err *err);
const char *leat_cas_run(const struct leat_cas *cas); /* its name; NULL: none */

/* Of a store that is open as LEAT_CAS_NODE: takes part in the run of a build elsewhere. LEAT_DATA: there is none. */
enum leat_status leat_cas_join(struct leat_cas *cas, const char *run, struct leat_err *err);

/* A path below tmp/RUN that nothing has used. */
void leat_cas_temp_path(struct leat_cas *cas, char path[PATH_MAX]);

/* Puts bytes. What is there already is kept, and its size compared. */
enum leat_status leat_cas_put_bytes(struct leat_cas *cas, const void *bytes, size_t len, struct leat_digest *digest,
                                    struct leat_err *err);
/* Moves the file or folder at `path`, on the same file system, into the store. Files are renamed, not copied, unless
 * they have other names. Sockets, fifos, devices and links out of the folder are LEAT_DATA. Nobody else may write
 * there meanwhile. */
enum leat_status leat_cas_take(struct leat_cas *cas, const char *path, struct leat_content *content,
                               struct leat_err *err);
/* Copies a file into the store, which others may write to at the same time: what is stored is what was hashed. */
enum leat_status leat_cas_put_file(struct leat_cas *cas, const char *path, struct leat_content *content,
                                   struct leat_err *err);
/* Stores a tree, for folders that are put together from contents. */
enum leat_status leat_cas_put_tree(struct leat_cas *cas, const struct leat_str *tree, struct leat_content *content,
                                   struct leat_err *err);

/* The path of a blob, whether or not it is there. */
void leat_cas_blob_path(const struct leat_cas *cas, const struct leat_digest *digest, char path[PATH_MAX]);
/* Is the content there? A folder: and all in it. Contents found once are remembered, and gc removes nothing while a
 * store is open for writing. Their bytes are not read: `leat fsck` does. */
bool leat_cas_has(struct leat_cas *cas, const struct leat_content *content);
/* A path where programs can read it: the blob, or a folder of hard links to blobs, which is made on the first call and
 * again if entries were added or removed. An executable file is a copy of its blob, because blobs are not executable.
 */
enum leat_status leat_cas_view(struct leat_cas *cas, const struct leat_content *content, char path[PATH_MAX],
                               struct leat_err *err);
/* False: entries of the view of this folder were added or removed, or there is none. */
bool leat_cas_view_is_untouched(struct leat_cas *cas, const struct leat_content *folder);
/* Removes a file that turned out to be damaged, or the view of a folder that somebody wrote to: it is made again. */
void leat_cas_forget(struct leat_cas *cas, const struct leat_content *content);
/* All bytes of a blob, NUL-terminated, freed with leat_free; more than `max` is LEAT_LIMIT, missing LEAT_DATA. */
enum leat_status leat_cas_read(struct leat_cas *cas, const struct leat_digest *digest, size_t max, char **bytes,
                               size_t *len, struct leat_err *err);

/* The content of a file or folder of the user, which stays where it is. Hashed once: the result is kept in the index by
 * (device, inode, size, mtime, ctime), unless it changed in the last two seconds. With `stamp`, a file that changes
 * later can be recognized: the stamp of the same bytes is the same. Folders: all files below, without hidden ones;
 * links are followed. */
struct leat_stamp {
	uint64_t value[2];
};
enum leat_status leat_cas_hash(struct leat_cas *cas, const char *path, struct leat_content *content,
                               struct leat_stamp *stamp, struct leat_err *err);
/* How far leat_cas_hash is, over all calls; others may read it meanwhile. */
struct leat_hashing {
	const atomic_bool *stop; /* NULL, or once it is set, leat_cas_hash ends soon with LEAT_END, without a message */
	atomic_ullong files, bytes; /* hashed, or found in the index */
	atomic_ullong all_files, all_bytes;
	atomic_bool is_counted; /* `all_...` are complete */
	/* Remote sources (step/staging.h): bytes and files that were fetched, of all that have to be; since when. */
	atomic_ullong fetched_bytes, fetched_files, fetch_bytes, fetch_files, fetch_begun_ns;
};
/* NULL: nobody watches. Call it while no other thread hashes. */
void leat_cas_watch_hashing(struct leat_cas *cas, struct leat_hashing *hashing);
/* Adds what leat_cas_hash will read to `all_...`, without reading it. What cannot be read is left out. */
void leat_cas_count(const char *path, struct leat_hashing *hashing, const atomic_bool *stop);
/* Only stats. */
enum leat_status leat_cas_stamp(const char *path, struct leat_stamp *stamp, struct leat_err *err);

/* A version of a remote object: hashes of its name and version, and its size. */
struct leat_fetched {
	uint64_t name[2], version[2], size;
};
/* Is it known what this version holds? The copy itself may be gone: leat_cas_has. */
bool leat_cas_fetched(struct leat_cas *cas, const struct leat_fetched *object, struct leat_content *content);
/* For the next build. */
void leat_cas_set_fetched(struct leat_cas *cas, const struct leat_fetched *object, const struct leat_digest *digest);
/* Moves a new file, made at a leat_cas_temp_path, into the store. The caller knows that it has this content. */
enum leat_status leat_cas_adopt(struct leat_cas *cas, const char *path, const struct leat_content *content,
                                struct leat_err *err);
/* It is used today: gc keeps copies that were used lately. */
void leat_cas_touch(struct leat_cas *cas, const struct leat_digest *digest);

/* Removes a file or a folder with all in it, however deep, also where write permission is missing. What cannot be
 * removed stays. */
void leat_remove_tree(const char *path);
/* Removes all in a folder. False: something is left. */
bool leat_empty_folder(int folder);

#endif
