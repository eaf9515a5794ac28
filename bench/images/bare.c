/* bare.c - the limit: libjpeg-turbo in a loop, on as many threads, and nothing else; see turns.h
 *
 *	images_bare accurate|fast THREADS WARM_UP FILE...
 *
 * Decodes whole images to RGB with smooth upsampling; with the accurate DCT, as Pillow and OpenCV,
 * or with the fast one, as TensorFlow and Leat. The files lie in memory from the start; each thread decodes into one
 *buffer of its own, which stays in its cache, and takes the next image when it has done one. */
#include <err.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#include "turns.h"

enum { MAX_THREADS = 64, MAX_PIXELS = 4 << 20 };

struct file {
	unsigned char *bytes;
	size_t length;
};

struct bare {
	struct file *file;
	uint64_t files;
	int threads;
	J_DCT_METHOD dct;
	uint64_t begin, end; /* of this turn; numbers that count on over all turns */
	atomic_ullong next;
	pthread_barrier_t go, done;
};

static void
decode(struct jpeg_decompress_struct *jpeg, J_DCT_METHOD dct, const struct file *file, unsigned char *pixels)
{
	size_t stride;

	jpeg_mem_src(jpeg, file->bytes, (unsigned long)file->length);
	jpeg_read_header(jpeg, TRUE);
	jpeg->out_color_space = JCS_RGB;
	jpeg->dct_method = dct;
	jpeg->do_fancy_upsampling = TRUE;
	jpeg_start_decompress(jpeg);
	stride = (size_t)jpeg->output_width * 3;
	if (stride * jpeg->output_height > MAX_PIXELS)
		errx(1, "an image is too large");
	while (jpeg->output_scanline < jpeg->output_height) {
		JSAMPROW rows[8];

		for (unsigned i = 0; i < 8; i++)
			rows[i] = pixels + (jpeg->output_scanline + i) * stride;
		jpeg_read_scanlines(jpeg, rows, 8);
	}
	jpeg_finish_decompress(jpeg);
}

static void *
body(void *arg)
{
	struct bare *bare = arg;
	struct jpeg_decompress_struct jpeg;
	struct jpeg_error_mgr errors;
	unsigned char *pixels = malloc(MAX_PIXELS + (1 << 16));

	if (!pixels)
		err(1, "no memory");
	jpeg.err = jpeg_std_error(&errors); /* prints and exits */
	jpeg_create_decompress(&jpeg);
	for (;;) {
		uint64_t i;

		pthread_barrier_wait(&bare->go);
		while ((i = atomic_fetch_add(&bare->next, 1)) < bare->end)
			decode(&jpeg, bare->dct, &bare->file[i % bare->files], pixels);
		pthread_barrier_wait(&bare->done);
	}
	return NULL;
}

static uint64_t
take(void *arg, uint64_t images)
{
	struct bare *bare = arg;

	bare->begin = bare->end;
	bare->end = bare->begin + images;
	atomic_store(&bare->next, bare->begin);
	pthread_barrier_wait(&bare->go);
	pthread_barrier_wait(&bare->done);
	return images;
}

static void
load(struct file *file, const char *path)
{
	FILE *f = fopen(path, "rb");
	long length;

	if (!f || fseek(f, 0, SEEK_END) != 0 || (length = ftell(f)) <= 0)
		err(1, "cannot read %s", path);
	rewind(f);
	file->length = (size_t)length;
	file->bytes = malloc(file->length);
	if (!file->bytes || fread(file->bytes, 1, file->length, f) != file->length)
		err(1, "cannot read %s", path);
	fclose(f);
}

int
main(int argc, char **argv)
{
	static struct bare bare;

	if (argc < 5)
		errx(2, "usage: images_bare accurate|fast THREADS WARM_UP FILE...");
	bare.dct = strcmp(argv[1], "fast") == 0 ? JDCT_IFAST : JDCT_ISLOW;
	bare.threads = atoi(argv[2]);
	bare.files = (uint64_t)argc - 4;
	bare.file = calloc(bare.files, sizeof *bare.file);
	if (!bare.file || bare.threads < 1 || bare.threads > MAX_THREADS)
		errx(2, "images_bare: between 1 and %d threads", MAX_THREADS);
	for (uint64_t i = 0; i < bare.files; i++)
		load(&bare.file[i], argv[i + 4]);
	pthread_barrier_init(&bare.go, NULL, (unsigned)bare.threads + 1);
	pthread_barrier_init(&bare.done, NULL, (unsigned)bare.threads + 1);
	for (int i = 0; i < bare.threads; i++) {
		pthread_t thread;

		if (pthread_create(&thread, NULL, body, &bare) != 0)
			errx(1, "cannot start a thread");
	}
	turns_run(strtoull(argv[3], NULL, 10), take, &bare);
	return 0; /* the threads wait for a turn that does not come */
}
