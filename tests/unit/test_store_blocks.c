/* test_store_blocks.c - how much of a file is read at a time while it is indexed */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>

#include "format/window.h"
#include "support/store_mem.h"

enum { SIZE = 8 * 1000 * 1000, RECORD = 1000 };

/* Every read is a round trip: small records are read in blocks of the whole buffer. */
static void
a_store_with_latency_is_indexed_in_large_blocks(void **state)
{
	const char *uri = "mem://x";
	unsigned char *data = malloc(SIZE);
	struct leat_file_window window;
	struct leat_stores stores;
	struct leat_files *files;
	struct leat_mem mem;

	(void)state;
	assert_non_null(data);
	for (size_t i = 0; i < SIZE; i++)
		data[i] = (unsigned char)(i / RECORD % 251);
	store_mem_reset();
	store_mem_put(uri, data, SIZE);
	free(data);
	leat_mem_init(&mem, SIZE_MAX);
	leat_stores_init(&stores, &mem);
	assert_int_equal(leat_files_open(&files, &stores, &uri, 1, &mem, NULL), LEAT_OK);
	assert_int_equal(leat_file_window_open(&window, files, 0, &mem, NULL), LEAT_OK);
	for (uint64_t offset = 0; offset + 12 < window.size; offset += RECORD) {
		const unsigned char *bytes;
		size_t have;

		assert_int_equal(leat_file_window_look(&window, offset, 12, &bytes, &have, NULL), LEAT_OK);
		assert_int_equal(bytes[0], offset / RECORD % 251);
		leat_file_window_expect(&window, RECORD);
	}
	assert_in_range(store_mem_counts().submitted, 1, SIZE / LEAT_WINDOW + 2);
	leat_file_window_close(&window);
	leat_files_close(files);
	leat_stores_close(&stores);
	assert_int_equal(mem.used, 0);
	store_mem_reset();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_store_with_latency_is_indexed_in_large_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
