/* text_input.c - see text_input.h */
#include "table/text_input.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "base/mem.h"
#include "table/csv_split.h"

enum { INPUT = 128 * 1024 };

/* The layout of ZSTD_inBuffer and ZSTD_outBuffer. */
struct zstd_buffer {
	const void *bytes;
	size_t size, pos;
};

/* Functions of libzstd; its streaming API is stable since 1.4. */
struct zstd {
	void *library;
	void *(*create)(void);
	size_t (*free)(void *);
	size_t (*decompress)(void *, struct zstd_buffer *, struct zstd_buffer *);
	unsigned (*is_error)(size_t);
	const char *(*error_name)(size_t);
	void *stream;
};

struct leat_text_input {
	struct leat_mem *mem;
	char *name; /* for errors */
	int fd;
	struct leat_csv_bytes bytes; /* in place of fd, if it has a `read` */
	unsigned char *input;
	size_t len, pos; /* of `input` */
	uint64_t offset; /* of the file, after `input` */
	bool ended;      /* all of the file has been read */
	bool inside;     /* a member or frame */
	z_stream z;
	bool z_ready;
	struct zstd zstd;
	enum leat_status (*read)(struct leat_text_input *in, void *to, size_t len, size_t *got, struct leat_err *err);
};

/* ---- the file ---- */

static enum leat_status
load(struct leat_text_input *in, struct leat_err *err)
{
	enum leat_status status;
	size_t got;
	ssize_t n;

	if (in->pos > 0 && in->pos < in->len)
		memmove(in->input, in->input + in->pos, in->len - in->pos);
	in->len -= in->pos;
	in->pos = 0;
	if (in->bytes.read) {
		status = in->bytes.read(in->bytes.arg, in->input + in->len, INPUT - in->len, &got, err);
		if (status != LEAT_OK)
			return status;
		in->ended = got == 0;
		in->len += got;
		in->offset += got;
		return LEAT_OK;
	}
	do
		n = read(in->fd, in->input + in->len, INPUT - in->len);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return leat_fail_errno(err, errno, "cannot read '%s'", in->name);
	in->ended = n == 0;
	in->len += (size_t)n;
	in->offset += (uint64_t)n;
	return LEAT_OK;
}

static enum leat_status
read_plain(struct leat_text_input *in, void *to, size_t len, size_t *got, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	if (in->pos == in->len && !in->ended)
		status = load(in, err);
	if (status != LEAT_OK)
		return status;
	*got = in->len - in->pos < len ? in->len - in->pos : len;
	memcpy(to, in->input + in->pos, *got);
	in->pos += *got;
	return LEAT_OK;
}

/* ---- compressed ---- */

static enum leat_status
fail_truncated(const struct leat_text_input *in, const char *what, struct leat_err *err)
{
	return leat_fail(err, LEAT_DATA,
	                 "'%s' is truncated: its %s data ends in the middle, after %llu bytes; get it again", in->name,
	                 what, (unsigned long long)in->offset);
}

/* Between two members: *more tells whether there is another. Zeros after the last one are padding. */
static enum leat_status
begin_member(struct leat_text_input *in, const char *magic, size_t magic_len, const char *what, bool *more,
             struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	*more = false;
	for (;;) {
		while (in->pos < in->len && in->input[in->pos] == 0)
			in->pos++;
		if (in->len - in->pos >= magic_len || in->ended)
			break;
		status = load(in, err);
		if (status != LEAT_OK)
			return status;
	}
	if (in->pos == in->len)
		return LEAT_OK;
	if (in->len - in->pos < magic_len || memcmp(in->input + in->pos, magic, magic_len) != 0)
		return leat_fail(err, LEAT_DATA, "'%s' has other bytes after its %s data, from byte %llu on", in->name,
		                 what, (unsigned long long)(in->offset - (in->len - in->pos)));
	*more = in->inside = true;
	return LEAT_OK;
}

