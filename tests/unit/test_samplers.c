/* test_samplers.c - what samplers say of made-up machines, of this process, and of GPUs that a stand-in for NVML has */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <dlfcn.h>
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "support/chrome.h"
#include "support/temp.h"
#include "trace/sampler.h"

#define SECOND ((uint64_t)1000000000)

/* ---- tracks ---- */

struct tracks {
	int count;
	struct {
		char name[LEAT_SAMPLER_TRACK];
		double value;
	} track[256];
};

static void
put(void *arg, const char *track, double value)
{
	struct tracks *tracks = arg;

	assert_in_range(tracks->count, 0, 255);
	assert_in_range(strlen(track), 1, LEAT_SAMPLER_TRACK - 1);
	strcpy(tracks->track[tracks->count].name, track);
	tracks->track[tracks->count++].value = value;
}

/* -1: no such track. */
static double
value_of(const struct tracks *tracks, const char *name)
{
	double value = -1;
	int found = 0;

	for (int i = 0; i < tracks->count; i++) {
		if (strcmp(tracks->track[i].name, name) == 0) {
			value = tracks->track[i].value;
			found++;
		}
	}
	assert_in_range(found, 0, 1);
	return value;
}

static void
assert_near(double value, double expected)
{
	if (value < expected - 0.001 || value > expected + 0.001)
		fail_msg("%f is not %f", value, expected);
}

static struct tracks
take(struct leat_samplers *samplers, uint64_t now)
{
	struct tracks tracks = {0};

	leat_samplers_take(samplers, now, put, &tracks);
	return tracks;
}

/* ---- a made-up machine ---- */

static struct temp temp;
static struct leat_mem mem;

