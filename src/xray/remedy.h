/* remedy.h - what could be done about a bottleneck, and what that would bring
 *
 * A remedy is a change of the pipeline's figures: its rate is predicted by the law (law.h), and whoever can run it puts
 * the measured rate beside. Remedies that bring less than a tenth are kept with the reason why they would not help,
 * because people try them.
 *
 * All functions are pure. */
#ifndef LEAT_XRAY_REMEDY_H
#define LEAT_XRAY_REMEDY_H

#include "xray/law.h"

enum { LEAT_REMEDIES = 16, LEAT_CACHE_PLACES = 3 };

/* Cheap ones first: of two that bring the same, the first is better. */
enum leat_remedy_kind {
	LEAT_REMEDY_PREFETCH,
	LEAT_REMEDY_THREADS,
	LEAT_REMEDY_LEAVE_CPUS, /* fewer threads, for a step that needs the CPUs */
	LEAT_REMEDY_MEMORY,     /* for reads in flight */
	LEAT_REMEDY_CACHE_SIZE,
	LEAT_REMEDY_CACHE,
	LEAT_REMEDY_FAST_DECODE,
	LEAT_REMEDY_INDEX,
	LEAT_REMEDY_ORDER, /* shuffle in blocks, to read neighbours together */
	LEAT_REMEDY_AHEAD, /* more batches ahead, to sit out slow reads */
	LEAT_REMEDY_CACHE_DISK,
	LEAT_REMEDY_CONVERT, /* do the first ops once, offline */
	LEAT_REMEDY_PACK,
};

/* A place where a cache could be: how fast the ops after it are, and what it takes. */
struct leat_cache_place {
	char after[LEAT_XRAY_NAME]; /* op or source */
	int at;                     /* number of ops before it */
	struct leat_tempo pace;
	double bytes; /* per sample */
	bool raw;     /* nothing is computed before it */
};

/* What was measured of other ways to run the pipeline. */
struct leat_alternatives {
	struct leat_tempo pace[LEAT_PACES]; /* ops from memory with other numbers of threads */
	int paces;
	struct leat_cache_place place[LEAT_CACHE_PLACES];
	int places;
	double room;    /* bytes of memory for a cache */
	double samples; /* that it would hold: of one epoch, each once */
	bool has_cache; /* the spec has one */
	bool jpeg;      /* decode could be fast, and is not */
	struct leat_tempo fast;
	double blocks; /* storage with shuffle in blocks; 0: not measured */
	bool small_files;
	char source[LEAT_XRAY_NAME];
	double batch; /* samples of a batch */
};

struct leat_remedy {
	enum leat_remedy_kind kind;
	char what[LEAT_XRAY_TEXT]; /* "use 4 threads" */
	struct leat_case then;
	unsigned threads; /* THREADS, LEAVE_CPUS */
	int place;        /* CACHE: number in leat_alternatives.place */
	bool impossible;  /* for the reason in `why` */
	bool at_most;     /* the prediction is an upper bound */
	/* Results: */
	double predicted, now; /* samples/s; `now` without it */
	double measured;       /* 0: not tried */
	bool helps;
	char why[LEAT_XRAY_TEXT]; /* not, if it doesn't */
};

/* Everything worth a thought, judged: those that help first, the best of them in front. Returns their number. */
int leat_remedies(const struct leat_measures *f, const struct leat_alternatives *a, const struct leat_finding *v,
                  struct leat_remedy remedy[LEAT_REMEDIES]);

/* "threads", for JSON. */
const char *leat_remedy_name(enum leat_remedy_kind kind);

#endif