static enum leat_status
inflate_some(struct leat_text_input *in, void *to, size_t len, size_t *got, struct leat_err *err)
{
	int how;

	in->z.next_in = in->input + in->pos;
	in->z.avail_in = (unsigned)(in->len - in->pos);
	in->z.next_out = to;
	in->z.avail_out = (unsigned)(len < UINT_MAX ? len : UINT_MAX);
	how = inflate(&in->z, Z_NO_FLUSH);
	in->pos = in->len - in->z.avail_in;
	*got = (size_t)((unsigned char *)in->z.next_out - (unsigned char *)to);
	if (how == Z_STREAM_END) {
		in->inside = false;
		inflateReset(&in->z);
	} else if (how == Z_MEM_ERROR) {
		return leat_fail(err, LEAT_NOMEM, "no memory to decompress '%s'", in->name);
	} else if (how != Z_OK && how != Z_BUF_ERROR) {
		return leat_fail(err, LEAT_DATA, "'%s' is damaged: its gzip data is wrong before byte %llu (%s)",
		                 in->name, (unsigned long long)(in->offset - (in->len - in->pos)),
		                 in->z.msg ? in->z.msg : "unknown error");
	}
	return LEAT_OK;
}

static enum leat_status
unzstd_some(struct leat_text_input *in, void *to, size_t len, size_t *got, struct leat_err *err)
{
	struct zstd_buffer out = {to, len, 0}, from = {in->input, in->len, in->pos};
	size_t left = in->zstd.decompress(in->zstd.stream, &out, &from);

	in->pos = from.pos;
	*got = out.pos;
	if (in->zstd.is_error(left))
		return leat_fail(err, LEAT_DATA, "'%s' is damaged: its Zstandard data is wrong before byte %llu (%s)",
		                 in->name, (unsigned long long)(in->offset - (in->len - in->pos)),
		                 in->zstd.error_name(left));
	in->inside = left != 0;
	return LEAT_OK;
}

/* Reads with one of the two above. */
static enum leat_status
read_members(struct leat_text_input *in, void *to, size_t len, size_t *got, struct leat_err *err)
{
	bool gzip = in->z_ready, more = true;
	enum leat_status status = LEAT_OK;

	*got = 0;
	while (status == LEAT_OK && *got == 0 && more) {
		if (!in->inside)
			status = begin_member(in, gzip ? "\x1f\x8b" : "\x28\xb5\x2f\xfd", gzip ? 2 : 4,
			                      gzip ? "gzip" : "Zstandard", &more, err);
		if (status != LEAT_OK || !more)
			break;
		status = gzip ? inflate_some(in, to, len, got, err) : unzstd_some(in, to, len, got, err);
		if (status == LEAT_OK && *got == 0 && in->inside && in->pos == in->len) {
			if (in->ended)
				return fail_truncated(in, gzip ? "gzip" : "Zstandard", err);
			status = load(in, err);
		}
	}
	return status;
}

static enum leat_status
begin_gzip(struct leat_text_input *in, struct leat_err *err)
{
	if (inflateInit2(&in->z, 15 + 16) != Z_OK)
		return leat_fail(err, LEAT_NOMEM, "no memory to decompress '%s'", in->name);
	in->z_ready = true;
	in->read = read_members;
	return LEAT_OK;
}

static enum leat_status
begin_zstd(struct leat_text_input *in, struct leat_err *err)
{
	struct zstd *zstd = &in->zstd;
	static const char *const names[] = {"ZSTD_createDStream", "ZSTD_freeDStream", "ZSTD_decompressStream",
	                                    "ZSTD_isError", "ZSTD_getErrorName"};
	void *found[5] = {NULL};

	zstd->library = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
	for (size_t i = 0; zstd->library && i < 5; i++)
		if (!(found[i] = dlsym(zstd->library, names[i])))
			return leat_fail(err, LEAT_UNSUPPORTED, "libzstd.so.1 has no %s", names[i]);
	if (!zstd->library)
		return leat_fail(
			err, LEAT_UNSUPPORTED,
			"reading '%s' needs libzstd; install it (apt-get install libzstd1), or compress the file "
			"with gzip",
			in->name);
	memcpy(&zstd->create, &found[0], sizeof(void *));
	memcpy(&zstd->free, &found[1], sizeof(void *));
	memcpy(&zstd->decompress, &found[2], sizeof(void *));
	memcpy(&zstd->is_error, &found[3], sizeof(void *));
	memcpy(&zstd->error_name, &found[4], sizeof(void *));
	zstd->stream = zstd->create();
	if (!zstd->stream)
		return leat_fail(err, LEAT_NOMEM, "no memory to decompress '%s'", in->name);
	in->read = read_members;
	return LEAT_OK;
}

