/* duckdb_load.c - find and load DuckDB; see duckdb.h
 *
 * PyPI's wheel holds DuckDB as a Python module, _duckdb.cpython-311-x86_64-linux-gnu.so, which exports the C API. Its
 * symbols of Python are those of the process if it is one of Python, or else of libpython, which is loaded before it
 * and never initialized. */
#include <dirent.h>
#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "table/duckdb_api.h"

/* Results depend on the version, and keys hold it. Versions within these are known to have the API and the SQL. */
static const unsigned oldest[2] = {1, 5}, newest[2] = {2, 99};

/* Filled once, then read-only. */
static struct leat_duckdb loaded;
static char version[32], path[PATH_MAX];
static struct leat_err why;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static const struct {
	const char *name;
	size_t at;
} functions[] = {
#define FUNCTION(result, name, parameters) {"duckdb_" #name, offsetof(struct leat_duckdb, name)},
	LEAT_DUCKDB_FUNCTIONS(FUNCTION)
#undef FUNCTION
};

/* ---- one library ---- */

/* The first function that is missing; NULL: none is. */
static const char *
find_functions(void *library)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(*functions); i++) {
		void *found = dlsym(library, functions[i].name);

		if (!found)
			return functions[i].name;
		memcpy((char *)&loaded + functions[i].at, &found, sizeof(found));
	}
	return NULL;
}

static bool
is_known(const char *text)
{
	unsigned major, minor;

	if (sscanf(text, "%u.%u", &major, &minor) != 2)
		return false;
	return (major > oldest[0] || (major == oldest[0] && minor >= oldest[1])) &&
	       (major < newest[0] || (major == newest[0] && minor <= newest[1]));
}

/* "311" of a module's file name, as libpython3.11.so.1.0, first of the Python that the module is installed in. */
static bool
load_python(const char *file)
{
	const char *tag = strstr(file, ".cpython-"), *packages = strstr(file, "/python3.");
	char name[64], beside[PATH_MAX];

	if (!tag || tag[9] != '3' || strspn(tag + 10, "0123456789") == 0)
		return false;
	snprintf(name, sizeof(name), "libpython3.%.*s.so.1.0", (int)strspn(tag + 10, "0123456789"), tag + 10);
	if (packages) {
		snprintf(beside, sizeof(beside), "%.*s/%s", (int)(packages - file), file, name);
		if (dlopen(beside, RTLD_NOW | RTLD_GLOBAL))
			return true;
	}
	if (dlopen(name, RTLD_NOW | RTLD_GLOBAL))
		return true;
	leat_fail(&why, LEAT_UNSUPPORTED,
	          "the DuckDB of %s needs %s, which is not installed (apt-get install libpython3.%.*s)", file, name,
	          (int)strspn(tag + 10, "0123456789"), tag + 10);
	return false;
}

static void *
open_library(const char *file)
{
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);

	if (!library && strstr(file, "_duckdb.") && load_python(file))
		library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	return library;
}

static void
note_path(const char *file)
{
	Dl_info info;

	if (dladdr((void *)(uintptr_t)loaded.library_version, &info) && info.dli_fname)
		file = info.dli_fname;
	if (*file != '/' || snprintf(path, sizeof(path), "%s", file) >= (int)sizeof(path))
		*path = '\0';
}

/* LEAT_END: there is no such library. */
static enum leat_status
load_file(const char *file)
{
	void *library = open_library(file);
	const char *text, *missing;

	if (!library)
		return why.status == LEAT_OK ? LEAT_END : why.status;
	missing = find_functions(library);
	if (missing) {
		dlclose(library);
		return leat_fail(&why, LEAT_UNSUPPORTED, "%s is no DuckDB that Leat can use: it has no %s", file,
		                 missing);
	}
	text = loaded.library_version();
	text += *text == 'v';
	if (!is_known(text)) {
		leat_fail(&why, LEAT_UNSUPPORTED,
		          "%s is DuckDB %s, but Leat needs 1.5 to 2.x; pip install duckdb==1.5.6", file, text);
		dlclose(library);
		return why.status;
	}
	snprintf(version, sizeof(version), "%s", text);
	note_path(file);
	return LEAT_OK;
}

