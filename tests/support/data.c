/* data.c - see data.h */
#include "data.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>
#include <jpeglib.h>

#include "format/example.h"
#include "format/record.h"

/* ---- samples ---- */

unsigned char *
data_jpeg(int width, int height, unsigned seed, size_t *size)
{
	struct jpeg_compress_struct cinfo;
	struct jpeg_error_mgr errors;
	unsigned char *out = NULL, *row = malloc((size_t)width * 3);
	unsigned long bytes = 0;

	assert_non_null(row);
	cinfo.err = jpeg_std_error(&errors);
	jpeg_create_compress(&cinfo);
	jpeg_mem_dest(&cinfo, &out, &bytes);
	cinfo.image_width = (JDIMENSION)width;
	cinfo.image_height = (JDIMENSION)height;
	cinfo.input_components = 3;
	cinfo.in_color_space = JCS_RGB;
	jpeg_set_defaults(&cinfo);
	jpeg_start_compress(&cinfo, TRUE);
	for (int y = 0; y < height; y++) {
		for (int x = 0; x < width * 3; x++)
			row[x] = (unsigned char)((unsigned)(x * y) / 7 + (unsigned)x * (3 + seed % 5) + seed * 37);
		jpeg_write_scanlines(&cinfo, &row, 1);
	}
	jpeg_finish_compress(&cinfo);
	jpeg_destroy_compress(&cinfo);
	free(row);
	*size = bytes;
	return out;
}

/* Writes 65500 x 65500 into the frame header. */
static void
boast(unsigned char *jpeg, size_t size)
{
	static const unsigned char sof[] = {0xff, 0xc0}, claim[] = {0xff, 0xdc, 0xff, 0xdc};
	unsigned char *frame = memmem(jpeg, size, sof, sizeof sof);

	assert_non_null(frame);
	memcpy(frame + 5, claim, sizeof claim);
}

static void
add_image(struct leat_example *example, size_t sample, enum data_kind kind)
{
	int width = kind == DATA_LARGE ? 2000 : 30 + (int)(sample * 7 % 13);
	int height = kind == DATA_LARGE ? 1500 : 24 + (int)(sample * 5 % 11);
	size_t size;
	unsigned char *jpeg = data_jpeg(width, height, (unsigned)sample, &size);

	if (kind == DATA_BOAST)
		boast(jpeg, size);
	leat_example_add_bytes(example, "image", jpeg, kind == DATA_CUT ? size / 2 : size);
	free(jpeg);
}

static void
add_sample(struct leat_example *example, size_t sample, enum data_kind kind)
{
	int64_t label = (int64_t)sample, tokens[7];
	float box[4];

	for (size_t i = 0; i < 7; i++)
		tokens[i] = (int64_t)(sample * (i + 1)) << (4 * i);
	for (size_t i = 0; i < 4; i++)
		box[i] = (float)(sample + i) / 8;
	leat_example_add_int64s(example, "label", &label, 1);
	add_image(example, sample, kind);
	leat_example_add_int64s(example, "tokens", tokens, sample % 7);
	leat_example_add_floats(example, "box", box, 4);
}

/* ---- files ---- */

const char *
data_path(const struct data *data, size_t file)
{
	static char path[300];

	snprintf(path, sizeof path, "%s/part-%02zu.tfrecord", data->folder, file);
	return path;
}

const char *
data_source(const struct data *data)
{
	static char source[300];

	snprintf(source, sizeof source, "tfrecord('%s/part-*.tfrecord')", data->folder);
	return source;
}

static void
make_folder(struct data *data)
{
	const char *where = getenv("TMPDIR");

	snprintf(data->folder, sizeof data->folder, "%.150s/leat-test-XXXXXX", where && *where ? where : "/tmp");
	assert_non_null(mkdtemp(data->folder));
}

static void
append(struct data *data, size_t file, struct leat_tfrecord_writer *writer, struct leat_example *example)
{
	uint64_t offset = writer->out->size;
	const void *record;
	size_t len;

	assert_int_equal(leat_example_finish(example, &record, &len, NULL), LEAT_OK);
	assert_int_equal(leat_tfrecord_writer_append(writer, record, len, NULL), LEAT_OK);
	data->place[data->records++] = (struct data_place){file, offset, len + LEAT_TFRECORD_FRAME};
}

static void
begin(struct data *data, size_t files, size_t records)
{
	*data = (struct data){.files = files};
	make_folder(data);
	data->place = calloc(records + 1, sizeof *data->place);
	assert_non_null(data->place);
}

void
data_make(struct data *data, size_t files, const size_t *counts, enum data_kind (*kind)(size_t sample))
{
	struct leat_tfrecord_writer writer;
	struct leat_example example;
	struct leat_mem mem;
	size_t records = 0;

	for (size_t i = 0; i < files; i++)
		records += counts[i];
	begin(data, files, records);
	leat_mem_init(&mem, SIZE_MAX);
	leat_example_init(&example, &mem, 64 << 20);
	for (size_t i = 0; i < files; i++) {
		assert_int_equal(leat_tfrecord_writer_open(&writer, data_path(data, i), &mem, NULL), LEAT_OK);
		for (size_t k = 0; k < counts[i]; k++) {
			leat_example_begin(&example);
			add_sample(&example, data->records, kind ? kind(data->records) : DATA_GOOD);
			append(data, i, &writer, &example);
		}
		assert_int_equal(leat_tfrecord_writer_close(&writer, NULL), LEAT_OK);
	}
	leat_example_free(&example);
	assert_int_equal(mem.used, 0);
}