static void
write_file(const char *text, const char *format, ...)
{
	char path[256];
	FILE *file;
	va_list ap;

	va_start(ap, format);
	vsnprintf(path, sizeof path, format, ap);
	va_end(ap);
	for (char *slash = path; (slash = strchr(slash, '/')) != NULL; slash++) {
		*slash = '\0';
		if (mkdir(temp_path(&temp, path), 0700) != 0)
			assert_int_equal(errno, EEXIST);
		*slash = '/';
	}
	/* The same file, as /proc has: samplers keep it open. */
	file = fopen(temp_path(&temp, path), "w");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void
write_stat(int ticks, const char *name, int start, const char *format, int id)
{
	char text[256];

	snprintf(text, sizeof text, "%d (%s) S 1 1 1 0 -1 0 0 0 0 0 %d 0 0 0 20 0 1 0 %d 0 0\n", id, name, ticks,
	         start);
	write_file(text, format, id);
}

static struct leat_samplers *
open_at(const char *root)
{
	struct leat_samplers *samplers;
	struct leat_err err;

	leat_mem_init(&mem, SIZE_MAX);
	assert_int_equal(leat_samplers_open(&samplers, root, &mem, &err), LEAT_OK);
	return samplers;
}

static void
close_samplers(struct leat_samplers *samplers)
{
	leat_samplers_close(samplers);
	assert_int_equal(mem.used, 0);
}

static int
set_up(void **state)
{
	(void)state;
	temp_make(&temp);
	setenv("LEAT_NVML", "/nonexistent", 1);
	unsetenv("CUDA_VISIBLE_DEVICES");
	unsetenv("LOCAL_RANK");
	return 0;
}

static int
tear_down(void **state)
{
	(void)state;
	temp_remove(&temp);
	return 0;
}

static void
a_machine_without_proc_has_no_tracks(void **state)
{
	struct leat_samplers *samplers = open_at(temp.folder);
	struct leat_device device;
	struct tracks tracks;

	(void)state;
	take(samplers, SECOND);
	tracks = take(samplers, 2 * SECOND);
	assert_int_equal(tracks.count, 0);
	assert_false(leat_samplers_device(samplers, &device));
	close_samplers(samplers);
}

static void
out_of_memory_is_an_error(void **state)
{
	struct leat_samplers *samplers;
	struct leat_err err;

	(void)state;
	leat_mem_init(&mem, 1000);
	leat_err_clear(&err);
	assert_int_equal(leat_samplers_open(&samplers, temp.folder, &mem, &err), LEAT_LIMIT);
	assert_null(samplers);
	leat_samplers_close(samplers);
}

static void
cpu_time_is_a_percentage_per_name(void **state)
{
	long hz = sysconf(_SC_CLK_TCK);
	struct leat_samplers *samplers;
	struct tracks tracks;

	(void)state;
	write_stat(0, "program", 1, "proc/self/stat", 1);
	write_stat(100, "leat-work-3", 1, "proc/self/task/%d/stat", 11);
	write_stat(100, "python3", 2, "proc/self/task/%d/stat", 12);
	write_stat(100, "python3", 3, "proc/self/task/%d/stat", 13);
	write_file("21 ", "proc/self/task/13/children");
	write_file("22", "proc/21/task/21/children");
	write_stat(1000, "pt_data_worker", 4, "proc/%d/stat", 21);
	write_stat(1000, "pt_data_worker", 4, "proc/%d/stat", 22);
	samplers = open_at(temp.folder);
	tracks = take(samplers, 10 * SECOND);
	assert_int_equal(tracks.count, 0); /* there are no rates yet */
	write_stat((int)hz * 2, "program", 1, "proc/self/stat", 1);
	write_stat(100 + (int)hz, "leat-work-3", 1, "proc/self/task/%d/stat", 11);
	write_stat(100 + (int)hz / 2, "python3", 2, "proc/self/task/%d/stat", 12);
	write_stat(100 + (int)hz / 4, "python3", 3, "proc/self/task/%d/stat", 13);
	write_stat(1000 + (int)hz, "pt_data_worker", 4, "proc/%d/stat", 21);
	tracks = take(samplers, 12 * SECOND);
	assert_near(value_of(&tracks, "cpu worker 3 %"), 50);
	assert_near(value_of(&tracks, "cpu python3 %"), 37.5);
	assert_near(value_of(&tracks, "cpu process pt_data_worker %"), 50);
	assert_near(value_of(&tracks, "cpu total %"), 150);
	/* Another thread with the same id: what it did is not what it did more than the first. */
	write_stat(100 + (int)hz + 1, "leat-io-0", 9, "proc/self/task/%d/stat", 11);
	tracks = take(samplers, 13 * SECOND);
	assert_near(value_of(&tracks, "cpu I/O 0 %"), 100.0 * (101 + (double)hz) / (double)hz);
	assert_near(value_of(&tracks, "cpu worker 3 %"), -1);
	assert_near(value_of(&tracks, "cpu total %"), 0);
	close_samplers(samplers);
}

static void
a_thousand_names_share_the_last_track(void **state)
{
	struct leat_samplers *samplers;
	struct tracks tracks;
	char name[16];

	(void)state;
	write_stat(0, "program", 1, "proc/self/stat", 1);
	for (int i = 0; i < 300; i++) {
		snprintf(name, sizeof name, "thread %d", i);
		write_stat(0, name, 1, "proc/self/task/%d/stat", 1000 + i);
	}
	samplers = open_at(temp.folder);
	take(samplers, SECOND);
	tracks = take(samplers, 2 * SECOND);
	assert_in_range(tracks.count, 100, 200);
	assert_near(value_of(&tracks, "cpu others %"), 0);
	close_samplers(samplers);
}

static void
memory_disk_and_network_are_in_megabytes(void **state)
{
	double page = (double)sysconf(_SC_PAGESIZE) / 1e6;
	struct leat_samplers *samplers;
	struct tracks tracks;

	(void)state;
	write_file("900 1000 1 1 0 1 0\n", "proc/self/statm");
	write_file("read_bytes: 5000000\nwrite_bytes: 1000000\n", "proc/self/io");
	write_file("lo: 5 0 0 0 0 0 0 0 5 0\neth0: 0 0 0 0 0 0 0 0 0 0\n", "proc/self/net/dev");
	samplers = open_at(temp.folder);
	tracks = take(samplers, 10 * SECOND);
	assert_int_equal(tracks.count, 0);
	write_file("read_bytes: 9000000\nwrite_bytes: 3000000\n", "proc/self/io");
	write_file("lo: 5 0 0 0 0 0 0 0 5 0\neth0: 4000000 0 0 0 0 0 0 0 1000000 0\n", "proc/self/net/dev");
	tracks = take(samplers, 12 * SECOND);
	assert_near(value_of(&tracks, "rss MB"), 1000 * page);
	assert_near(value_of(&tracks, "disk MB/s"), 3);
	assert_near(value_of(&tracks, "network MB/s"), 2.5);
	assert_near(value_of(&tracks, "loopback MB/s"), -1); /* not used so far */
	write_file("lo: 8000005 0 0 0 0 0 0 0 8000005 0\neth0: 0 0 0 0 0 0 0 0 0 0\n", "proc/self/net/dev");
	tracks = take(samplers, 13 * SECOND);
	assert_near(value_of(&tracks, "loopback MB/s"), 8);
	assert_near(value_of(&tracks, "network MB/s"), 0); /* the interface was replaced by another one */
	write_file("", "proc/self/io");
	tracks = take(samplers, 14 * SECOND);
	assert_near(value_of(&tracks, "disk MB/s"), -1);
	close_samplers(samplers);
}

static void
check_throttling(const char *folder)
{
	struct leat_samplers *samplers = open_at(temp.folder);
	struct tracks tracks;

	take(samplers, SECOND);
	write_file("usage_usec 1\nnr_periods 120\nnr_throttled 15\nthrottled_usec 9\n", "%s/cpu.stat", folder);
	tracks = take(samplers, 2 * SECOND);
	assert_near(value_of(&tracks, "throttled %"), 25);
	tracks = take(samplers, 3 * SECOND); /* an idle group has no periods */
	assert_near(value_of(&tracks, "throttled %"), 0);
	close_samplers(samplers);
}

static void
throttling_is_that_of_the_group_with_the_quota_v2(void **state)
{
	(void)state;
	write_file("0::/pod/job\n", "proc/self/cgroup");
	write_file("30 23 0:26 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n", "proc/self/mountinfo");
	write_file("max 100000\n", "sys/fs/cgroup/pod/job/cpu.max");
	write_file("nr_periods 0\nnr_throttled 0\n", "sys/fs/cgroup/pod/job/cpu.stat");
	write_file("150000 100000\n", "sys/fs/cgroup/pod/cpu.max");
	write_file("nr_periods 100\nnr_throttled 10\n", "sys/fs/cgroup/pod/cpu.stat");
	check_throttling("sys/fs/cgroup/pod");
}

static void
throttling_is_that_of_the_group_with_the_quota_v1(void **state)
{
	(void)state;
	write_file("4:cpu,cpuacct:/job\n", "proc/self/cgroup");
	write_file("33 32 0:30 / /cg rw - cgroup cgroup rw,cpu,cpuacct\n", "proc/self/mountinfo");
	write_file("150000\n", "cg/job/cpu.cfs_quota_us");
	write_file("100000\n", "cg/job/cpu.cfs_period_us");
	write_file("nr_periods 100\nnr_throttled 10\nthrottled_time 5\n", "cg/job/cpu.stat");
	check_throttling("cg/job");
}

/* ---- this process ---- */

struct busy {
	atomic_bool stop;
};

static void *
spin(void *arg)
{
	struct busy *busy = arg;

	pthread_setname_np(pthread_self(), "a (b) c) d");
	while (!atomic_load(&busy->stop))
		;
	return NULL;
}

/* Nothing here depends on how fast time passes: whoever has used CPU time, however long it takes, has a track above 0.
 */
static void
threads_and_children_of_this_process_are_seen(void **state)
{
	struct leat_samplers *samplers = open_at("");
	struct busy busy = {false};
	struct tracks tracks;
	double thread = 0, child = 0;
	pthread_t other;
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails does not get to end it */
		for (;;)
			getppid();
	}
	assert_int_equal(pthread_create(&other, NULL, spin, &busy), 0);
	take(samplers, leat_now());
	for (int i = 0; i < 3000 && (thread <= 0 || child <= 0); i++) {
		usleep(10000);
		tracks = take(samplers, leat_now());
		thread = thread > 0 ? thread : value_of(&tracks, "cpu a (b) c) d %");
		child = child > 0 ? child : value_of(&tracks, "cpu process test_samplers %");
		if (access("/proc/thread-self/children", R_OK) != 0)
			child = 1; /* a kernel without CONFIG_PROC_CHILDREN */
	}
	assert_true(thread > 0);
	assert_true(child > 0);
	assert_true(value_of(&tracks, "rss MB") > 0);
	assert_true(value_of(&tracks, "cpu total %") >= 0);
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	atomic_store(&busy.stop, true);
	pthread_join(other, NULL);
	close_samplers(samplers);
}

