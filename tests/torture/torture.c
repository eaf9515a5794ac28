/* torture.c - torture BUILD KIND [--runs N] [--seed S] [--first K] [--jobs J]: random runs that must find nothing
 *
 *	same    a random spec against itself: threads, memory, prefetch, ranks, resume, caches, damaged data
 *	faults  a command under the shim, whose calls and allocations fail or fall short at random
 *	kill    a command killed at a random call or moment; what readers see then, and the next run
 *	bytes   hostile bytes in data, indexes, caches and checkpoints
 *
 * KIND all divides the runs among them. Each run is a process. It draws everything from (kind, seed, number), so that
 *--first NUMBER --runs 1 repeats it. A finding is printed with the command that repeats it, and its folder is kept. */
#include "torture.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/hash.h"
#include "leat.h"

enum { MAX_JOBS = 64, RUN_SECONDS = 600 /* a hang; the machine may be busy */, MAX_LINES = 40, LAST_LINES = 10 };

static const struct kind {
	const char *name;
	void (*run)(struct torture *t);
} kinds[] = {
	{"same", torture_same},
	{"faults", torture_faults},
	{"kill", torture_kill},
	{"bytes", torture_bytes},
};

enum { KINDS = sizeof kinds / sizeof *kinds };

static struct {
	const char *build, *kind;
	uint64_t runs, seed, first;
	unsigned jobs;
	char folder[200];
	struct sources sources;
	uint64_t findings;
} torture = {.runs = 100, .seed = 1};

/* ---- inside a run ---- */

unsigned
torture_below(struct torture *t, unsigned n)
{
	return (unsigned)leat_rng_below(&t->rng, n);
}

bool
torture_one_in(struct torture *t, unsigned n)
{
	return torture_below(t, n) == 0;
}

const char *
torture_path(struct torture *t, const char *format, ...)
{
	static char path[8][600];
	static unsigned turn;
	char *out = path[turn++ % 8];
	int len = snprintf(out, sizeof *path, "%s/", t->folder);
	va_list args;

	va_start(args, format);
	vsnprintf(out + len, sizeof *path - (size_t)len, format, args);
	va_end(args);
	return out;
}

/* nftw hands no argument on. */
static const char *copy_from, *copy_to;

static void
copy_bytes(const char *from, const char *to)
{
	int in = open(from, O_RDONLY), out = open(to, O_WRONLY | O_CREAT | O_EXCL, 0666);
	char bytes[1 << 16];
	ssize_t n;

	assert_true(in >= 0 && out >= 0);
	while ((n = read(in, bytes, sizeof bytes)) > 0)
		assert_int_equal(write(out, bytes, (size_t)n), n);
	assert_int_equal(n, 0);
	close(in);
	close(out);
}

static int
copy_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	char to[700];

	(void)st;
	if (path[ftw->base] == '.' && ftw->level > 0) /* indexes, which other runs may be writing */
		return 0;
	snprintf(to, sizeof to, "%s%s", copy_to, path + strlen(copy_from));
	if (type == FTW_D)
		assert_int_equal(mkdir(to, 0777), 0);
	else
		copy_bytes(path, to);
	return 0;
}

static int
age_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	static const struct timespec times[2] = {{1500000000, 0}, {1500000000, 0}};

	(void)st, (void)type, (void)ftw;
	return utimensat(AT_FDCWD, path, times, AT_SYMLINK_NOFOLLOW);
}

