/* test_cache.c - a cache gives back what was put in or nothing, whatever happens to its file, and takes no more than it
 * may */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dirent.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/rng.h"
#include "feed/cache.h"
#include "support/logged.h"
#include "support/temp.h"

enum { SAMPLES = 40, MAX_BYTES = 4096, PAGE = 4096, TABLE_AT = PAGE, ROOM_AT = 2 * PAGE };

#define KEY_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define KEY_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"
#define KEY_C "cccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccccc"

static const uint64_t plenty = 1 << 20;

static struct leat_mem mem;
static struct leat_err err;
static struct temp temp;
static struct leat_schema_entry entries[2][4];
static struct leat_schema dense, ragged;

/* A full cache file as it was before any damage, to be put back. */
static struct {
	unsigned char *bytes;
	size_t len;
} intact;

/* ---- samples ---- */

static void
add_field(struct leat_schema *schema, const char *name, enum leat_dtype dtype, int ndim, const int64_t *shape)
{
	struct leat_field *field = leat_schema_add(schema, name, dtype);

	assert_non_null(field);
	field->ndim = ndim;
	for (int d = 0; d < ndim; d++)
		field->shape[d] = shape[d];
}

static int
set_up(void **state)
{
	(void)state;
	leat_mem_init(&mem, SIZE_MAX);
	leat_err_clear(&err);
	memset(&logged, 0, sizeof logged);
	temp_make(&temp);
	dense = (struct leat_schema){.capacity = 4, .entry = entries[0]};
	ragged = (struct leat_schema){.capacity = 4, .entry = entries[1]};
	add_field(&dense, "image", LEAT_U8, 3, (int64_t[]){7, 5, 3});
	add_field(&dense, "label", LEAT_I64, 0, NULL);
	add_field(&dense, "none", LEAT_F32, 2, (int64_t[]){0, 3});
	add_field(&dense, "box", LEAT_F32, 1, (int64_t[]){4});
	add_field(&ragged, "text", LEAT_U8, 1, (int64_t[]){-1});
	add_field(&ragged, "label", LEAT_I32, 0, NULL);
	add_field(&ragged, "image", LEAT_U8, 3, (int64_t[]){-1, -1, 3});
	add_field(&ragged, "numbers", LEAT_F64, 2, (int64_t[]){2, -1});
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	free(intact.bytes);
	intact.bytes = NULL;
	temp_remove(&temp);
	assert_int_equal(mem.used, 0);
	return 0;
}

/* Sample i of a schema: shapes and bytes depend on i alone. */
struct made {
	struct leat_sample sample;
	unsigned char bytes[4][MAX_BYTES];
};

static void
make_sample(const struct leat_schema *schema, uint64_t i, struct made *made)
{
	struct leat_rng rng;

	leat_rng_init(&rng, 1, 0, i, 0);
	made->sample.count = schema->count;
	for (int f = 0; f < schema->count; f++) {
		struct leat_datum *datum = &made->sample.field[f];

		*datum = (struct leat_datum){.data = made->bytes[f],
		                             .dtype = schema->entry[f].field.dtype,
		                             .ndim = schema->entry[f].field.ndim};
		for (int d = 0; d < datum->ndim; d++) {
			int64_t fixed = schema->entry[f].field.shape[d];

			datum->shape[d] = fixed >= 0 ? fixed : (int64_t)leat_rng_below(&rng, 12);
		}
		assert_true(leat_datum_bytes(datum) <= MAX_BYTES);
		for (size_t k = 0; k < leat_datum_bytes(datum); k++)
			made->bytes[f][k] = (unsigned char)leat_rng_u32(&rng);
	}
}

static void
put(struct leat_cache *cache, const struct leat_schema *schema, uint64_t i)
{
	static struct made made;

	make_sample(schema, i, &made);
	leat_cache_put(cache, i, &made.sample);
}