/* Sinks have room for so many tracks, and a program may have more threads. */
static void
tracks_of_threads_come_last(void **state)
{
	struct leat_samplers *samplers = open_at("");
	struct tracks tracks;
	int threads = 0;

	(void)state;
	take(samplers, SECOND);
	tracks = take(samplers, 2 * SECOND);
	for (int i = 0; i < tracks.count; i++) {
		threads += strncmp(tracks.track[i].name, "cpu ", 4) == 0;
		assert_true(threads == 0 || strncmp(tracks.track[i].name, "cpu ", 4) == 0);
	}
	assert_true(threads > 0 && tracks.count > threads);
	close_samplers(samplers);
}

/* ---- GPUs ---- */

static struct leat_samplers *
open_gpus(const char *library, const char *script)
{
	struct leat_samplers *samplers;
	struct tracks tracks;
	char path[512];

	snprintf(path, sizeof path, "%s%s", TOOLS, library);
	setenv("LEAT_NVML", path, 1);
	setenv("NVML_STUB", script, 1);
	samplers = open_at(temp.folder);
	tracks = take(samplers, 1);
	assert_int_equal(tracks.count, 0); /* NVML is not even loaded */
	return samplers;
}

static int
users_of(const char *library)
{
	char path[512];
	void *handle;
	int (*users)(void);
	int count;

	snprintf(path, sizeof path, "%s%s", TOOLS, library);
	handle = dlopen(path, RTLD_NOW);
	assert_non_null(handle);
	*(void **)&users = dlsym(handle, "stub_users");
	assert_non_null(users);
	count = users();
	dlclose(handle);
	return count;
}

