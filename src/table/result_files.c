/* result_files.c - the table of a folder: which of its files are read; see duckdb.h
 *
 * Folders of results also have Parquet files that are no rows of the table: a features step keeps the dictionaries that
 * it fitted below `state`. All that read the table of a folder ask here. */
#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "table/duckdb.h"

bool
leat_is_features_folder(const char *folder, char table[PATH_MAX])
{
	char state[PATH_MAX];

	return snprintf(table, PATH_MAX, "%s/features.parquet", folder) < PATH_MAX &&
	       snprintf(state, sizeof(state), "%s/state/features.json", folder) < PATH_MAX && !access(table, F_OK) &&
	       !access(state, F_OK);
}

static bool
is_parquet_name(const char *name)
{
	static const char ending[] = ".parquet";
	size_t len = strlen(name);

	return *name != '.' && *name != '_' && len >= sizeof(ending) && !strcmp(name + len - strlen(ending), ending);
}

static int
by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* `table` is a buffer. */
static enum leat_status
see_entry(FTS *tree, FTSENT *entry, char *table, leat_table_file *visit, void *arg, struct leat_err *err)
{
	bool hidden = entry->fts_level > 0 && strchr("._", *entry->fts_name), features;

	switch (entry->fts_info) {
	case FTS_D:
		features = !hidden && leat_is_features_folder(entry->fts_path, table);
		if (hidden || features)
			fts_set(tree, entry, FTS_SKIP);
		return features ? visit(arg, table, err) : LEAT_OK;
	case FTS_DP:
		return LEAT_OK;
	case FTS_DNR:
	case FTS_ERR:
	case FTS_NS:
		return leat_fail_errno(err, entry->fts_errno, "cannot read '%s'", entry->fts_path);
	default:
		return is_parquet_name(entry->fts_name) ? visit(arg, entry->fts_path, err) : LEAT_OK;
	}
}

enum leat_status
leat_table_files(const char *folder, leat_table_file *visit, void *arg, struct leat_err *err)
{
	char root[PATH_MAX], table[PATH_MAX], *const roots[] = {root, NULL};
	enum leat_status status = LEAT_OK;
	FTS *tree;

	if (snprintf(root, sizeof(root), "%s", folder) >= (int)sizeof(root))
		return leat_fail_errno(err, ENAMETOOLONG, "cannot read '%.40s...'", folder);
	tree = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name);
	if (!tree)
		return leat_fail_errno(err, errno, "cannot read '%s'", folder);
	for (FTSENT *entry = fts_read(tree); entry && status == LEAT_OK; entry = fts_read(tree))
		status = see_entry(tree, entry, table, visit, arg, err);
	fts_close(tree);
	return status;
}