static bool
is_sample(const struct leat_schema *schema, uint64_t i, const struct leat_sample *got)
{
	struct made *made = malloc(sizeof *made);
	bool same;

	assert_non_null(made);
	make_sample(schema, i, made);
	same = got->count == made->sample.count;
	for (int f = 0; same && f < schema->count; f++) {
		const struct leat_datum *a = &got->field[f], *b = &made->sample.field[f];

		same = a->borrowed && a->dtype == b->dtype && a->ndim == b->ndim &&
		       memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof *a->shape) == 0 &&
		       (uintptr_t)a->data % 64 == 0 && memcmp(a->data, b->data, leat_datum_bytes(b)) == 0;
	}
	free(made);
	return same;
}

/* How many samples are there; each of them has to be right. */
static uint64_t
check_all(struct leat_cache *cache, const struct leat_schema *schema, uint64_t samples)
{
	struct leat_sample got;
	uint64_t there = 0;

	for (uint64_t i = 0; i < samples; i++) {
		bool had = leat_cache_has(cache, i);

		if (!leat_cache_get(cache, i, &got)) {
			assert_false(leat_cache_has(cache, i)); /* what is no good is forgotten, to be made again */
			continue;
		}
		assert_true(had);
		if (!is_sample(schema, i, &got))
			fail_msg("sample %llu came back as another", (unsigned long long)i);
		there++;
	}
	return there;
}

/* ---- caches ---- */

static struct leat_cache_options
options_of(const char *key, const struct leat_schema *schema, uint64_t size)
{
	return (struct leat_cache_options){
		.dir = key ? temp.folder : NULL,
		.size = size,
		.samples = SAMPLES,
		.key = key ? key : "",
		.schema = schema,
	};
}

