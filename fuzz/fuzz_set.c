/* fuzz_set.c - whatever a manifest holds, files are opened, or there is an error, and it is written as it was read
 *
 * The input is the manifest of two shards, and of the arrays in the folder. */
#include "sources.h"

#include "store/set.h"

static void
open_pattern(const char *name, struct leat_stores *stores, struct leat_mem *mem)
{
	struct leat_files *files;
	char path[200], *pattern = path;
	struct leat_err err;

	snprintf(path, sizeof(path), "%s/%s", fuzz_folder(), name);
	leat_err_clear(&err);
	if (leat_files_open(&files, stores, (const char *const *)&pattern, 1, mem, &err) != LEAT_OK)
		must(err.text[0] && leat_is_visible(err.text), "an error says nothing, or too much");
	else
		leat_files_close(files);
}

static void
write_and_read(struct leat_stores *stores, struct leat_mem *mem)
{
	struct leat_store *store;
	struct leat_set set, again;
	char path[200], copy[200];

	snprintf(path, sizeof(path), "%s/.s.tar.leatset", fuzz_folder());
	snprintf(copy, sizeof(copy), "%s/.copy.leatset", fuzz_folder());
	leat_set_init(&set, mem);
	leat_set_init(&again, mem);
	must(leat_stores_find(stores, path, &store, NULL, NULL) == LEAT_OK, "no store");
	if (leat_set_load(&set, store, path, NULL, NULL) == LEAT_OK) {
		must(leat_set_save(&set, store, copy, NULL) == LEAT_OK, "a set cannot be saved");
		must(leat_set_load(&again, store, copy, NULL, NULL) == LEAT_OK, "a set cannot be loaded again");
		must(again.files == set.files, "a set has other files");
		for (size_t i = 0; i < set.files; i++)
			must(strcmp(set.file[i].name, again.file[i].name) == 0 &&
			             set.file[i].size == again.file[i].size && set.file[i].crc == again.file[i].crc &&
			             strcmp(set.run[set.file[i].run].command, again.run[again.file[i].run].command) ==
			                     0,
			     "a file is another");
	}
	leat_set_free(&set);
	leat_set_free(&again);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct leat_stores stores;
	struct leat_mem mem;

	leat_mem_init(&mem, SIZE_MAX);
	leat_stores_init(&stores, &mem);
	fuzz_write("s-00000-of-00002.tar", "abc", 3);
	fuzz_write("s-00001-of-00002.tar", "abc", 3);
	fuzz_write("x.npy", "abc", 3);
	fuzz_write(".s.tar.leatset", data, size);
	fuzz_write(".npy.leatset", data, size);
	open_pattern("s-*", &stores, &mem);
	open_pattern("s-00001-of-00002.tar", &stores, &mem);
	open_pattern("*", &stores, &mem);
	write_and_read(&stores, &mem);
	leat_stores_close(&stores);
	must(mem.used == 0, "memory is lost");
	return 0;
}
