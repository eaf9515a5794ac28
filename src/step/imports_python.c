/* imports_python.c - where a Python has its packages
 *
 * A field names a Python as its command does ("python3"), so that another environment with equal versions keeps
 * results. Which folders belong to it is learned from records, and kept in .leat/pythons/ by path and stamp of the
 * program, so that planning does not run it. One that no action has used yet is asked. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "step/imports_inside.h"

enum { MAX_ANSWER = 256 * 1024, MAX_ASK_MS = 10000 };

/* ---- programs and paths ---- */

static bool
is_program(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISREG(st.st_mode) && access(path, X_OK) == 0;
}

static bool
search_path(const char *name, char path[PATH_MAX])
{
	const char *folders = getenv("PATH");

	while (folders && *folders) {
		size_t len = strcspn(folders, ":");

		if (len > 0 && snprintf(path, PATH_MAX, "%.*s/%s", (int)len, folders, name) < PATH_MAX &&
		    is_program(path))
			return true;
		folders += len + (folders[len] == ':');
	}
	return false;
}

/* Such as a shim of pyenv, which runs one Python today and another tomorrow. */
static bool
is_script(const char *path)
{
	FILE *file = fopen(path, "re");
	bool is = file && getc(file) == '#' && getc(file) == '!';

	if (file)
		fclose(file);
	return is;
}

bool
leat_python_path(const struct leat_code *code, const char *program, char path[PATH_MAX])
{
	if (!strchr(program, '/'))
		return search_path(program, path);
	if (*program == '/')
		snprintf(path, PATH_MAX, "%s", program);
	else
		snprintf(path, PATH_MAX, "%s/%s", code->project->folder, program);
	return is_program(path);
}

void
leat_python_program(const struct leat_code *code, const char *executable, char program[PATH_MAX])
{
	const char *slash = strrchr(executable, '/'), *folder = code->project->folder;
	size_t len = strlen(folder);
	char path[PATH_MAX];

	if (slash && search_path(slash + 1, path) && (strcmp(path, executable) == 0 || is_script(path)))
		snprintf(program, PATH_MAX, "%s", slash + 1);
	else if (strncmp(executable, folder, len) == 0 && executable[len] == '/')
		snprintf(program, PATH_MAX, "%s", executable + len + 1);
	else
		snprintf(program, PATH_MAX, "%s", executable);
}

/* ---- what is remembered ---- */

void
leat_pythons_free(struct leat_pythons *pythons, struct leat_mem *mem)
{
	if (!pythons)
		return;
	for (size_t i = 0; i < pythons->count; i++) {
		leat_free(mem, pythons->python[i].program);
		leat_free(mem, pythons->python[i].version);
		leat_paths_free(&pythons->python[i].site, mem);
	}
	for (size_t i = 0; i < pythons->sites; i++) {
		leat_free(mem, pythons->site[i].path);
		leat_paths_free(&pythons->site[i].entry, mem);
		leat_paths_free(&pythons->site[i].owned, mem);
	}
	leat_free(mem, pythons->site);
	leat_free(mem, pythons);
}

struct leat_pythons *
leat_pythons_of(struct leat_code *code)
{
	if (!code->pythons)
		code->pythons = leat_alloc(code->mem, sizeof(*code->pythons));
	return code->pythons;
}

static const struct leat_python *
find_known(const struct leat_pythons *pythons, const char *program)
{
	for (size_t i = 0; i < pythons->count; i++)
		if (strcmp(pythons->python[i].program, program) == 0)
			return &pythons->python[i];
	return NULL;
}

static enum leat_status
copy_texts(const struct leat_paths *from, struct leat_paths *to, struct leat_mem *mem, struct leat_err *err)
{
	enum leat_status status = LEAT_OK;

	for (size_t i = 0; i < from->count && status == LEAT_OK; i++)
		status = leat_paths_add(to, from->path[i], mem, err);
	return status;
}

/* A ninth Python of one build is not remembered, and its packages not keyed. */
static enum leat_status
remember(struct leat_code *code, const char *program, const char *version, const struct leat_paths *site,
         struct leat_err *err)
{
	struct leat_pythons *pythons = leat_pythons_of(code);
	struct leat_python python = {0};
	enum leat_status status;

	if (!pythons)
		return leat_fail_mem(err, code->mem, sizeof(*pythons), "the list of Pythons");
	if (pythons->count == sizeof(pythons->python) / sizeof(*pythons->python))
		return LEAT_OK;
	python.program = leat_strdup(code->mem, program);
	python.version = leat_strdup(code->mem, version);
	status = python.program && python.version
	                 ? copy_texts(site, &python.site, code->mem, err)
	                 : leat_fail_mem(err, code->mem, strlen(program), "the list of Pythons");
	if (status == LEAT_OK) {
		pythons->python[pythons->count++] = python;
		return LEAT_OK;
	}
	leat_free(code->mem, python.program);
	leat_free(code->mem, python.version);
	leat_paths_free(&python.site, code->mem);
	return status;
}