static struct leat_cache *
open_with(const struct leat_cache_options *o)
{
	struct leat_cache *cache;

	if (leat_cache_open(&cache, o, &mem, &log_all, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	return cache;
}

static struct leat_cache *
open_cache(const char *key, const struct leat_schema *schema, uint64_t size)
{
	struct leat_cache_options o = options_of(key, schema, size);

	return open_with(&o);
}

static void
fill_cache(const char *key, const struct leat_schema *schema, uint64_t size)
{
	struct leat_cache *cache = open_cache(key, schema, size);

	for (uint64_t i = 0; i < SAMPLES; i++)
		put(cache, schema, i);
	leat_cache_close(cache);
}

static const char *
file_of(const char *key)
{
	char name[100];

	snprintf(name, sizeof name, "%s.%u.leatcache", key, (unsigned)geteuid());
	return temp_path(&temp, name);
}

static uint64_t
size_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? (uint64_t)st.st_size : 0;
}

/* ---- what is promised ---- */

static void
what_was_put_comes_back_as_it_was(void **state)
{
	(void)state;
	for (int way = 0; way < 4; way++) {
		const struct leat_schema *schema = way & 1 ? &ragged : &dense;
		struct leat_cache *cache = open_cache(way & 2 ? KEY_A : NULL, schema, plenty);
		struct leat_cache_stats stats;
		struct leat_sample got;

		for (uint64_t i = 0; i < SAMPLES; i++) {
			assert_false(leat_cache_has(cache, i));
			assert_false(leat_cache_get(cache, i, &got));
			put(cache, schema, i);
			put(cache, schema, i); /* again: it is there already */
			assert_int_equal(check_all(cache, schema, SAMPLES), i + 1);
		}
		assert_false(leat_cache_get(cache, SAMPLES, &got)); /* there is no such sample */
		put(cache, schema, SAMPLES);
		assert_false(leat_cache_has(cache, SAMPLES));
		leat_cache_stats(cache, &stats);
		assert_int_equal(stats.kept, SAMPLES);
		assert_true(stats.bytes > 0 && stats.bytes <= stats.capacity);
		leat_cache_close(cache);
		if (!(way & 2))
			continue;
		cache = open_cache(KEY_A, schema, plenty); /* another process, as it were */
		assert_int_equal(check_all(cache, schema, SAMPLES), SAMPLES);
		leat_cache_stats(cache, &stats);
		assert_int_equal(stats.kept, 0);
		leat_cache_close(cache);
		unlink(file_of(KEY_A));
	}
	assert_int_equal(logged.warn, 0);
}

static void
a_full_cache_keeps_what_it_has(void **state)
{
	(void)state;
	for (int way = 0; way < 2; way++) {
		uint64_t least = leat_cache_min_size(400);
		struct leat_cache_options o = options_of(way ? KEY_A : NULL, &ragged, least);
		uint64_t there;
		struct leat_cache *cache;

		o.samples = 400;
		memset(&logged, 0, sizeof logged);
		cache = open_with(&o);
		for (uint64_t i = 0; i < 400; i++)
			put(cache, &ragged, i);
		there = check_all(cache, &ragged, 400);
		assert_in_range(there, 20, 399);
		assert_true(leat_cache_has(cache, 0));
		for (uint64_t i = 400; i-- > 0;) /* nothing goes to make room for others */
			put(cache, &ragged, i);
		assert_int_equal(check_all(cache, &ragged, 400), there);
		assert_int_equal(logged.info, 1); /* said once */
		assert_int_equal(logged.warn, 0);
		assert_non_null(strstr(logged.text, "full"));
		leat_cache_close(cache);
	}
}

static void
a_cache_takes_no_more_than_it_may(void **state)
{
	struct leat_rng rng;

	(void)state;
	leat_rng_init(&rng, 3, 0, 0, 0);
	for (int i = 0; i < 60; i++) {
		const struct leat_schema *schema = i % 2 ? &ragged : &dense;
		bool file = i % 3 == 0;
		uint64_t size = leat_cache_min_size(SAMPLES) + leat_rng_below(&rng, 100000), before = mem.used;
		struct leat_cache *cache = open_cache(file ? KEY_A : NULL, schema, size);
		struct leat_cache_stats stats;

		for (uint64_t k = 0; k < SAMPLES; k++)
			put(cache, schema, k);
		check_all(cache, schema, SAMPLES);
		leat_cache_stats(cache, &stats);
		assert_true(stats.capacity <= size && stats.bytes <= stats.capacity);
		assert_true(size_of(file_of(KEY_A)) <= (file ? size : 0));
		assert_true(mem.used - before <= size + 16384); /* and the cache's own few lists */
		leat_cache_close(cache);
		unlink(file_of(KEY_A));
	}
	/* Where every sample has the same size, no more is taken than all need. */
	fill_cache(KEY_A, &dense, (uint64_t)1 << 40);
	assert_true(size_of(file_of(KEY_A)) < 200000);
}

static void
a_cache_too_small_for_its_table_is_refused(void **state)
{
	struct leat_cache_options o = options_of(KEY_A, &dense, leat_cache_min_size(SAMPLES) - 1);
	struct leat_cache *cache;

	(void)state;
	assert_int_equal(leat_cache_open(&cache, &o, &mem, &log_all, &err), LEAT_INVALID);
	assert_null(cache);
	assert_non_null(strstr(err.text, "40 samples need at least"));
	leat_err_clear(&err);
	o.dir = NULL;
	o.size = 100;
	assert_int_equal(leat_cache_open(&cache, &o, &mem, &log_all, &err), LEAT_LIMIT);
	assert_null(cache);
}

static void
another_key_or_number_of_samples_is_not_taken(void **state)
{
	struct leat_cache_options o = options_of(KEY_A, &dense, plenty);
	struct leat_cache *cache;

	(void)state;
	fill_cache(KEY_A, &dense, plenty);
	cache = open_cache(KEY_B, &dense, plenty);
	assert_int_equal(check_all(cache, &dense, SAMPLES), 0);
	leat_cache_close(cache);
	/* A file that was copied under another key's name. */
	assert_int_equal(unlink(file_of(KEY_B)), 0);
	{
		char from[512];

		snprintf(from, sizeof from, "%s", file_of(KEY_A));
		assert_int_equal(link(from, file_of(KEY_B)), 0);
	}
	cache = open_cache(KEY_B, &dense, plenty);
	assert_int_equal(check_all(cache, &dense, SAMPLES), 0);
	leat_cache_close(cache);
	cache = open_cache(KEY_A, &dense, plenty); /* which did not suffer */
	assert_int_equal(check_all(cache, &dense, SAMPLES), SAMPLES);
	leat_cache_close(cache);
	o.samples = SAMPLES + 1;
	cache = open_with(&o);
	assert_int_equal(check_all(cache, &dense, SAMPLES + 1), 0);
	put(cache, &dense, SAMPLES);
	assert_int_equal(check_all(cache, &dense, SAMPLES + 1), 1);
	leat_cache_close(cache);
}

static void
a_file_larger_than_it_may_be_now_is_made_anew(void **state)
{
	struct leat_cache *cache;

	(void)state;
	fill_cache(KEY_A, &ragged, plenty);
	assert_int_equal(size_of(file_of(KEY_A)), plenty);
	cache = open_cache(KEY_A, &ragged, plenty / 2);
	assert_int_equal(check_all(cache, &ragged, SAMPLES), 0);
	assert_int_equal(size_of(file_of(KEY_A)), plenty / 2);
	leat_cache_close(cache);
}

/* ---- damage ---- */

static void
make_intact(const struct leat_schema *schema)
{
	unlink(file_of(KEY_A));
	fill_cache(KEY_A, schema, plenty);
	free(intact.bytes);
	intact.bytes = temp_read(file_of(KEY_A), &intact.len);
}

static void
put_back(void)
{
	int fd = open(file_of(KEY_A), O_RDWR | O_CREAT, 0666);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, intact.bytes, intact.len, 0), (ssize_t)intact.len);
	assert_int_equal(ftruncate(fd, (off_t)intact.len), 0);
	close(fd);
}