static void
a_gpu_has_two_tracks_and_a_summary(void **state)
{
	struct leat_samplers *samplers = open_gpus("libnvml_stub.so", "1 0480");
	struct leat_device device;
	struct leat_mem others;
	struct leat_str json;
	struct tracks tracks;

	(void)state;
	for (uint64_t i = 1; i <= 4; i++) {
		tracks = take(samplers, i * SECOND);
		assert_int_equal(tracks.count, 2);
		assert_near(value_of(&tracks, "gpu %"), (double[]){0, 40, 80, 0}[i - 1]);
		assert_near(value_of(&tracks, "gpu memory MB"), 100 + (double)i);
	}
	assert_int_equal(users_of("libnvml_stub.so"), 1);
	assert_true(leat_samplers_device(samplers, &device));
	assert_int_equal(device.devices, 1);
	assert_int_equal(device.samples, 4);
	assert_near(device.utilization, 30);
	assert_near(device.utilization_used, 60);
	assert_near(device.busy, 0.5);
	assert_near(device.memory / 1e6, 102.5);
	assert_near(device.memory_peak / 1e6, 104);
	assert_near(device.memory_total / 1e6, 1000);
	leat_mem_init(&others, SIZE_MAX);
	leat_str_init(&json, &others, 1000);
	leat_device_add_json(&device, &json);
	assert_string_equal(leat_str_text(&json),
	                    "{\"devices\": 1, \"samples\": 4, \"utilization\": 30, \"utilization_used\": 60, \"busy\": "
	                    "0.5, \"memory_mb\": 102.5, \"memory_peak_mb\": 104, \"memory_total_mb\": 1000}");
	leat_str_free(&json);
	close_samplers(samplers);
	assert_int_equal(users_of("libnvml_stub.so"), 0);
}

static void
several_gpus_have_a_mean_and_tracks_of_their_own(void **state)
{
	struct leat_samplers *samplers;
	struct tracks tracks;

	(void)state;
	setenv("CUDA_VISIBLE_DEVICES", "3,GPU-1", 1);
	samplers = open_gpus("libnvml_stub.so", "4 x");
	setenv("CUDA_VISIBLE_DEVICES", "0",
	       1); /* the environment is read at open, on the opener's thread, and no more */
	setenv("LEAT_NVML", "/nonexistent", 1);
	tracks = take(samplers, SECOND);
	assert_near(value_of(&tracks, "gpu %"), 100);
	assert_near(value_of(&tracks, "gpu 1 %"), 100);
	assert_near(value_of(&tracks, "gpu memory MB"), 401 + 201);
	assert_near(value_of(&tracks, "gpu 0 memory MB"), 401); /* cuda:0, which is NVML's 3 */
	assert_near(value_of(&tracks, "gpu 1 memory MB"), 201);
	close_samplers(samplers);
}

