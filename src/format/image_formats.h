/* image_formats.h - the image formats that Leat decodes: the only list of them
 *
 * image/decode.c makes its table of decoders from this list, so a format without a decoder does not link. Sources that
 * look for images use the extensions: they never list a file that cannot be decoded. To add a format, add a line here
 * and write src/image/NAME.c, which defines leat_codec_NAME. */
#ifndef LEAT_FORMAT_IMAGE_FORMATS_H
#define LEAT_FORMAT_IMAGE_FORMATS_H

#include <stdbool.h>

/* X(name of the codec, name for people, extensions in lower case) */
#define LEAT_IMAGE_FORMATS(X)                                                                                          \
	X(jpeg, "JPEG", ".jpg, .jpeg")                                                                                 \
	X(png, "PNG", ".png")                                                                                          \
	X(webp, "WebP", ".webp")

extern const char *const leat_image_formats;    /* "JPEG, PNG, WebP" */
extern const char *const leat_image_extensions; /* ".jpg, .jpeg, .png, .webp" */

/* Does the file name end in one of the extensions, in any case? */
bool leat_is_image_name(const char *name);

#endif