static void
change(const char *path, uint64_t at, const void *bytes, size_t len)
{
	int fd = open(path, O_RDWR);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, bytes, len, (off_t)at), (ssize_t)len);
	close(fd);
}

static unsigned char
flip(const char *path, uint64_t at, unsigned char bits)
{
	unsigned char byte, other;
	int fd = open(path, O_RDONLY);

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, (off_t)at), 1);
	close(fd);
	other = byte ^ bits;
	change(path, at, &other, 1);
	return byte;
}

/* Looks at all samples, makes again what is gone, and looks again. */
static uint64_t
check_and_mend(const struct leat_schema *schema, const char *what, uint64_t at)
{
	struct leat_cache *cache = open_cache(KEY_A, schema, plenty);
	uint64_t there = check_all(cache, schema, SAMPLES), mended;

	for (uint64_t i = 0; i < SAMPLES; i++)
		put(cache, schema, i);
	mended = check_all(cache, schema, SAMPLES);
	leat_cache_close(cache);
	cache = open_cache(KEY_A, schema, plenty);
	if (check_all(cache, schema, SAMPLES) != mended || mended < there)
		fail_msg("%s changed at %llu: what was made again did not stay", what, (unsigned long long)at);
	leat_cache_close(cache);
	return there;
}

static void
damaged_samples_are_noticed(void **state)
{
	struct leat_rng rng;

	(void)state;
	leat_rng_init(&rng, 5, 0, 0, 0);
	for (int way = 0; way < 2; way++) {
		const struct leat_schema *schema = way ? &ragged : &dense;

		make_intact(schema);
		for (int i = 0; i < 400; i++) {
			uint64_t at;

			put_back();
			/* The first samples, then anywhere that something was written. */
			at = ROOM_AT + (i < 200 ? (uint64_t)i * 3 : leat_rng_below(&rng, SAMPLES * 200));
			flip(file_of(KEY_A), at, (unsigned char)(1u << (i % 8)));
			assert_in_range(check_and_mend(schema, "the room", at), SAMPLES - 1, SAMPLES);
		}
	}
}

static void
damaged_headers_are_noticed(void **state)
{
	(void)state;
	make_intact(&ragged);
	for (uint64_t at = 0; at < 112; at++) {
		put_back();
		flip(file_of(KEY_A), at, (unsigned char)(1u << (at % 8)));
		check_and_mend(&ragged, "the header", at);
	}
	for (uint64_t size = 0; size < 3 * PAGE; size += 511) {
		put_back();
		assert_int_equal(truncate(file_of(KEY_A), (off_t)size), 0);
		assert_int_equal(check_and_mend(&ragged, "the length", size), 0);
	}
}

