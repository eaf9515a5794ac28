/* source.h - the interface of a source: how many samples there are, and where each one's bytes are
 *
 * To add a format, write src/format/NAME.c and define `const struct leat_source_kind
 * leat_source_NAME`; the build collects the table. Threads: open and close are called
 * by one thread, locate, prefetch and unit by one thread at a time, decode and unpack by all workers at once. */
#ifndef LEAT_FORMAT_SOURCE_H
#define LEAT_FORMAT_SOURCE_H

#include "base/hash.h"
#include "base/opt.h"
#include "format/sample.h"
#include "store/store.h"

/* Location of a sample's bytes: `head` bytes of framing, the payload, `tail` bytes of framing. */
struct leat_extent {
	uint32_t file;
	uint32_t head, tail;
	bool damaged;    /* known to be unreadable: unpack is called without bytes and reports why */
	bool oversized;  /* set by leat_source_locate: also `damaged`, because of max_bytes */
	uint64_t offset; /* of the head; for a sample in a unit, within the decoded unit */
	uint64_t length; /* of all three; 0: nothing to fetch */
	uint64_t lent;   /* if length is 0: bytes of the fields that unpack takes from elsewhere, or of `oversized` */
	uint64_t unit;   /* with `in_unit`: the unit's number */
	bool in_unit;
};

/* Data that several samples share, such as a block of a compressed file or a row group: fetched and decoded once. The
 * engine owns the memory; `decode` fills it. */
struct leat_unit {
	uint64_t number;
	unsigned char *bytes; /* room for max_unit */
	size_t len;
	uint64_t begin;    /* for the format's use: where in the data `bytes` begins */
	const char *fault; /* why bytes are missing; NULL: complete */
	uint64_t fault_at;
	bool lost; /* for the engine's use: it could not be fetched */
};

/* A fetched sample. */
struct leat_raw {
	uint64_t index; /* of the sample */
	struct leat_extent extent;
	const unsigned char *head;
	unsigned char *payload;
	const unsigned char *tail;    /* head, payload and tail need not be adjacent */
	const struct leat_unit *unit; /* NULL: not in a unit */
};

/* A field of samples that are rows of a fixed size in memory. */
struct leat_row_form {
	enum leat_dtype dtype; /* of the elements in memory; the field's may be wider */
	size_t elements;
	/* If fields of a sample are together in memory: where this one begins there, and the size of all. 0: not. */
	size_t offset, record;
};

struct leat_source {
	const struct leat_source_kind *kind;
	const void *params;
	struct leat_mem *mem;
	const struct leat_log *log;

	struct leat_stores stores; /* where its data is */
	uint64_t max_bytes;        /* longer samples are bad */

	/* Set by open: */
	struct leat_files *files; /* NULL: no files, or see `object` */
	size_t file_count;        /* if left 0: those of `files` */
	uint64_t count;           /* samples */
	const uint64_t *first;    /* part i holds samples [first[i], first[i + 1]); parts + 1 numbers */
	size_t parts;             /* what interleave alternates between; if left 0: the files */
	uint64_t max_length;      /* of undamaged extents within max_bytes: see leat_source_longest */
	uint64_t max_payload;
	bool all_fit;           /* no sample is longer than max_bytes; if left false, each one is checked */
	size_t max_scratch;     /* unpack's scratch for one sample */
	bool mapped;            /* some of `files` are mapped */
	uint64_t units;         /* 0: the source has no units */
	size_t max_unit;        /* largest decoded size */
	size_t max_unit_length; /* largest size in the file */
	size_t decode_memory;   /* kept with each scratch for decoding */
	/* Units in random order are too slow: on what, and what else to do about it. If left NULL: compressed files,
	 * which can be converted. */
	const char *scatter_where;
	char scatter_remedy[80];
	struct leat_schema schema; /* of the samples; layouts are derived from the shapes */
	char **class_name;         /* by label, if the source knows: filled by leat_source_add_class */
	size_t class_count, class_cap;
	const uint8_t *stamp;          /* SHA-256 of the files' versions; if left NULL: computed from `files` */
	uint64_t described;            /* token of further files that samples depend on, such as index.json */
	struct leat_file_table *table; /* of the objects, sample i is object i; NULL: none */
	void *state;                   /* private to the format */
};

