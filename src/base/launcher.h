/* launcher.h - what torchrun, mpirun and srun tell a process through its environment */
#ifndef LEAT_BASE_LAUNCHER_H
#define LEAT_BASE_LAUNCHER_H

#include "base/err.h"

enum { LEAT_MAX_WORLD = 1 << 24 };

/* Uses the first launcher that sets both variables: a shell inside a Slurm allocation has the number of tasks but
 * is not one of them. Without a launcher: rank 0 of 1. */
enum leat_status leat_launcher_rank(int *rank, int *world, struct leat_err *err);

#endif