static void
table_entries_may_point_anywhere(void **state)
{
	static const uint64_t places[] = {
		1, 2, 63, 64, 65, 0x10001, 1048577, UINT64_MAX, UINT64_MAX - 63, (uint64_t)1 << 63, 1032193, 1032129};
	struct leat_rng rng;

	(void)state;
	leat_rng_init(&rng, 9, 0, 0, 0);
	for (int i = 0; i < 400; i++) {
		const struct leat_schema *schema = i < 200 ? &ragged : &dense;

		if (i % 200 == 0)
			make_intact(schema);
		put_back();
		for (int k = 0; k < 4; k++) {
			uint64_t place = leat_rng_below(&rng, 2)
			                         ? places[leat_rng_below(&rng, sizeof places / sizeof *places)]
			                 : leat_rng_below(&rng, 2) ? 1 + 64 * leat_rng_below(&rng, 400)
			                                           : leat_rng_u64(&rng);

			change(file_of(KEY_A), TABLE_AT + 8 * leat_rng_below(&rng, SAMPLES), &place, sizeof place);
		}
		assert_in_range(check_and_mend(schema, "the table", 0), SAMPLES - 4, SAMPLES);
	}
}

/* A machine that crashed may have written the table and not yet the header. */
static void
room_in_use_is_never_given_out_again(void **state)
{
	const uint64_t used_at = 8 + 8 + 16 + 72, zero = 0;
	struct leat_cache_stats stats;
	struct leat_cache *cache, *other;
	uint64_t used;

	(void)state;
	cache = open_cache(KEY_A, &dense, plenty);
	for (uint64_t i = 0; i < SAMPLES / 2; i++)
		put(cache, &dense, i);
	leat_cache_stats(cache, &stats);
	used = stats.bytes;
	leat_cache_close(cache);
	change(file_of(KEY_A), used_at, &zero, sizeof zero);
	cache = open_cache(KEY_A, &dense, plenty);
	leat_cache_stats(cache, &stats);
	assert_int_equal(stats.bytes, used); /* else the header has another layout than this test thinks */
	other = open_cache(KEY_A, &dense, plenty);
	assert_int_equal(check_all(cache, &dense, SAMPLES), SAMPLES / 2);
	for (uint64_t i = SAMPLES / 2; i < SAMPLES; i++)
		put(other, &dense, i);
	assert_int_equal(check_all(cache, &dense, SAMPLES), SAMPLES);
	leat_cache_close(cache);
	leat_cache_close(other);
}

/* ---- the folder ---- */

static void
set_used(const char *key, time_t seconds)
{
	struct timespec times[2] = {{seconds, 0}, {seconds, 0}};

	assert_int_equal(utimensat(AT_FDCWD, file_of(key), times, 0), 0);
}

static bool
is_there(const char *key)
{
	return access(file_of(key), F_OK) == 0;
}

static const uint64_t many = 400;

/* Makes a file that has no room left; gives its size. */
static uint64_t
fill_to_the_brim(const char *key, uint64_t size)
{
	struct leat_cache_options o = options_of(key, &ragged, size);
	struct leat_cache *cache;

	o.samples = many;
	cache = open_with(&o);
	for (uint64_t i = 0; i < many; i++)
		put(cache, &ragged, i);
	assert_in_range(check_all(cache, &ragged, many), 20, many - 1);
	leat_cache_close(cache);
	return size_of(file_of(key));
}

static uint64_t
third_size(void)
{
	uint64_t size;

	fill_cache(KEY_C, &dense, plenty);
	size = size_of(file_of(KEY_C));
	unlink(file_of(KEY_C));
	return size;
}

/* Two full files that nobody uses, then a third one, in a folder that has room for `most` of them beside it. */
static void
make_third(uint64_t most, time_t a_used, time_t b_used)
{
	uint64_t full = leat_cache_min_size(many), third = third_size();

	unlink(file_of(KEY_A));
	unlink(file_of(KEY_B));
	assert_int_equal(fill_to_the_brim(KEY_A, full), full);
	assert_int_equal(fill_to_the_brim(KEY_B, 2 * full), full);
	set_used(KEY_A, a_used);
	set_used(KEY_B, b_used);
	leat_cache_close(open_cache(KEY_C, &dense, third + most * full));
	assert_int_equal(size_of(file_of(KEY_C)), third);
	unlink(file_of(KEY_C));
}

