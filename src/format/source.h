/* source.h - what a source is: it knows its samples, how many there are and where each one's bytes lie
 *
 * A format adds one file, src/format/NAME.c, that defines `const struct leat_source_kind
 * leat_source_NAME`; the build collects the table. Threads: open and close are called
 * by one thread; locate and unit by one thread at a time; decode and unpack by all workers at once. */
#ifndef LEAT_FORMAT_SOURCE_H
#define LEAT_FORMAT_SOURCE_H

#include "base/hash.h"
#include "base/opt.h"
#include "format/sample.h"
#include "store/store.h"

/* Where a sample's bytes lie: `head` bytes of framing, the payload, `tail` bytes of framing. */
struct leat_extent {
	uint32_t file;
	uint32_t head, tail;
	bool damaged;    /* known to hold no readable sample: unpack is called without bytes and says why */
	uint64_t offset; /* of the head; of a sample in a unit, among what the unit decodes to */
	uint64_t length; /* of all three; 0: it has no bytes to fetch itself */
	uint64_t lent;   /* when length is 0: bytes of the field that unpack fills from elsewhere */
	uint64_t unit;   /* with `in_unit`: which one it shares with others */
	bool in_unit;
};

/* What several samples share: fetched once, decoded once, used by all of them (a block of a compressed file, a row
 * group). The engine owns the memory; `decode` fills it. */
struct leat_unit {
	uint64_t number;
	unsigned char *bytes; /* room for max_unit */
	size_t len;
	uint64_t begin;    /* the format's: what `bytes` begins with */
	const char *fault; /* why there are fewer bytes than expected; NULL: there are all */
	uint64_t fault_at;
	bool lost; /* the engine's: its bytes could not be had */
};

/* A sample as it was fetched. */
struct leat_raw {
	uint64_t index; /* of the sample */
	struct leat_extent extent;
	const unsigned char *head;
	unsigned char *payload;
	const unsigned char *tail;    /* head, payload and tail need not be adjacent */
	const struct leat_unit *unit; /* NULL: it is in none */
};

struct leat_source {
	const struct leat_source_kind *kind;
	const void *params;
	struct leat_mem *mem;
	const struct leat_log *log;

	struct leat_stores stores; /* where its data is */

	/* Set by open: */
	struct leat_files *files; /* NULL: it has none, or a table of its own */
	size_t file_count;        /* left 0: those of `files` */
	uint64_t count;           /* samples */
	const uint64_t *first;    /* part i holds samples [first[i], first[i + 1]); parts + 1 numbers */
	size_t parts;             /* what interleave takes turns with; left 0: the files */
	uint64_t max_length;      /* of an extent that is not damaged */
	uint64_t max_payload;
	size_t max_scratch;        /* that unpack takes for one sample */
	bool mapped;               /* some of `files` are mapped */
	uint64_t units;            /* 0: no sample is in one */
	size_t max_unit;           /* bytes that one decodes to, */
	size_t max_unit_length;    /* and is read from */
	size_t decode_memory;      /* that decoding keeps with each scratch */
	struct leat_schema schema; /* of the samples; layouts are found by their shapes, for all sources alike */
	const uint8_t *stamp;      /* SHA-256 of when the files were written last; left NULL: the files are asked */
	void *state;               /* the format's own */
};

struct leat_source_kind {
	const char *name, *doc, *example;
	int version; /* bump whenever the samples that come out change */
	const struct leat_opt *opts;
	size_t params_size;

	/* Optional, for arguments that no table can describe. `parse` replaces the table; `print` adds the
	 * canonical arguments, without `locations` only what is not where data is; `params_free` what parse took,
	 * also after it failed. */
	enum leat_status (*parse)(void *params, const struct leat_call *call, const char *text, struct leat_mem *mem,
	                          struct leat_err *err);
	void (*print)(const void *params, bool locations, struct leat_str *out);
	void (*params_free)(void *params, struct leat_mem *mem);

	/* `threads`: that open may use, for indexing. Cleans up after itself when it fails. */
	enum leat_status (*open)(struct leat_source *source, unsigned threads, struct leat_err *err);
	void (*close)(struct leat_source *source); /* after an open that succeeded */

