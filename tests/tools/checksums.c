/* checksums.c - checksums LIST DATA: runs every spec of a list and prints the list with the checksums found
 *
 * A line is `checksum folder seed epochs rank/world on_error spec`. In the spec, @ stands for the folder DATA,
 * where the data of all specs is; relative paths are relative to DATA/folder ('-': the current folder). Lines
 * that begin with # are kept as they are.
 *
 * A checksum covers everything a consumer can see through leat.h: names, types and shapes of all fields, bytes,
 * offsets, shapes, positions and valid flags of all batches, where epochs end, bad samples, and the status that
 * ended the feed. It does not cover messages, so they may be reworded. Specs run with 1 to 4 threads in turn,
 * because the number of threads must not matter. For a spec that does not open, the status stands in place of the
 * checksum: IO where its data is not there.
 *
 * Uses nothing of Leat but leat.h, so that the inside can change. */
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/evp.h>

#include "leat.h"

enum {
	DIGITS = 16,           /* of a checksum */
	MAX_SAMPLES = 1 << 14, /* of one spec; some epochs in the tests are endless */
	MAX_BYTES = 1 << 28,   /* the same */
	MEMORY_MIB = 512,      /* more than any spec of a list needs */
};

static const char *const on_error_names[] = {"fail", "skip", "replace"};

static _Noreturn void
fail(const char *what, const char *why)
{
	fprintf(stderr, "checksums: %s: %s\n", what, why);
	exit(1);
}

/* ---- a checksum ---- */

static EVP_MD_CTX *sha;

static void
add_bytes(const void *bytes, size_t len)
{
	if (EVP_DigestUpdate(sha, bytes, len) != 1)
		fail("SHA-256", "libcrypto cannot compute it");
}

static void
add_number(uint64_t n)
{
	unsigned char bytes[8];

	for (int i = 0; i < 8; i++)
		bytes[i] = (unsigned char)(n >> (8 * i));
	add_bytes(bytes, sizeof bytes);
}

static void
add_numbers(const int64_t *n, int64_t count)
{
	add_number((uint64_t)count);
	for (int64_t i = 0; i < count; i++)
		add_number((uint64_t)n[i]);
}

/* With its end, so that "a", "bc" is not "ab", "c". */
static void
add_text(const char *text)
{
	add_bytes(text, strlen(text) + 1);
}

static void
add_fields(const struct leat_feed *feed)
{
	add_number(leat_samples(feed));
	add_number(leat_batches(feed));
	add_number((uint64_t)leat_batch_size(feed));
	for (int i = 0; i < leat_field_count(feed); i++) {
		const struct leat_field *field = leat_field_at(feed, i);

		add_text(field->name);
		add_text(leat_dtype_name(field->dtype));
		add_numbers(field->shape, field->ndim);
	}
}

static void
add_tensor(const struct leat_batch *batch, const struct leat_field *field)
{
	int64_t count = leat_batch_count(batch);
	struct leat_tensor tensor;
	struct leat_err err;

	if (leat_batch_field(batch, field->name, &tensor, &err) != LEAT_OK)
		fail(field->name, err.text);
	add_text(leat_dtype_name(tensor.dtype));
	add_numbers(tensor.shape, tensor.ndim);
	if (tensor.offsets)
		add_numbers(tensor.offsets, count + 1);
	if (tensor.sample_shapes)
		add_numbers(tensor.sample_shapes, count * field->ndim);
	add_number(tensor.bytes);
	add_bytes(tensor.data, tensor.bytes);
}

static void
add_batch(const struct leat_feed *feed, const struct leat_batch *batch)
{
	int64_t count = leat_batch_count(batch);

	add_number(leat_batch_epoch(batch));
	add_number((uint64_t)count);
	add_bytes(leat_batch_valid(batch), (size_t)count);
	for (int64_t i = 0; i < count; i++)
		add_number(leat_batch_position(batch, i));
	for (int i = 0; i < leat_field_count(feed); i++)
		add_tensor(batch, leat_field_at(feed, i));
}

static void
add_bad(const struct leat_feed *feed)
{
	const struct leat_bad *bad;

	for (uint64_t i = 0; (bad = leat_bad_at(feed, i)) != NULL; i++) {
		add_number(bad->epoch);
		add_number(bad->position);
		add_number(bad->sample);
		add_number(bad->offset);
		add_number(bad->replaced);
	}
}

/* ---- a spec ---- */