static void
unused_files_make_room_oldest_first(void **state)
{
	(void)state;
	make_third(2, 1000, 2000);
	assert_true(is_there(KEY_A) && is_there(KEY_B));
	make_third(1, 1000, 2000);
	assert_true(!is_there(KEY_A) && is_there(KEY_B));
	make_third(1, 2000, 1000);
	assert_true(is_there(KEY_A) && !is_there(KEY_B));
	make_third(1, 1000, 1000); /* then by name */
	assert_true(!is_there(KEY_A) && is_there(KEY_B));
	make_third(0, 1000, 1000);
	assert_false(is_there(KEY_A) || is_there(KEY_B));
	make_third(0, 1000, 2000);
	assert_false(is_there(KEY_A) || is_there(KEY_B));
}

static void
a_file_is_as_old_as_its_last_use(void **state)
{
	uint64_t full = leat_cache_min_size(many), third = third_size();
	struct leat_cache_options o = options_of(KEY_A, &ragged, full);

	(void)state;
	fill_to_the_brim(KEY_A, full);
	fill_to_the_brim(KEY_B, 2 * full);
	set_used(KEY_A, 1000);
	set_used(KEY_B, 2000);
	o.samples = many;
	leat_cache_close(open_with(&o));
	leat_cache_close(open_cache(KEY_C, &dense, third + full));
	assert_true(is_there(KEY_A) && !is_there(KEY_B) && is_there(KEY_C));
}

/* Who does not know what it needs takes what is left, if that is half of all. */
static void
room_that_nobody_uses_goes_to_others(void **state)
{
	struct leat_cache *first, *second;
	uint64_t cut;

	(void)state;
	first = open_cache(KEY_A, &ragged, plenty);
	for (uint64_t i = 0; i < SAMPLES / 2; i++)
		put(first, &ragged, i);
	leat_cache_close(first);
	assert_int_equal(size_of(file_of(KEY_A)), plenty);
	set_used(KEY_A, 1000);
	second = open_cache(KEY_B, &ragged, plenty);
	cut = size_of(file_of(KEY_A));
	assert_in_range(cut, 1, 100000);
	assert_int_equal(size_of(file_of(KEY_B)), plenty - cut);
	put(second, &ragged, 1);
	assert_int_equal(check_all(second, &ragged, SAMPLES), 1);

	/* Taken up again it has what it had, and no more room as long as the other has it all. */
	first = open_cache(KEY_A, &ragged, plenty);
	assert_int_equal(check_all(first, &ragged, SAMPLES), SAMPLES / 2);
	assert_int_equal(size_of(file_of(KEY_A)) + size_of(file_of(KEY_B)), plenty);
	leat_cache_close(first);
	leat_cache_close(second);

	/* Now the other one is cut, which was used later. */
	first = open_cache(KEY_A, &ragged, plenty);
	assert_true(size_of(file_of(KEY_A)) > plenty / 2);
	assert_true(size_of(file_of(KEY_A)) + size_of(file_of(KEY_B)) <= plenty);
	for (uint64_t i = 0; i < SAMPLES; i++)
		put(first, &ragged, i);
	assert_int_equal(check_all(first, &ragged, SAMPLES), SAMPLES);

	/* Who is not alone with a file leaves it as it is: the others have it mapped. */
	second = open_cache(KEY_A, &ragged, plenty);
	assert_int_equal(check_all(second, &ragged, SAMPLES), SAMPLES);
	leat_cache_close(second);
	leat_cache_close(first);
	assert_int_equal(logged.warn, 0);
}

