/* duckdb_stub.c - a library that looks like DuckDB, but is too old (OLD), or lacks a function (MISSING) */
#include "table/duckdb_api.h"

/* These are written below, or not there. */
#define duckdb_library_version unused_version
#ifdef MISSING
#define duckdb_fetch_chunk unused_chunk
#endif
#define STUB(result, name, parameters)                                                                                 \
	void duckdb_##name(void);                                                                                      \
	__attribute__((visibility("default"))) void duckdb_##name(void)                                                \
	{                                                                                                              \
	}
LEAT_DUCKDB_FUNCTIONS(STUB)
#undef duckdb_library_version

const char *duckdb_library_version(void);

__attribute__((visibility("default"))) const char *
duckdb_library_version(void)
{
#ifdef OLD
	return "v0.9.2";
#else
	return "v1.5.6";
#endif
}