struct leat_source_kind {
	const char *name, *doc, *example;
	int version; /* bump whenever the samples change */
	const struct leat_opt *opts;
	size_t params_size;

	/* Optional, for arguments that no option table can describe. `parse` replaces the table; `print` appends the
	 * canonical arguments, without the data's location unless `locations`; `params_free` frees what parse
	 * allocated, even if parse failed. */
	enum leat_status (*parse)(void *params, const struct leat_call *call, const char *text, struct leat_mem *mem,
	                          struct leat_err *err);
	void (*print)(const void *params, bool locations, struct leat_str *out);
	void (*params_free)(void *params, struct leat_mem *mem);

	/* May use `threads` threads for indexing. Cleans up on failure. */
	enum leat_status (*open)(struct leat_source *source, unsigned threads, struct leat_err *err);
	void (*close)(struct leat_source *source); /* after a successful open */

	void (*locate)(const struct leat_source *source, uint64_t index, struct leat_extent *extent);
	/* Optional: prefetches what `locate` will look up for these samples, which are far apart. */
	void (*prefetch)(const struct leat_source *source, const uint64_t *sample, size_t count);
	/* Optional, for sources with a table of many objects in place of `files`: gets object number `file`. Any
	 * thread. */
	void (*object)(const struct leat_source *source, size_t file, struct leat_object *object);

	/* Optional, for sources that leave max_length 0: nothing is fetched (length 0), because unpack lends mapped
	 * memory or reads by itself. Loads the mapped memory of these samples from the device. With LEAT_READ_NOWAIT,
	 * returns LEAT_AGAIN (no error text) if that would block; an I/O thread then calls it again without the flag.
	 * Any thread. */
	enum leat_status (*touch)(const struct leat_source *source, const uint64_t *sample, size_t count, int flags,
	                          struct leat_err *err);

	/* Optional, with `rows_at`, for samples whose fields are rows of a fixed size in memory, aligned for their
	 * type: describes a field. False: samples have to be unpacked one by one. Called once, after open. */
	bool (*rows)(const struct leat_source *source, int field, struct leat_row_form *form);
	/* Sets at[i] to where the field's row of sample[i] begins. Any thread, after `touch`. */
	void (*rows_at)(const struct leat_source *source, int field, const uint64_t *sample, size_t count,
	                const unsigned char **at);

	/* Checks the framing and payload and fills `sample`'s fields. They may point into the payload or the unit, or
	 * into `scratch` for converted values. An error says what is damaged and where. LEAT_LIMIT: scratch is full;
	 * the sample is retried with more. */
	enum leat_status (*unpack)(const struct leat_source *source, const struct leat_raw *raw,
	                           struct leat_scratch *scratch, struct leat_sample *sample, struct leat_err *err);

	/* Sources with units: gets the bytes to fetch for unit `unit` (head and tail are 0; length 0: none). One thread
	 * at a time, like `locate`. */
	void (*unit)(const struct leat_source *source, uint64_t unit, struct leat_extent *extent);
	/* Decodes those bytes into to->bytes, for unit to->number. Worker threads; memory is kept with the scratch.
	 * Damage is not an error but sets the unit's fault: samples before it are good. */
	enum leat_status (*decode)(const struct leat_source *source, const struct leat_extent *extent,
	                           const unsigned char *bytes, struct leat_unit *to, struct leat_scratch *scratch,
	                           struct leat_err *err);

	/* Only if the sample's one field is the payload, byte for byte; otherwise NULL. Checks like unpack and copies
	 * the payload to `to` while doing so (past_cache as in base/copy.h). The engine may also read such a payload
	 * straight into a batch and unpack it there. Not called if the source has units. */
	enum leat_status (*unpack_to)(const struct leat_source *source, const struct leat_raw *raw, unsigned char *to,
	                              bool past_cache, struct leat_err *err);

	bool copies; /* unpack uses no bytes in place, so samples that overlap may share memory */