void
data_make_file(struct data *data, size_t records, void (*make)(struct leat_example *example, size_t i))
{
	struct leat_tfrecord_writer writer;
	struct leat_example example;
	struct leat_mem mem;

	begin(data, 1, records);
	leat_mem_init(&mem, SIZE_MAX);
	leat_example_init(&example, &mem, 64 << 20);
	assert_int_equal(leat_tfrecord_writer_open(&writer, data_path(data, 0), &mem, NULL), LEAT_OK);
	for (size_t i = 0; i < records; i++) {
		leat_example_begin(&example);
		make(&example, i);
		append(data, 0, &writer, &example);
	}
	assert_int_equal(leat_tfrecord_writer_close(&writer, NULL), LEAT_OK);
	leat_example_free(&example);
	assert_int_equal(mem.used, 0);
}

static void
copy_file(const char *from, const char *to)
{
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_TRUNC, 0666);
	ssize_t n;

	assert_true(in >= 0 && out >= 0);
	while ((n = copy_file_range(in, NULL, out, NULL, 1 << 20, 0)) > 0)
		;
	assert_int_equal(n, 0);
	close(in);
	close(out);
}

void
data_copy(struct data *to, const struct data *from)
{
	char source[300];

	*to = *from;
	make_folder(to);
	to->place = malloc((from->records + 1) * sizeof *to->place);
	assert_non_null(to->place);
	memcpy(to->place, from->place, from->records * sizeof *to->place);
	for (size_t i = 0; i < from->files; i++) {
		strcpy(source, data_path(from, i));
		copy_file(source, data_path(to, i));
	}
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

void
data_remove(struct data *data)
{
	if (data->folder[0])
		nftw(data->folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	free(data->place);
	*data = (struct data){0};
}

void
data_forget_indexes(const struct data *data)
{
	char path[300];

	for (size_t i = 0; i < data->files; i++) {
		snprintf(path, sizeof path, "%s/.part-%02zu.tfrecord.leatidx", data->folder, i);
		unlink(path);
	}
}

/* ---- damage ---- */

static void
flip_byte(const struct data *data, size_t sample, uint64_t into)
{
	int fd = open(data_path(data, data->place[sample].file), O_RDWR);
	off_t at = (off_t)(data->place[sample].offset + into);
	unsigned char byte;

	assert_true(fd >= 0);
	assert_int_equal(pread(fd, &byte, 1, at), 1);
	byte ^= 0x10;
	assert_int_equal(pwrite(fd, &byte, 1, at), 1);
	close(fd);
}

void
data_flip_payload(const struct data *data, size_t sample)
{
	flip_byte(data, sample, LEAT_TFRECORD_HEAD + (data->place[sample].length - LEAT_TFRECORD_FRAME) / 2);
}

void
data_flip_header(const struct data *data, size_t sample)
{
	flip_byte(data, sample, 1);
}

void
data_swap_halves(const struct data *data, size_t sample)
{
	size_t len = (size_t)data->place[sample].length - LEAT_TFRECORD_FRAME, half = len / 2;
	off_t at = (off_t)data->place[sample].offset + LEAT_TFRECORD_HEAD;
	int fd = open(data_path(data, data->place[sample].file), O_RDWR);
	unsigned char *bytes = malloc(len), *swapped = malloc(len), crc[4];

	assert_true(fd >= 0 && bytes && swapped);
	assert_int_equal(pread(fd, bytes, len, at), (ssize_t)len);
	memcpy(swapped, bytes + half, len - half);
	memcpy(swapped + len - half, bytes, half);
	leat_store32(crc, leat_tfrecord_crc(swapped, len));
	assert_int_equal(pwrite(fd, swapped, len, at), (ssize_t)len);
	assert_int_equal(pwrite(fd, crc, 4, at + (off_t)len), 4);
	close(fd);
	free(bytes);
	free(swapped);
}

/* ---- the page cache ---- */

static bool
is_cached(int fd, size_t size)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), pages = (size + page - 1) / page;
	unsigned char *there = calloc(pages, 1);
	void *map = mmap(NULL, size, PROT_READ, MAP_SHARED, fd, 0);
	bool cached = false;

	assert_non_null(there);
	assert_true(map != MAP_FAILED);
	assert_int_equal(mincore(map, size, there), 0);
	for (size_t i = 0; i < pages; i++)
		cached |= there[i] & 1;
	munmap(map, size);
	free(there);
	return cached;
}

bool
data_drop_cache(const struct data *data)
{
	bool dropped = true;

	for (size_t i = 0; i < data->files; i++) {
		int fd = open(data_path(data, i), O_RDONLY);
		off_t size;

		assert_true(fd >= 0);
		size = lseek(fd, 0, SEEK_END);
		fsync(fd);
		posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
		dropped &= size == 0 || !is_cached(fd, (size_t)size);
		close(fd);
	}
	return dropped;
}