static void
a_file_that_has_all_samples_asks_for_no_room(void **state)
{
	struct leat_cache *cache;
	uint64_t cut;

	(void)state;
	fill_cache(KEY_A, &ragged, plenty);
	leat_cache_close(open_cache(KEY_B, &ragged, plenty));
	cut = size_of(file_of(KEY_A));
	assert_true(cut < plenty / 2);
	cache = open_cache(KEY_A, &ragged, plenty);
	assert_int_equal(size_of(file_of(KEY_A)), cut);
	assert_int_equal(check_all(cache, &ragged, SAMPLES), SAMPLES);
	leat_cache_close(cache);
}

static void
files_in_use_survive(void **state)
{
	uint64_t size = leat_cache_min_size(SAMPLES) + 200000;
	struct leat_cache *used, *next;

	(void)state;
	fill_cache(KEY_A, &ragged, size);
	used = open_cache(KEY_A, &ragged, size);
	next = open_cache(KEY_B, &ragged, size); /* no room: nothing is kept, and that is said */
	assert_int_equal(logged.warn, 1);
	assert_non_null(strstr(logged.text, "nothing is cached"));
	assert_true(is_there(KEY_A) && !is_there(KEY_B));
	put(next, &ragged, 0);
	assert_int_equal(check_all(next, &ragged, SAMPLES), 0);
	assert_int_equal(check_all(used, &ragged, SAMPLES), SAMPLES);
	leat_cache_close(next);
	next = open_cache(KEY_B, &ragged, size + leat_cache_min_size(SAMPLES) + PAGE); /* what is left has to do */
	assert_true(is_there(KEY_A) && is_there(KEY_B));
	assert_true(size_of(file_of(KEY_A)) + size_of(file_of(KEY_B)) <= size + leat_cache_min_size(SAMPLES) + PAGE);
	leat_cache_close(next);
	leat_cache_close(used);
}

static void
what_the_dead_left_behind_is_removed(void **state)
{
	(void)state;
	temp_write(&temp, ".aaaaaaaaaaaaaaaa-1234-5678.leatcache-new", "half", 4);
	temp_write(&temp, "other", "x", 1); /* is not ours to remove */
	leat_cache_close(open_cache(KEY_A, &dense, plenty));
	assert_false(temp_exists(&temp, ".aaaaaaaaaaaaaaaa-1234-5678.leatcache-new"));
	assert_true(temp_exists(&temp, "other"));
}

static void
a_folder_that_cannot_be_used_keeps_nothing_and_says_so(void **state)
{
	struct leat_cache_options o = options_of(KEY_A, &dense, plenty);
	struct leat_cache *cache;
	char path[512];

	(void)state;
	snprintf(path, sizeof path, "%s", temp_write(&temp, "file", "x", 1));
	o.dir = path;
	cache = open_with(&o);
	assert_int_equal(logged.warn, 1);
	put(cache, &dense, 1);
	assert_int_equal(check_all(cache, &dense, SAMPLES), 0);
	leat_cache_close(cache);
	snprintf(path, sizeof path, "%s/no/such", temp.folder);
	assert_int_equal(leat_cache_open(&cache, &o, &mem, &log_all, &err), LEAT_IO);
	assert_non_null(strstr(err.text, "no/such"));
	assert_null(cache);
	/* A link in the file's place is not followed. */
	snprintf(path, sizeof path, "%s", temp.folder);
	assert_int_equal(symlink("file", file_of(KEY_A)), 0);
	logged.warn = 0;
	cache = open_with(&o);
	assert_int_equal(logged.warn, 1);
	leat_cache_close(cache);
}

static void
a_full_disk_ends_the_keeping_and_nothing_else(void **state)
{
	struct rlimit before, limit;
	struct leat_cache *cache;
	uint64_t there;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	cache = open_cache(KEY_A, &ragged, plenty);
	limit = before;
	limit.rlim_cur = ROOM_AT + 5000; /* writes behind it fail, as on a full disk */
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	for (uint64_t i = 0; i < SAMPLES; i++)
		put(cache, &ragged, i);
	there = check_all(cache, &ragged, SAMPLES);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_in_range(there, 2, SAMPLES - 1);
	assert_int_equal(logged.warn, 1);
	assert_non_null(strstr(logged.text, "cannot add more samples"));
	assert_non_null(strstr(logged.text, "too large")); /* in the system's words */
	leat_cache_close(cache);
	cache = open_cache(KEY_A, &ragged, plenty);
	assert_int_equal(check_all(cache, &ragged, SAMPLES), there);
	leat_cache_close(cache);
}

