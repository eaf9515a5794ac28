/* jpeg_restart.c - see jpeg_restart.h
 *
 * libjpeg-turbo reads the coefficients and writes them again. Any error or warning ends the attempt: it is better to
 * keep a slightly damaged file as it is. */
#include "image/jpeg_restart.h"

#include <setjmp.h>
#include <stdint.h>
#include <stdio.h> /* needed by jpeglib.h */
#include <stdlib.h>

#include <jpeglib.h>

enum { SEGMENTS = 16, MAX_SEGMENT = 0xffff };

struct transcoding {
	struct jpeg_error_mgr manager; /* first: `fail` gets a pointer to it */
	jmp_buf failed;
	struct jpeg_decompress_struct in;
	struct jpeg_compress_struct to;
	unsigned char *bytes;
	unsigned long size;
};

static _Noreturn void
fail(j_common_ptr cinfo)
{
	longjmp(((struct transcoding *)(void *)cinfo->err)->failed, 1);
}

static void
fail_at_warnings(j_common_ptr cinfo, int level)
{
	if (level < 0)
		fail(cinfo);
}

static void
be_silent(j_common_ptr cinfo)
{
	(void)cinfo;
}

/* The library writes the JFIF and Adobe segments itself. */
static bool
is_written_anyway(const struct jpeg_compress_struct *to, const struct jpeg_marker_struct *segment)
{
	const JOCTET *data = segment->data;

	if (to->write_JFIF_header && segment->marker == JPEG_APP0 && segment->data_length >= 5 && data[0] == 'J' &&
	    data[1] == 'F' && data[2] == 'I' && data[3] == 'F')
		return true;
	return to->write_Adobe_marker && segment->marker == JPEG_APP0 + 14 && segment->data_length >= 5 &&
	       data[0] == 'A' && data[1] == 'd' && data[2] == 'o' && data[3] == 'b' && data[4] == 'e';
}

static void
read_all(struct transcoding *t, const void *bytes, size_t size)
{
	jpeg_create_decompress(&t->in);
	jpeg_mem_src(&t->in, bytes, size);
	jpeg_save_markers(&t->in, JPEG_COM, MAX_SEGMENT);
	for (int i = 0; i < SEGMENTS; i++)
		jpeg_save_markers(&t->in, JPEG_APP0 + i, MAX_SEGMENT);
	jpeg_read_header(&t->in, TRUE);
}

static void
write_all(struct transcoding *t, jvirt_barray_ptr *coefficients, unsigned interval)
{
	jpeg_create_compress(&t->to);
	jpeg_copy_critical_parameters(&t->in, &t->to);
	t->to.restart_interval = interval;
	/* These define the color space. */
	t->to.write_JFIF_header = t->in.saw_JFIF_marker;
	t->to.write_Adobe_marker = t->in.saw_Adobe_marker;
	t->to.optimize_coding = TRUE; /* new tables; those of the file may lack a code */
	jpeg_mem_dest(&t->to, &t->bytes, &t->size);
	jpeg_write_coefficients(&t->to, coefficients);
	for (jpeg_saved_marker_ptr segment = t->in.marker_list; segment; segment = segment->next)
		if (!is_written_anyway(&t->to, segment))
			jpeg_write_marker(&t->to, segment->marker, segment->data, segment->data_length);
	jpeg_finish_compress(&t->to);
	jpeg_finish_decompress(&t->in);
}

/* A function of its own, so that no local of the caller changes between setjmp and longjmp. */
static bool
transcode(struct transcoding *t, const void *bytes, size_t size, unsigned interval)
{
	if (setjmp(t->failed))
		return false;
	read_all(t, bytes, size);
	write_all(t, jpeg_read_coefficients(&t->in), interval);
	return true;
}

bool
leat_jpeg_add_restarts(const void *bytes, size_t size, unsigned interval, void **out, size_t *out_size)
{
	struct transcoding *t = calloc(1, sizeof(*t));
	bool done;

	if (!t)
		return false;
	t->in.err = t->to.err = jpeg_std_error(&t->manager);
	t->manager.error_exit = fail;
	t->manager.emit_message = fail_at_warnings;
	t->manager.output_message = be_silent;
	done = transcode(t, bytes, size, interval);
	if (done) {
		*out = t->bytes;
		*out_size = t->size;
		t->bytes = NULL;
	}
	/* Both accept a zeroed struct that was never created. */
	jpeg_destroy_compress(&t->to);
	jpeg_destroy_decompress(&t->in);
	free(t->bytes);
	free(t);
	return done;
}