	/* Optional: adds what identifies the data regardless of its location, instead of the names, sizes and sample
	 * counts of the files. */
	void (*fingerprint)(const struct leat_source *source, struct leat_sha256 *sha);
};

/* max_bytes UINT64_MAX: no limit. `storage` NULL: no settings; it outlives the source. */
enum leat_status leat_source_open(struct leat_source *source, const struct leat_source_kind *kind, const void *params,
                                  unsigned threads, uint64_t max_bytes, const struct leat_storage *storage,
                                  struct leat_mem *mem, const struct leat_log *log, struct leat_err *err);
void leat_source_close(struct leat_source *source);

/* Whether unpack lends all samples, so that there is nothing to fetch. */
static inline bool
leat_source_lends(const struct leat_source *source)
{
	return source->kind->touch && source->max_length == 0;
}

/* Marks an undamaged extent of more than max_bytes. */
void leat_source_check_size(const struct leat_source *source, struct leat_extent *extent);
/* LEAT_DATA: describes an oversized sample. */
enum leat_status leat_source_fail_oversized(const struct leat_source *source, const struct leat_extent *extent,
                                            struct leat_err *err);

/* kind->locate and kind->unpack, with the limit on bytes. An oversized sample is like a damaged one, so that neither
 * memory nor reads are planned for it. */
static inline void
leat_source_locate(const struct leat_source *source, uint64_t index, struct leat_extent *extent)
{
	source->kind->locate(source, index, extent);
	if (__builtin_expect(!source->all_fit, 0))
		leat_source_check_size(source, extent);
}

static inline enum leat_status
leat_source_unpack(const struct leat_source *source, const struct leat_raw *raw, struct leat_scratch *scratch,
                   struct leat_sample *sample, struct leat_err *err)
{
	if (__builtin_expect(raw->extent.oversized, 0))
		return leat_source_fail_oversized(source, &raw->extent, err);
	return source->kind->unpack(source, raw, scratch, sample, err);
}

/* For `open`, once `locate` works and `count` is set: sets max_length and max_payload from those of the longest sample,
 * or of the longest one within max_bytes. */
void leat_source_longest(struct leat_source *source, uint64_t length, uint64_t payload);

/* For `open`: the next label's class name, which need not end with a NUL. */
enum leat_status leat_source_add_class(struct leat_source *source, const char *name, size_t len, struct leat_err *err);

/* Object number `file`; stored in `entry` if the source has a table. NULL: the source has no files. */
const struct leat_object *leat_source_object(const struct leat_source *source, size_t file, struct leat_object *entry);
/* Is the object of a sample as the source's index says? May block. Only table entries are looked at. */
bool leat_source_is_current(const struct leat_source *source, uint64_t sample);
/* Reading `file` failed with LEAT_DATA: if it has changed since it was indexed, removes the index and says so. */
void leat_source_report_change(const struct leat_source *source, size_t file, struct leat_err *err);
/* Before each batch: checks that mapped files are unchanged. If not, reads from them fail. */
void leat_source_check(const struct leat_source *source);
/* A file's name for messages, assembled in `buf` if needed. If there are no files, the source's name. */
const char *leat_source_uri(const struct leat_source *source, size_t file, char buf[LEAT_URI]);

/* For `locate`: the part (see `first`) that holds `sample`. *last, initially 0, caches the result, because neighbours
 * are mostly located in a row. */
size_t leat_source_part(const struct leat_source *source, uint64_t sample, size_t *last);

/* SHA-256 over names, sizes and sample counts, or what the kind's `fingerprint` adds; independent of the location. */
enum leat_status leat_source_fingerprint(const struct leat_source *source, char hex[LEAT_SHA256_HEX],
                                         struct leat_err *err);
/* For `fingerprint`: adds a number, or text with its length, so that ("ab", "c") and ("a", "bc") differ. */
void leat_fingerprint_number(struct leat_sha256 *sha, uint64_t number);
void leat_fingerprint_text(struct leat_sha256 *sha, const char *text, size_t len);

/* Collected by the build, NULL-terminated. */
extern const struct leat_source_kind *const leat_sources[];
const struct leat_source_kind *leat_source_find(const char *name);

#endif
