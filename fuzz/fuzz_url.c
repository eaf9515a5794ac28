/* fuzz_url.c - any text is a URL or refused with a reason, and nothing in a request can end its line */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "store/url.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
must(bool holds)
{
	if (!holds)
		abort();
}

static void
is_clean(const struct leat_str *text)
{
	for (size_t i = 0; i < text->len; i++)
		must(text->text[i] > ' ' && text->text[i] < 127);
}

static void
use(const struct leat_url *url, struct leat_mem *mem)
{
	struct leat_str out;

	must(url->host[0] && strlen(url->host) < LEAT_HOST && url->port > 0 && url->port < 65536);
	leat_str_init(&out, mem, SIZE_MAX);
	leat_url_add_target(&out, url);
	must(out.text[0] == '/');
	leat_str_add(&out, "@");
	leat_url_add_host(&out, url->tls, url->host, url->port);
	is_clean(&out);
	leat_str_free(&out);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct leat_url url;
	struct leat_str out;
	struct leat_mem mem;
	const char *why;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	leat_mem_init(&mem, SIZE_MAX);
	why = leat_url_parse(text, &url);
	if (why)
		must(why[0] != '\0');
	else
		use(&url, &mem);
	/* A redirect: the text as a location, and as what was asked. */
	leat_str_init(&out, &mem, SIZE_MAX);
	leat_url_join(&out, "https://host/a/b", text);
	if (!leat_url_parse(leat_str_text(&out), &url))
		use(&url, &mem);
	leat_str_free(&out);
	leat_str_init(&out, &mem, SIZE_MAX);
	leat_url_encode(&out, text, size, false);
	is_clean(&out);
	if (size) {
		must(leat_url_decode(out.text, out.len) == size && memcmp(out.text, data, size) == 0);
		must(leat_url_decode(text, size) <= size);
	}
	leat_str_free(&out);
	must(mem.used == 0);
	free(text);
	return 0;
}