/* ---- many at once ---- */

struct crowd {
	struct leat_cache *cache[2]; /* two users of one file */
	const struct leat_schema *schema;
	atomic_int wrong;
};

static void *
put_and_get(void *arg)
{
	struct crowd *crowd = arg;
	struct made *made = malloc(sizeof *made);
	struct leat_sample got;

	for (int round = 0; made && round < 20; round++) {
		for (uint64_t i = 0; i < SAMPLES; i++) {
			struct leat_cache *cache = crowd->cache[(i + (uint64_t)round) % 2];

			make_sample(crowd->schema, i, made);
			leat_cache_put(cache, i, &made->sample);
			if (!leat_cache_get(cache, i, &got) || !is_sample(crowd->schema, i, &got))
				atomic_fetch_add(&crowd->wrong, 1);
		}
	}
	free(made);
	return NULL;
}

static void
many_threads_and_users_share_one_cache(void **state)
{
	(void)state;
	for (int way = 0; way < 2; way++) {
		struct crowd crowd = {.schema = &ragged};
		pthread_t thread[6];

		crowd.cache[0] = open_cache(way ? KEY_A : NULL, &ragged, plenty);
		crowd.cache[1] = way ? open_cache(KEY_A, &ragged, plenty) : crowd.cache[0];
		for (int i = 0; i < 6; i++)
			assert_int_equal(pthread_create(&thread[i], NULL, put_and_get, &crowd), 0);
		for (int i = 0; i < 6; i++)
			assert_int_equal(pthread_join(thread[i], NULL), 0);
		assert_int_equal(crowd.wrong, 0);
		leat_cache_close(crowd.cache[0]);
		if (way)
			leat_cache_close(crowd.cache[1]);
	}
}

static void
every_failing_allocation_is_survived(void **state)
{
	(void)state;
	for (int way = 0; way < 2; way++) {
		struct leat_cache_options o = options_of(way ? KEY_A : NULL, &ragged, plenty);
		struct leat_cache *cache = NULL;
		long n = 0;

		for (; !cache; n++) {
			atomic_store(&mem.fail_after, n);
			leat_err_clear(&err);
			if (leat_cache_open(&cache, &o, &mem, &log_all, &err) != LEAT_OK) {
				assert_int_equal(err.status, LEAT_NOMEM);
				assert_null(cache);
				assert_int_equal(mem.used, 0);
			}
			assert_true(n < 100);
		}
		assert_true(n > 1);
		put(cache, &ragged, 1); /* asks for no memory */
		assert_int_equal(check_all(cache, &ragged, SAMPLES), 1);
		atomic_store(&mem.fail_after, -1);
		leat_cache_close(cache);
	}
	leat_cache_close(NULL);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int
main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_was_put_comes_back_as_it_was),
		CASE(a_full_cache_keeps_what_it_has),
		CASE(a_cache_takes_no_more_than_it_may),
		CASE(a_cache_too_small_for_its_table_is_refused),
		CASE(another_key_or_number_of_samples_is_not_taken),
		CASE(a_file_larger_than_it_may_be_now_is_made_anew),
		CASE(damaged_samples_are_noticed),
		CASE(damaged_headers_are_noticed),
		CASE(table_entries_may_point_anywhere),
		CASE(room_in_use_is_never_given_out_again),
		CASE(unused_files_make_room_oldest_first),
		CASE(a_file_is_as_old_as_its_last_use),
		CASE(room_that_nobody_uses_goes_to_others),
		CASE(a_file_that_has_all_samples_asks_for_no_room),
		CASE(files_in_use_survive),
		CASE(what_the_dead_left_behind_is_removed),
		CASE(a_folder_that_cannot_be_used_keeps_nothing_and_says_so),
		CASE(a_full_disk_ends_the_keeping_and_nothing_else),
		CASE(many_threads_and_users_share_one_cache),
		CASE(every_failing_allocation_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