static void
a_gpu_that_is_lost_has_no_more_values(void **state)
{
	struct leat_samplers *samplers = open_gpus("libnvml_stub.so", "1 55l");
	struct leat_device device;
	struct tracks tracks;

	(void)state;
	for (uint64_t i = 1; i <= 5; i++) {
		tracks = take(samplers, i * SECOND);
		assert_int_equal(tracks.count, i <= 2 ? 2 : 0);
	}
	assert_true(leat_samplers_device(samplers, &device));
	assert_int_equal(device.samples, 2);
	assert_near(device.utilization, 50);
	close_samplers(samplers);
}

static void
utilization_may_not_be_supported(void **state)
{
	struct leat_samplers *samplers = open_gpus("libnvml_stub.so", "1 n");
	struct leat_device device;
	struct tracks tracks = take(samplers, SECOND);

	(void)state;
	assert_int_equal(tracks.count, 1);
	assert_near(value_of(&tracks, "gpu memory MB"), 101);
	assert_false(leat_samplers_device(samplers, &device));
	close_samplers(samplers);
}

static void
without_a_working_nvml_there_is_no_gpu_track(void **state)
{
	static const struct {
		const char *library, *script, *visible;
	} cases[] = {
		{"libnvml_stub.so", "init", NULL}, {"libnvml_missing.so", "1 5", NULL},
		{"nothing.so", "1 5", NULL},       {"libnvml_stub.so", "0 5", NULL},
		{"libnvml_stub.so", "2 5", ""},    {"libnvml_stub.so", "2 5", "-1"},
		{"libnvml_stub.so", "2 5", "7"},
	};
	struct tracks tracks;

	(void)state;
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct leat_samplers *samplers;

		if (cases[i].visible)
			setenv("CUDA_VISIBLE_DEVICES", cases[i].visible, 1);
		samplers = open_gpus(cases[i].library, cases[i].script);
		take(samplers, SECOND);
		tracks = take(samplers, 2 * SECOND);
		assert_int_equal(tracks.count, 0);
		close_samplers(samplers);
	}
}

static void
a_rank_looks_at_its_own_gpu(void **state)
{
	struct leat_gpu_choice choice;

	(void)state;
	leat_gpu_choose(&choice, NULL, NULL);
	assert_true(choice.all && !choice.by_rank);
	leat_gpu_choose(&choice, NULL, "3");
	assert_true(choice.all && choice.by_rank && choice.rank == 3);
	leat_gpu_choose(&choice, "4,5,6", "1");
	assert_true(!choice.all && choice.count == 3 && choice.gpu[1].index == 5 && choice.rank == 1);
	leat_gpu_choose(&choice, "2,-1,3", NULL);
	assert_int_equal(choice.count, 1);
	leat_gpu_choose(&choice, "0,,3", "x");
	assert_true(choice.count == 1 && choice.gpu[0].index == 0 && !choice.by_rank);
	leat_gpu_choose(&choice, "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6", NULL);
	assert_string_equal(choice.gpu[0].uuid, "GPU-8932f937-d72c-4106-c12f-20bd9faed9f6");
	leat_gpu_choose(&choice, "GPU-aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
	                NULL);
	assert_int_equal(choice.count, 0);
	leat_gpu_choose(&choice, "0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", NULL);
	assert_int_equal(choice.count, 16);
}

/* ---- in a recorder ---- */

static struct leat_recorder *
open_recorder(const char *trace, bool samplers)
{
	struct leat_recorder_options options;
	struct leat_recorder *recorder;
	struct leat_err err;

	leat_recorder_options_init(&options);
	options.trace = trace;
	options.samplers = samplers;
	if (leat_recorder_open(&options, &recorder, &err) != LEAT_OK)
		fail_msg("%s", err.text);
	return recorder;
}