static enum leat_status
take_all(struct leat_feed *feed, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;
	struct leat_stats stats = {0};

	add_fields(feed);
	while ((status == LEAT_OK || status == LEAT_END) && stats.samples < MAX_SAMPLES && stats.bytes < MAX_BYTES) {
		struct leat_batch *batch;

		status = leat_next(feed, &batch, err);
		add_text(leat_status_name(status));
		if (status == LEAT_OK) {
			add_batch(feed, batch);
			leat_release(batch);
		}
		leat_stats(feed, &stats);
	}
	add_bad(feed);
	return status;
}

static void
run(const char *spec, const struct leat_options *options, char checksum[DIGITS + 1])
{
	unsigned char hash[EVP_MAX_MD_SIZE];
	struct leat_feed *feed = NULL;
	struct leat_err err;
	enum leat_status status;

	if (EVP_DigestInit_ex(sha, EVP_sha256(), NULL) != 1)
		fail("SHA-256", "libcrypto does not have it");
	status = leat_open(spec, options, &feed, &err);
	if (status == LEAT_OK)
		status = take_all(feed, &err);
	if (feed && (status == LEAT_NOMEM || status == LEAT_LIMIT || status == LEAT_INTERNAL))
		fail(spec, err.text); /* nothing that a checksum should keep */
	if (EVP_DigestFinal_ex(sha, hash, NULL) != 1)
		fail("SHA-256", "libcrypto cannot compute it");
	if (!feed)
		snprintf(checksum, DIGITS + 1, "%s", leat_status_name(status));
	for (int i = 0; feed && i < DIGITS / 2; i++)
		sprintf(checksum + 2 * i, "%02x", hash[i]);
	leat_close(feed);
}

/* ---- the list ---- */

/* `text` with DATA in the place of each @. */
static char *
fill_in(const char *text, const char *data)
{
	size_t cap = strlen(text) + 1, len = 0;
	char *out;

	for (const char *c = text; *c; c++)
		cap += *c == '@' ? strlen(data) : 0;
	out = malloc(cap);
	if (!out)
		fail(text, "no memory");
	for (const char *c = text; *c; c++)
		len += (size_t)(*c == '@' ? snprintf(out + len, cap - len, "%s", data) : (out[len] = *c, 1));
	out[len] = '\0';
	return out;
}

static bool
enter(const char *data, const char *folder, int home)
{
	char path[4096];

	if (fchdir(home) != 0)
		fail(folder, "the folder that the program began in is gone");
	snprintf(path, sizeof path, "%s/%s", data, folder);
	return strcmp(folder, "-") == 0 || chdir(path) == 0;
}

static void
check_line(char *line, unsigned number, const char *data, int home)
{
	char before[DIGITS + 1], folder[65], on_error[8], checksum[DIGITS + 1];
	struct leat_options options;
	int at = 0, policy = 0;
	char *spec;

	leat_options_init(&options);
	options.threads = 1 + number % 4;
	options.memory = (size_t)MEMORY_MIB << 20;
	if (sscanf(line, "%16s %64s %" SCNu64 " %" SCNu64 " %d/%d %7s %n", before, folder, &options.seed,
	           &options.epochs, &options.rank, &options.world, on_error, &at) != 7 ||
	    at == 0)
		fail(line, "expected 'checksum folder seed epochs rank/world on_error spec'");
	while (policy < 3 && strcmp(on_error, on_error_names[policy]) != 0)
		policy++;
	options.on_error = (enum leat_on_error)policy;
	spec = fill_in(line + at, data);
	if (enter(data, folder, home))
		run(spec, &options, checksum);
	else
		snprintf(checksum, sizeof checksum, "IO");
	printf("%s %s\n", checksum, line + strlen(before) + 1);
	fflush(stdout);
	free(spec);
}

int
main(int argc, char **argv)
{
	int home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	unsigned number = 0;
	size_t cap = 0;
	char *line = NULL, *data;
	ssize_t len;
	FILE *list;

	if (argc != 3) {
		fprintf(stderr, "usage: checksums LIST DATA\n");
		return 2;
	}
	list = fopen(argv[1], "r");
	data = realpath(argv[2], NULL);
	sha = EVP_MD_CTX_new();
	if (!list || !data || !sha || home < 0)
		fail(!list ? argv[1] : argv[2], "cannot be opened");
	while ((len = getline(&line, &cap, list)) > 0) {
		line[strcspn(line, "\n")] = '\0';
		if (line[0] == '#' || line[0] == '\0')
			puts(line);
		else
			check_line(line, number++, data, home);
	}
	free(line);
	free(data);
	EVP_MD_CTX_free(sha);
	fclose(list);
	close(home);
	return 0;
}