	void (*locate)(const struct leat_source *source, uint64_t index, struct leat_extent *extent);
	/* Optional, for sources with a table of many objects in place of `files`: number `file` of an extent. Any
	 * thread. */
	void (*object)(const struct leat_source *source, size_t file, struct leat_object *object);

	/* Optional, for samples that have no bytes to read (extents of length 0) because unpack lends memory that
	 * may have to come from a device: brings it. With LEAT_READ_NOWAIT, LEAT_AGAIN (no error text) when that
	 * would wait; then an I/O thread calls it again, without. Any thread. */
	enum leat_status (*touch)(const struct leat_source *source, uint64_t index, int flags, struct leat_err *err);

	/* Checks the framing and payload and fills `sample`'s fields, in place: they may point into the payload or
	 * the unit, or into `scratch` where values have to be written anew. An error says what is damaged and where;
	 * LEAT_LIMIT: scratch is full, and the sample is done again with more. */
	enum leat_status (*unpack)(const struct leat_source *source, const struct leat_raw *raw,
	                           struct leat_scratch *scratch, struct leat_sample *sample, struct leat_err *err);

	/* Sources with units: the bytes that unit `unit` is read from (head and tail are 0; length 0: none). One thread
	 * at a time, as `locate`. */
	void (*unit)(const struct leat_source *source, uint64_t unit, struct leat_extent *extent);
	/* From those bytes to to->bytes; to->number says which. Worker threads; memory is kept with the scratch. Damage
	 * is no error here but the unit's fault: samples before it are good. */
	enum leat_status (*decode)(const struct leat_source *source, const struct leat_extent *extent,
	                           const unsigned char *bytes, struct leat_unit *to, struct leat_scratch *scratch,
	                           struct leat_err *err);

	/* Only where the payload is the sample's one field, byte for byte; else NULL. Checks as unpack does, and
	 * copies the payload to `to` on the way (past_cache as in base/copy.h). Of such a source a payload may
	 * also be read straight into a batch, to be unpacked there. Not asked for when the source has units. */
	enum leat_status (*unpack_to)(const struct leat_source *source, const struct leat_raw *raw, unsigned char *to,
	                              bool past_cache, struct leat_err *err);

	/* Optional: adds all that tells this data from other data, wherever it lies, in place of the names, sizes
	 * and sample counts of the files. */
	void (*fingerprint)(const struct leat_source *source, struct leat_sha256 *sha);
};

enum leat_status leat_source_open(struct leat_source *source, const struct leat_source_kind *kind, const void *params,
                                  unsigned threads, struct leat_mem *mem, const struct leat_log *log,
                                  struct leat_err *err);
void leat_source_close(struct leat_source *source);

/* Number `file` of an extent; `entry` is used if it is one of a table. NULL: the source has no files. */
const struct leat_object *leat_source_object(const struct leat_source *source, size_t file, struct leat_object *entry);
/* Before a batch is made: looks whether mapped files are what they were. If not, reads from them fail. */
void leat_source_check(const struct leat_source *source);
/* Its name, for people; `buf` is used where it has to be put together. Without files, the source's. */
const char *leat_source_uri(const struct leat_source *source, size_t file, char buf[LEAT_URI]);

/* Which of the parts that `first` tells of holds `sample`. *last, 0 at first, remembers it: neighbours are mostly
 * asked for together. For `locate`. */
size_t leat_source_part(const struct leat_source *source, uint64_t sample, size_t *last);

/* SHA-256 over names, sizes and sample counts, or what the kind adds itself: the same wherever the data lies. */
enum leat_status leat_source_fingerprint(const struct leat_source *source, char hex[LEAT_SHA256_HEX],
                                         struct leat_err *err);
/* For `fingerprint`: a number; a text with its length, so that ("ab", "c") is not ("a", "bc"). */
void leat_fingerprint_number(struct leat_sha256 *sha, uint64_t number);
void leat_fingerprint_text(struct leat_sha256 *sha, const char *text, size_t len);

/* The table the build collects, NULL at its end. */
extern const struct leat_source_kind *const leat_sources[];
const struct leat_source_kind *leat_source_find(const char *name);

#endif
