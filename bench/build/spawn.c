/* spawn.c - the least that a runner of commands can cost: posix_spawn, several at a time, and nothing else
 *
 *	bench_spawn COUNT JOBS FOLDER
 *
 * runs sh -c 'echo I >FOLDER/I' for each I, and prints the seconds it took. */
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

static double
now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void
start(long i, const char *folder)
{
	char shell[] = "sh", option[] = "-c", text[4096];
	char *argv[] = {shell, option, text, NULL};
	pid_t pid;
	int error;

	snprintf(text, sizeof text, "echo %ld >'%s/%ld'", i, folder, i);
	error = posix_spawn(&pid, "/bin/sh", NULL, NULL, argv, environ);
	if (error) {
		fprintf(stderr, "bench_spawn: can't start sh: %s\n", strerror(error));
		exit(1);
	}
}

static void
wait_for_one(void)
{
	int status;

	if (wait(&status) < 0 || status) {
		fprintf(stderr, "bench_spawn: a command failed\n");
		exit(1);
	}
}

int
main(int argc, char **argv)
{
	double begin = now();
	long count, jobs;

	if (argc != 4) {
		fprintf(stderr, "usage: bench_spawn COUNT JOBS FOLDER\n");
		return 2;
	}
	count = strtol(argv[1], NULL, 10);
	jobs = strtol(argv[2], NULL, 10);
	for (long i = 0; i < count; i++) {
		if (i >= jobs)
			wait_for_one();
		start(i, argv[3]);
	}
	for (long i = 0; i < count && i < jobs; i++)
		wait_for_one();
	printf("%.6f\n", now() - begin);
	return 0;
}
