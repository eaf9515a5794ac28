/* image_formats.c - see image_formats.h */
#include "format/image_formats.h"

#include <string.h>

#define FORMAT(name, title, extensions) ", " title
#define EXTENSIONS(name, title, extensions) ", " extensions

const char *const leat_image_formats = &(LEAT_IMAGE_FORMATS(FORMAT))[2];
const char *const leat_image_extensions = &(LEAT_IMAGE_FORMATS(EXTENSIONS))[2];

/* Case-insensitive in ASCII, whatever the locale. `len` bytes of `extension` count. */
static bool
is_extension(const char *end, const char *extension, size_t len)
{
	if (strlen(end) != len)
		return false;
	for (size_t i = 0; i < len; i++)
		if ((end[i] >= 'A' && end[i] <= 'Z' ? end[i] - 'A' + 'a' : end[i]) != extension[i])
			return false;
	return true;
}

bool
leat_is_image_name(const char *name)
{
	const char *dot = strrchr(name, '.'), *extension = leat_image_extensions;

	while (dot && *extension) {
		size_t len = strcspn(extension, ",");

		if (is_extension(dot, extension, len))
			return true;
		extension += len;
		extension += strspn(extension, ", ");
	}
	return false;
}