/* ---- in the store ---- */

static void
add_stamp(struct leat_str *text, const char *path)
{
	struct leat_stamp stamp = {{0, 0}};

	leat_cas_stamp(path, &stamp, NULL);
	leat_str_addf(text, "%s %llx %llx\n", path, (unsigned long long)stamp.value[0],
	              (unsigned long long)stamp.value[1]);
}

/* Where pyenv, asdf and mise look for the version: variables, and files in the folder and those above it. */
static void
add_choice(struct leat_str *text, const char *folder)
{
	static const char *const variables[] = {"PYENV_VERSION", "ASDF_PYTHON_VERSION", "MISE_PYTHON_VERSION"};
	static const char *const files[] = {".python-version", ".tool-versions", "mise.toml"};
	const char *root = getenv("PYENV_ROOT"), *home = getenv("HOME");
	char path[PATH_MAX + 32];

	for (size_t i = 0; i < 3; i++)
		leat_str_addf(text, "%s=%s\n", variables[i], getenv(variables[i]) ? getenv(variables[i]) : "");
	snprintf(path, sizeof(path), root ? "%.*s/version" : "%.*s/.pyenv/version", PATH_MAX,
	         root   ? root
	         : home ? home
	                : "");
	add_stamp(text, path);
	for (size_t len = strlen(folder); len != SIZE_MAX; len--) {
		for (size_t i = 0; (folder[len] == '\0' || folder[len] == '/') && i < 3; i++) {
			snprintf(path, sizeof(path), "%.*s/%s", (int)len, folder, files[i]);
			add_stamp(text, path);
		}
	}
}

/* .leat/pythons/HASH of what says which Python the program is. False: nobody can say without running it. */
static bool
note_path(const struct leat_code *code, const char *executable, char path[PATH_MAX])
{
	static const char *const variables[] = {"PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONNOUSERSITE",
	                                        "HOME"};
	char hex[LEAT_SHA256_HEX];
	uint8_t digest[LEAT_SHA256_BYTES];
	struct leat_str text;
	bool good;

	if (is_script(executable) && !strstr(executable, "/shims/"))
		return false;
	leat_str_init(&text, code->mem, SIZE_MAX);
	add_stamp(&text, executable);
	for (size_t i = 0; i < sizeof(variables) / sizeof(*variables); i++)
		leat_str_addf(&text, "%s=%s\n", variables[i], getenv(variables[i]) ? getenv(variables[i]) : "");
	if (is_script(executable))
		add_choice(&text, code->project->folder);
	leat_sha256(leat_str_text(&text), text.len, digest);
	leat_hex(digest, 16, hex);
	good = !text.failed && snprintf(path, PATH_MAX, "%s/pythons/%s", leat_cas_folder(code->cas), hex) < PATH_MAX;
	leat_str_free(&text);
	return good;
}

/* In the format of records. A note that cannot be written is only slower the next time. */
static void
write_note(struct leat_code *code, const char *path, const char *executable, const char *version,
           const struct leat_paths *site)
{
	char temp[PATH_MAX], folder[PATH_MAX];
	FILE *file;
	bool good;

	snprintf(folder, sizeof(folder), "%s", path);
	*strrchr(folder, '/') = '\0';
	mkdir(folder, 0777);
	leat_cas_temp_path(code->cas, temp);
	file = fopen(temp, "wxe");
	if (!file)
		return;
	fprintf(file, "python%c%s%c%s%c/%c%cpath%c", 0, executable, 0, version, 0, 0, 0, 0);
	for (size_t i = 0; i < site->count; i++)
		fprintf(file, "%s%c", site->path[i], 0);
	fputc(0, file);
	good = !ferror(file);
	good = fclose(file) == 0 && good;
	if (!good || rename(temp, path) != 0)
		unlink(temp);
}

enum leat_status
leat_python_learn(struct leat_code *code, const char *executable, const char *version, const struct leat_paths *site,
                  struct leat_err *err)
{
	const struct leat_pythons *pythons = leat_pythons_of(code);
	char program[PATH_MAX], path[PATH_MAX], note[PATH_MAX];

	leat_python_program(code, executable, program);
	if (pythons && find_known(pythons, program))
		return LEAT_OK;
	if (leat_cas_run(code->cas) && leat_python_path(code, program, path) && note_path(code, path, note) &&
	    access(note, F_OK) != 0)
		write_note(code, note, executable, version, site);
	return remember(code, program, version, site, err);
}