/* ---- where it may be ---- */

/* The module in a folder of packages. */
static enum leat_status
load_module(const char *folder)
{
	enum leat_status status = LEAT_END;
	DIR *entries = opendir(folder);
	struct dirent *entry;
	char file[PATH_MAX];

	while (entries && status == LEAT_END && (entry = readdir(entries)) != NULL)
		if (!strncmp(entry->d_name, "_duckdb.", 8) && strstr(entry->d_name, ".so") &&
		    snprintf(file, sizeof(file), "%s/%s", folder, entry->d_name) < (int)sizeof(file))
			status = load_file(file);
	if (entries)
		closedir(entries);
	return status;
}

/* build/leat, build/tests/test_x and build/asan/tests/test_x find build/duckdb; site-packages/leat/leat and
 * site-packages/leat/libleat.so find what is beside their package. Changes `file` to its folder. */
static enum leat_status
load_near(char file[PATH_MAX])
{
	static const char *const near[] = {"duckdb", "../duckdb", "../../duckdb", ".."};
	char folder[PATH_MAX + 16];
	enum leat_status status = LEAT_END;

	*strrchr(file, '/') = '\0';
	for (size_t i = 0; i < sizeof(near) / sizeof(*near) && status == LEAT_END; i++) {
		snprintf(folder, sizeof(folder), "%s/%s", file, near[i]);
		status = load_module(folder);
	}
	return status;
}

static enum leat_status
load_near_program(void)
{
	char program[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);

	if (len <= 0)
		return LEAT_END;
	program[len] = '\0';
	return load_near(program);
}

/* libleat.so, in a program that is none of ours. */
static enum leat_status
load_near_library(void)
{
	char library[PATH_MAX];
	Dl_info info;

	if (!dladdr((void *)(uintptr_t)leat_duckdb_load, &info) || !info.dli_fname || *info.dli_fname != '/' ||
	    snprintf(library, sizeof(library), "%s", info.dli_fname) >= (int)sizeof(library))
		return LEAT_END;
	return load_near(library);
}

/* The active virtual environment. */
static enum leat_status
load_from_environment(void)
{
	const char *environment = getenv("VIRTUAL_ENV");
	enum leat_status status = LEAT_END;
	char pattern[PATH_MAX];
	glob_t found;

	if (!environment || *environment != '/' ||
	    snprintf(pattern, sizeof(pattern), "%s/lib/python3.*/site-packages", environment) >= (int)sizeof(pattern) ||
	    glob(pattern, 0, NULL, &found))
		return LEAT_END;
	for (size_t i = 0; i < found.gl_pathc && status == LEAT_END; i++)
		status = load_module(found.gl_pathv[i]);
	globfree(&found);
	return status;
}

static void
load(void)
{
	const char *given = getenv("LEAT_DUCKDB");
	enum leat_status status;

	if (given && *given) {
		if (load_file(given) == LEAT_END)
			leat_fail(&why, LEAT_UNSUPPORTED,
			          "cannot load DuckDB from LEAT_DUCKDB=%s; name libduckdb.so, or the _duckdb*.so of "
			          "PyPI's duckdb "
			          "package",
			          given);
		return;
	}
	status = load_file("libduckdb.so");
	if (status == LEAT_END)
		status = load_near_program();
	if (status == LEAT_END)
		status = load_near_library();
	if (status == LEAT_END)
		status = load_from_environment();
	if (status == LEAT_END)
		leat_fail(&why, LEAT_UNSUPPORTED,
		          "tables need DuckDB, which is not installed; run: pip install duckdb==1.5.6");
}

/* ---- */

const struct leat_duckdb *
leat_duckdb_find(struct leat_err *err)
{
	pthread_once(&once, load);
	if (why.status == LEAT_OK)
		return &loaded;
	leat_fail_as(err, &why);
	return NULL;
}

enum leat_status
leat_duckdb_load(struct leat_err *err)
{
	return leat_duckdb_find(err) ? LEAT_OK : why.status;
}

const char *
leat_duckdb_version(void)
{
	return leat_duckdb_find(NULL) ? version : NULL;
}

const char *
leat_duckdb_path(void)
{
	return leat_duckdb_find(NULL) && *path ? path : NULL;
}