/* ---- all of it ---- */

static enum leat_status
open_file(struct leat_text_input *in, const char *path, struct leat_err *err)
{
	struct stat st;

	in->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (in->fd < 0)
		return leat_fail_errno(err, errno, "cannot open '%s'", in->name);
	if (fstat(in->fd, &st) == 0 && S_ISDIR(st.st_mode))
		return leat_fail(err, LEAT_INVALID, "'%s' is a folder; name its files", in->name);
	return LEAT_OK;
}

/* Looks at the first bytes, however a pipe delivers them. */
static enum leat_status
find_packing(struct leat_text_input *in, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	while (status == LEAT_OK && in->len < 4 && !in->ended)
		status = load(in, err);
	in->read = read_plain;
	if (status == LEAT_OK && in->len >= 2 && memcmp(in->input, "\x1f\x8b", 2) == 0)
		return begin_gzip(in, err);
	if (status == LEAT_OK && in->len >= 4 && memcmp(in->input, "\x28\xb5\x2f\xfd", 4) == 0)
		return begin_zstd(in, err);
	return status;
}

/* From `bytes`, or else the file at `path`. */
static enum leat_status
open_input(struct leat_text_input **input, const char *path, const struct leat_csv_bytes *bytes, const char *name,
           struct leat_mem *mem, struct leat_err *err)
{
	struct leat_text_input *in = leat_alloc(mem, sizeof(*in));
	enum leat_status status;

	*input = NULL;
	if (!in)
		return leat_fail_mem(err, mem, sizeof(*in), "reading a file");
	in->mem = mem;
	in->fd = -1;
	in->name = leat_strdup(mem, name);
	in->input = leat_alloc(mem, INPUT);
	status = in->name && in->input ? LEAT_OK : leat_fail_mem(err, mem, INPUT, "reading a file");
	if (status == LEAT_OK && bytes)
		in->bytes = *bytes;
	else if (status == LEAT_OK)
		status = open_file(in, path, err);
	if (status == LEAT_OK)
		status = find_packing(in, err);
	if (status == LEAT_OK)
		*input = in;
	else
		leat_text_input_close(in);
	return status;
}

enum leat_status
leat_text_input_open(struct leat_text_input **input, const char *path, const char *name, struct leat_mem *mem,
                     struct leat_err *err)
{
	return open_input(input, path, NULL, name, mem, err);
}

enum leat_status
leat_text_input_open_bytes(struct leat_text_input **input, const struct leat_csv_bytes *bytes, const char *name,
                           struct leat_mem *mem, struct leat_err *err)
{
	return open_input(input, name, bytes, name, mem, err);
}

void
leat_text_input_close(struct leat_text_input *in)
{
	if (!in)
		return;
	if (in->z_ready)
		inflateEnd(&in->z);
	if (in->zstd.stream)
		in->zstd.free(in->zstd.stream);
	if (in->zstd.library)
		dlclose(in->zstd.library);
	if (in->fd >= 0)
		close(in->fd);
	leat_free(in->mem, in->name);
	leat_free(in->mem, in->input);
	leat_free(in->mem, in);
}

enum leat_status
leat_text_input_read(void *input, void *to, size_t len, size_t *got, struct leat_err *err)
{
	struct leat_text_input *in = input;

	*got = 0;
	return in->read(in, to, len, got, err);
}

uint64_t
leat_text_input_offset(const struct leat_text_input *in)
{
	return in->offset - (in->len - in->pos);
}
