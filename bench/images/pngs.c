/* pngs.c - PNG copies of JPEG files, with the pixels that Leat decodes
 *
 *	images_pngs FROM TO
 *
 * FROM/CLASS/NAME.jpg becomes TO/CLASS/NAME.png, RGB, with filters chosen for each row and zlib's
 * usual level, as most programs save PNG. */
#include <dirent.h>
#include <err.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <jpeglib.h>
#include <spng.h>

enum { PATH = 4096 };

struct pixels {
	unsigned width, height;
	unsigned char *at;
};

static struct pixels
read_jpeg(const char *path)
{
	struct jpeg_decompress_struct jpeg;
	struct jpeg_error_mgr errors;
	struct pixels p;
	FILE *file = fopen(path, "rb");

	if (!file)
		err(1, "cannot read %s", path);
	jpeg.err = jpeg_std_error(&errors); /* prints and exits */
	jpeg_create_decompress(&jpeg);
	jpeg_stdio_src(&jpeg, file);
	jpeg_read_header(&jpeg, TRUE);
	jpeg.out_color_space = JCS_RGB;
	jpeg_start_decompress(&jpeg);
	p = (struct pixels){jpeg.output_width, jpeg.output_height, NULL};
	p.at = malloc((size_t)p.width * p.height * 3);
	if (!p.at)
		err(1, "no memory");
	while (jpeg.output_scanline < jpeg.output_height) {
		JSAMPROW row = p.at + (size_t)jpeg.output_scanline * p.width * 3;

		jpeg_read_scanlines(&jpeg, &row, 1);
	}
	jpeg_finish_decompress(&jpeg);
	jpeg_destroy_decompress(&jpeg);
	fclose(file);
	return p;
}

static void
write_png(const struct pixels *p, const char *path)
{
	struct spng_ihdr header = {.width = p->width, .height = p->height, .bit_depth = 8};
	spng_ctx *png = spng_ctx_new(SPNG_CTX_ENCODER);
	FILE *file = fopen(path, "wb");
	int status;

	if (!png || !file)
		err(1, "cannot write %s", path);
	header.color_type = SPNG_COLOR_TYPE_TRUECOLOR;
	spng_set_ihdr(png, &header);
	spng_set_png_file(png, file);
	status = spng_encode_image(png, p->at, (size_t)p->width * p->height * 3, SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
	spng_ctx_free(png);
	if (status || fclose(file) != 0)
		errx(1, "cannot write %s: %s", path, spng_strerror(status));
}

static void
make_folder(const char *path)
{
	if (mkdir(path, 0777) != 0 && errno != EEXIST)
		err(1, "cannot make the folder %s", path);
}

/* Calls `each` for every entry of a folder. */
static void
walk(const char *from, const char *to, void (*each)(const char *from, const char *to))
{
	DIR *folder = opendir(from);
	char below_from[PATH], below_to[PATH];

	if (!folder)
		err(1, "cannot open %s", from);
	make_folder(to);
	for (struct dirent *entry; (entry = readdir(folder));) {
		if (entry->d_name[0] == '.')
			continue;
		if (snprintf(below_from, PATH, "%s/%s", from, entry->d_name) >= PATH ||
		    snprintf(below_to, PATH, "%s/%s", to, entry->d_name) >= PATH)
			errx(1, "a path is too long");
		each(below_from, below_to);
	}
	closedir(folder);
}

static void
copy_file(const char *from, const char *to)
{
	struct pixels p = read_jpeg(from);
	char path[PATH];
	int stem = (int)(strrchr(to, '.') ? strrchr(to, '.') - to : (long)strlen(to));

	if (snprintf(path, PATH, "%.*s.png", stem, to) >= PATH)
		errx(1, "a path is too long");
	write_png(&p, path);
	free(p.at);
}

static void
copy_class(const char *from, const char *to)
{
	walk(from, to, copy_file);
}

int
main(int argc, char **argv)
{
	if (argc != 3)
		errx(2, "usage: images_pngs FROM TO");
	walk(argv[1], argv[2], copy_class);
	return 0;
}