static void
a_recorder_takes_samples_by_itself(void **state)
{
	struct leat_recorder *recorder;
	struct leat_device device = {0};
	json_t *trace;
	double value;

	(void)state;
	setenv("LEAT_NVML", TOOLS "libnvml_stub.so", 1);
	setenv("NVML_STUB", "1 7", 1);
	recorder = open_recorder(temp_path(&temp, "trace.json"), true);
	for (int i = 0; i < 3000 && device.samples < 3; i++) {
		usleep(10000);
		leat_recorder_device(recorder, &device);
	}
	assert_int_equal(leat_recorder_close(recorder, NULL), LEAT_OK);
	assert_in_range(device.samples, 3, 100);
	assert_near(device.utilization, 70);
	trace = chrome_read(temp_path(&temp, "trace.json"));
	assert_in_range(chrome_values(trace, "cpu total %", NULL), 3, 100);
	assert_in_range(chrome_values(trace, "cpu test_samplers %", NULL), 3, 100);
	assert_in_range(chrome_values(trace, "rss MB", NULL), 3, 100);
	assert_in_range(chrome_values(trace, "gpu memory MB", NULL), 3, 100);
	assert_in_range(chrome_values(trace, "gpu %", &value), 3, 100);
	assert_near(value, 70);
	json_decref(trace);
}

/* A program that was built with a smaller or larger struct. */
static void
a_device_of_another_size(void **state)
{
	struct {
		struct leat_device device;
		uint64_t after;
	} own;
	struct leat_recorder *recorder;

	(void)state;
	setenv("LEAT_NVML", TOOLS "libnvml_stub.so", 1);
	setenv("NVML_STUB", "1 7", 1);
	recorder = open_recorder(NULL, true);
	for (int i = 0; i < 3000 && !leat_recorder_device(recorder, &own.device); i++)
		usleep(10000);
	memset(&own, 0xff, sizeof own);
	assert_true(leat_recorder_device_sized(recorder, &own.device, offsetof(struct leat_device, utilization)));
	assert_int_equal(own.device.devices, 1);
	assert_true(isnan(own.device.utilization)); /* not written */
	assert_true(leat_recorder_device_sized(recorder, &own.device, sizeof own));
	assert_near(own.device.utilization, 70);
	assert_int_equal(own.after, 0);
	assert_int_equal(leat_recorder_close(recorder, NULL), LEAT_OK);
}

/* Half a second is a long time. */
static void
a_short_run_has_a_sample(void **state)
{
	struct leat_recorder *recorder = open_recorder(temp_path(&temp, "short.json"), true);
	json_t *trace;

	(void)state;
	usleep(60000);
	assert_int_equal(leat_recorder_close(recorder, NULL), LEAT_OK);
	trace = chrome_read(temp_path(&temp, "short.json"));
	assert_in_range(chrome_values(trace, "rss MB", NULL), 1, 1000);
	json_decref(trace);
}

static void
a_recorder_without_samplers_knows_no_device(void **state)
{
	struct leat_recorder *recorder = open_recorder(NULL, false);
	struct leat_device device;

	(void)state;
	assert_false(leat_recorder_device(recorder, &device));
	assert_int_equal(device.samples, 0);
	assert_int_equal(leat_recorder_close(recorder, NULL), LEAT_OK);
}

int
main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
	const struct CMUnitTest tests[] = {
		TEST(a_machine_without_proc_has_no_tracks),
		TEST(out_of_memory_is_an_error),
		TEST(cpu_time_is_a_percentage_per_name),
		TEST(a_thousand_names_share_the_last_track),
		TEST(memory_disk_and_network_are_in_megabytes),
		TEST(throttling_is_that_of_the_group_with_the_quota_v2),
		TEST(throttling_is_that_of_the_group_with_the_quota_v1),
		TEST(threads_and_children_of_this_process_are_seen),
		TEST(tracks_of_threads_come_last),
		TEST(a_gpu_has_two_tracks_and_a_summary),
		TEST(several_gpus_have_a_mean_and_tracks_of_their_own),
		TEST(a_gpu_that_is_lost_has_no_more_values),
		TEST(utilization_may_not_be_supported),
		TEST(without_a_working_nvml_there_is_no_gpu_track),
		TEST(a_rank_looks_at_its_own_gpu),
		TEST(a_recorder_takes_samples_by_itself),
		TEST(a_device_of_another_size),
		TEST(a_short_run_has_a_sample),
		TEST(a_recorder_without_samplers_knows_no_device),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
