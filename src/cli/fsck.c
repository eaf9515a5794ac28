/* fsck.c - `leat fsck`: read the whole store, and find damage */
#include <stdio.h>
#include <string.h>

#include "base/size.h"
#include "base/threads.h"
#include "cas/fsck.h"
#include "cli/command.h"
#include "cli/steps.h"
#include "cli/store_folder.h"

struct fsck {
	const char *project;
	bool repair;
};

static const struct leat_opt options[] = {
	LEAT_PROJECT_OPTION(struct fsck),
	LEAT_BOOL(struct fsck, repair, "false", "remove what is damaged, and make the index again"),
	LEAT_OPT_END,
};

static void
print_problem(void *arg, const char *text)
{
	(void)arg;
	printf("%s\n", text);
}

static enum leat_status
check(struct leat_cas *cas, const struct fsck *fsck, struct leat_err *err)
{
	const struct leat_fsck_options how = {
		.repair = fsck->repair, .threads = leat_cpus(""), .problem = print_problem};
	struct leat_fsck_result result;
	char bytes[32];
	enum leat_status status = leat_cas_fsck(cas, &how, &result, err);

	if (status != LEAT_OK)
		return status;
	if (result.busy)
		return leat_fail(err, LEAT_IO, "a build uses the store '%s'; repair it when that has finished",
		                 leat_cas_folder(cas));
	leat_format_size(bytes, sizeof(bytes), result.bytes);
	printf("%zu result%s, %zu blob%s, %s: ", result.manifests, leat_plural(result.manifests), result.blobs,
	       leat_plural(result.blobs), bytes);
	if (result.damaged == 0)
		printf("clean\n");
	else
		printf("%zu problem%s%s\n", result.damaged, leat_plural(result.damaged),
		       fsck->repair ? ", repaired" : "");
	if (result.missing > 0)
		printf("%zu result%s no output any more: a build that needs %s makes it again\n", result.missing,
		       result.missing == 1 ? " has" : "s have", result.missing == 1 ? "it" : "one");
	if (result.damaged > 0 && !fsck->repair)
		return leat_fail(err, LEAT_DATA,
		                 "the store '%s' is damaged; 'leat fsck --repair' removes the damaged files, and the "
		                 "next build makes them again",
		                 leat_cas_folder(cas));
	return LEAT_OK;
}

static enum leat_status
run_fsck(const struct leat_invocation *run, struct leat_err *err)
{
	const struct fsck *fsck = run->params;
	struct leat_cas *cas = NULL;
	char folder[PATH_MAX];
	enum leat_status status = leat_store_folder(fsck->project, folder, err);

	if (status == LEAT_OK)
		status = leat_cas_open_doubtful(&cas, run->mem, folder, fsck->repair ? LEAT_CAS_WRITE : LEAT_CAS_READ,
		                                err);
	if (status == LEAT_OK)
		status = check(cas, fsck, err);
	leat_cas_close(cas);
	return status;
}

const struct leat_command leat_command_fsck = {
	.name = "fsck",
	.summary = "Check the store of results for damage",
	.operands = "",
	.help = "Hashes every file of the store, reads every manifest, and compares the index with\n"
		"them. Changes nothing without --repair. What a repair removes is made again by the\n"
		"next build that needs it.",
	.example = "leat fsck\n"
		   "leat fsck --repair",
	.opts = options,
	.params_size = sizeof(struct fsck),
	.run = run_fsck,
};