void
torture_age(const char *folder)
{
	assert_int_equal(nftw(folder, age_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

void
torture_copy_source(struct torture *t, size_t i, const char *name, struct sources *copy)
{
	*copy = *t->sources;
	snprintf(copy->folder, sizeof copy->folder, "%.*s", (int)sizeof copy->folder - 1, torture_path(t, "%s", name));
	assert_int_equal(mkdir(copy->folder, 0777), 0);
	for (size_t k = 0; k < copy->count; k++) {
		snprintf(copy->one[k].folder, sizeof copy->one[k].folder, "%s%s", copy->folder,
		         strrchr(t->sources->one[k].folder, '/'));
		sources_elsewhere(t->sources, copy, t->sources->one[k].spec, copy->one[k].spec,
		                  sizeof copy->one[k].spec);
	}
	copy_from = t->sources->one[i].folder;
	copy_to = copy->one[i].folder;
	assert_int_equal(nftw(copy_from, copy_one, 16, FTW_PHYS), 0);
	torture_age(copy_to);
}

/* ---- a run as a process ---- */

static const struct kind *current;
static struct torture run;

static void
survives(void **state)
{
	(void)state;
	current->run(&run);
}

/* cmocka says what failed, and where. */
static int
run_here(uint64_t number)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(survives)};

	run = (struct torture){.kind = current->name,
	                       .seed = torture.seed,
	                       .number = number,
	                       .build = torture.build,
	                       .sources = &torture.sources};
	snprintf(run.folder, sizeof run.folder, "%s/%s-%" PRIu64, torture.folder, current->name, number);
	leat_rng_init(&run.rng, torture.seed, 0, number, leat_stream(current->name, 0));
	if (mkdir(run.folder, 0777) != 0)
		return 1;
	setenv("XDG_CACHE_HOME", torture_path(&run, "home"), 1); /* indexes that have no room beside the data */
	return cmocka_run_group_tests_name(current->name, tests, NULL, NULL);
}

static const char *
log_path(uint64_t number)
{
	static char path[320];

	snprintf(path, sizeof path, "%s/%s-%" PRIu64 ".log", torture.folder, current->name, number);
	return path;
}

static pid_t
start(uint64_t number)
{
	pid_t pid;
	int fd;

	fflush(NULL);
	pid = fork();
	if (pid != 0)
		return pid;
	setpgid(0, 0);
	fd = open(log_path(number), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND, 0666);
	if (fd < 0 || dup2(fd, 1) < 0 || dup2(fd, 2) < 0)
		_exit(1);
	alarm(RUN_SECONDS);
	_exit(run_here(number));
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static void
remove_folder(const char *path)
{
	nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* What the run said last, or from its failure on. */
static void
print_log(uint64_t number)
{
	FILE *log = fopen(log_path(number), "r");
	char line[8192];
	long lines = 0, from = 0;

	if (!log)
		return;
	while (fgets(line, sizeof line, log) && strncmp(line, "ERROR:", 6) != 0)
		lines++;
	from = feof(log) ? lines - LAST_LINES : lines;
	rewind(log);
	for (lines = 0; lines < from + MAX_LINES && fgets(line, sizeof line, log); lines++)
		if (lines >= from && line[0] != '\n' && (line[0] != '[' || strncmp(line, "[  ERROR", 8) == 0) &&
		    !strstr(line, " FAILED TEST(S)"))
			printf("    %s%s", line, strchr(line, '\n') ? "" : "\n");
	fclose(log);
}

static void
report(uint64_t number, int status)
{
	printf("%s: finding in run %" PRIu64 " of seed %" PRIu64 ": ", current->name, number, torture.seed);
	if (WIFSIGNALED(status))
		printf("%s\n", WTERMSIG(status) == SIGALRM ? "it hangs" : strsignal(WTERMSIG(status)));
	else
		printf("\n");
	print_log(number);
	printf("  again: %s/tests/torture %s %s --seed %" PRIu64 " --first %" PRIu64 " --runs 1\n  kept: %s/%s-%" PRIu64
	       "\n",
	       torture.build, torture.build, current->name, torture.seed, number, torture.folder, current->name,
	       number);
	fflush(stdout);
	torture.findings++;
}

static void
finish(uint64_t number, pid_t pid, int status)
{
	char folder[300];

	kill(-pid, SIGKILL); /* commands that outlived it */
	if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
		report(number, status);
		return;
	}
	if (torture.runs == 1)
		print_log(number);
	snprintf(folder, sizeof folder, "%s/%s-%" PRIu64, torture.folder, current->name, number);
	remove_folder(folder);
	unlink(log_path(number));
}

/* Several at a time; none sees another. */
static void
run_kind(void)
{
	struct {
		pid_t pid;
		uint64_t number;
	} job[MAX_JOBS];
	unsigned busy = 0, i;
	uint64_t next = torture.first, end = torture.first + torture.runs, before = torture.findings;
	int status;

	while (next < end || busy > 0) {
		pid_t pid;

		if (next < end && busy < torture.jobs) {
			job[busy].number = next++;
			job[busy].pid = start(job[busy].number);
			if (job[busy].pid < 0) {
				perror("torture: cannot fork");
				exit(2);
			}
			busy++;
			continue;
		}
		pid = wait(&status);
		for (i = 0; i < busy && job[i].pid != pid; i++)
			;
		if (i < busy) {
			finish(job[i].number, pid, status);
			job[i] = job[--busy];
		}
	}
	printf("%s: %" PRIu64 " runs, %" PRIu64 " findings (seed %" PRIu64 ", runs %" PRIu64 " to %" PRIu64 ")\n",
	       current->name, torture.runs, torture.findings - before, torture.seed, torture.first, end - 1);
	fflush(stdout);
}

/* ---- the program ---- */

static void
usage(void)
{
	fprintf(stderr, "usage: torture BUILD KIND|all [--runs N] [--seed S] [--first K] [--jobs J]\nkinds:");
	for (size_t i = 0; i < KINDS; i++)
		fprintf(stderr, " %s", kinds[i].name);
	fprintf(stderr, "\n");
	exit(2);
}

static void
read_arguments(int argc, char **argv)
{
	if (argc < 3 || argc % 2 == 0)
		usage();
	torture.build = realpath(argv[1], NULL);
	torture.kind = argv[2];
	torture.jobs = leat_default_threads();
	for (int i = 3; i < argc; i += 2) {
		uint64_t value = strtoull(argv[i + 1], NULL, 10);

		if (strcmp(argv[i], "--runs") == 0)
			torture.runs = value;
		else if (strcmp(argv[i], "--seed") == 0)
			torture.seed = value;
		else if (strcmp(argv[i], "--first") == 0)
			torture.first = value;
		else if (strcmp(argv[i], "--jobs") == 0)
			torture.jobs = (unsigned)value;
		else
			usage();
	}
	if (torture.jobs == 0 || torture.jobs > MAX_JOBS || torture.runs == 0 || !torture.build)
		usage();
}

/* In a folder of ours, which runs share. */
static void
make_data(void)
{
	const char *where = getenv("TMPDIR");

	snprintf(torture.folder, sizeof torture.folder, "%.100s/leat-torture-XXXXXX", where && *where ? where : "/tmp");
	if (!mkdtemp(torture.folder)) {
		perror("torture: cannot make a folder");
		exit(2);
	}
	setenv("TMPDIR", torture.folder, 1);
	sources_make(&torture.sources);
}

int
main(int argc, char **argv)
{
	bool known = false;

	read_arguments(argc, argv);
	make_data();
	if (strcmp(torture.kind, "all") == 0)
		torture.runs = (torture.runs + KINDS - 1) / KINDS;
	for (size_t i = 0; i < KINDS; i++)
		if (strcmp(torture.kind, "all") == 0 || strcmp(torture.kind, kinds[i].name) == 0) {
			current = &kinds[i];
			known = true;
			run_kind();
		}
	if (torture.findings == 0)
		remove_folder(torture.folder);
	else
		sources_remove(&torture.sources);
	if (!known)
		usage();
	return torture.findings > 0;
}