/* ---- asking ---- */

struct answer {
	struct leat_code *code;
	char *version;
	struct leat_paths site;
};

bool
leat_is_site(const char *folder)
{
	size_t len = strlen(folder), tail = strlen("/site-packages");

	return len > tail && (strcmp(folder + len - tail, "/site-packages") == 0 ||
	                      strcmp(folder + len - tail, "/dist-packages") == 0);
}

static enum leat_status
take_record(void *arg, const char *const *text, size_t texts, struct leat_err *err)
{
	struct answer *answer = arg;
	struct leat_mem *mem = answer->code->mem;
	enum leat_status status = LEAT_OK;

	if (strcmp(text[0], "python") == 0 && texts > 2 && !answer->version) {
		answer->version = leat_strdup(mem, text[2]);
		if (!answer->version)
			status = leat_fail_mem(err, mem, strlen(text[2]), "the version of Python");
	}
	for (size_t i = 1; strcmp(text[0], "path") == 0 && i < texts && status == LEAT_OK; i++)
		if (leat_is_site(text[i]))
			status = leat_paths_add(&answer->site, text[i], mem, err);
	return status;
}

static pid_t
start(const char *executable, int out)
{
	static const char program[] =
		"import os, site, sys\n"
		"def out(*texts): os.write(1, b''.join(os.fsencode(t) + b'\\0' for t in texts if t) + b'\\0')\n"
		"out('python', sys.executable, sys.version.split()[0], '/')\n"
		"user = [site.USER_SITE] if site.ENABLE_USER_SITE and site.USER_SITE not in sys.path else []\n"
		"own = [f for f in sys.path if not f.endswith(('/site-packages', '/dist-packages'))]\n"
		"out('path', *own, *user, *[f for f in sys.path if f not in own])\n";
	char *const argument[] = {(char *)executable, (char *)"-c", (char *)program, NULL};
	posix_spawn_file_actions_t actions;
	pid_t pid = -1;

	if (posix_spawn_file_actions_init(&actions) != 0)
		return -1;
	if (posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0) != 0 ||
	    posix_spawn_file_actions_adddup2(&actions, out, 1) != 0 ||
	    posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0) != 0 ||
	    posix_spawn(&pid, executable, &actions, NULL, argument, environ) != 0)
		pid = -1;
	posix_spawn_file_actions_destroy(&actions);
	return pid;
}

/* Reads until the end, or until it takes too long. */
static size_t
read_answer(int fd, char *bytes, size_t max)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	size_t len = 0;

	while (len < max && poll(&wait, 1, MAX_ASK_MS) > 0) {
		ssize_t got = read(fd, bytes + len, max - len);

		if (got <= 0)
			break;
		len += (size_t)got;
	}
	return len;
}

static size_t
ask(const char *executable, char *bytes)
{
	int pipes[2];
	size_t len = 0;
	pid_t pid;

	if (pipe2(pipes, O_CLOEXEC) != 0)
		return 0;
	pid = start(executable, pipes[1]);
	close(pipes[1]);
	if (pid > 0) {
		len = read_answer(pipes[0], bytes, MAX_ANSWER);
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
	}
	close(pipes[0]);
	return len;
}

static size_t
read_note(const char *path, char *bytes)
{
	FILE *file = fopen(path, "re");
	size_t len = file ? fread(bytes, 1, MAX_ANSWER, file) : 0;

	if (file)
		fclose(file);
	return len;
}

const struct leat_python *
leat_python_find(struct leat_code *code, const char *program)
{
	struct answer answer = {.code = code};
	struct leat_pythons *pythons = leat_pythons_of(code);
	char executable[PATH_MAX], note[PATH_MAX], *bytes;
	const struct leat_python *found = pythons ? find_known(pythons, program) : NULL;
	size_t len = 0;

	if (found || !pythons || !leat_python_path(code, program, executable))
		return found;
	bytes = leat_alloc(code->mem, MAX_ANSWER);
	if (bytes && note_path(code, executable, note))
		len = read_note(note, bytes);
	if (bytes && len == 0)
		len = ask(executable, bytes);
	if (len > 0 &&
	    leat_records_parse(bytes, len, &(struct leat_record_reader){take_record, &answer}, NULL) == LEAT_OK &&
	    answer.version && leat_python_learn(code, executable, answer.version, &answer.site, NULL) == LEAT_OK)
		found = find_known(pythons, program);
	leat_free(code->mem, answer.version);
	leat_paths_free(&answer.site, code->mem);
	leat_free(code->mem, bytes);
	return found;
}
