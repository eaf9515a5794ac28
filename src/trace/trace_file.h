/* trace_file.h - a recorder's sink that writes a trace for Perfetto and chrome://tracing
 *
 * The file is a JSON array of events, one per line, as the Trace Event Format describes it. It is written at least once
 * a second, and complete each time: the closing bracket is overwritten by what comes next. So a killed process leaves
 * a valid file.
 *
 * The file has a size limit. When it gets there, it is written anew with every 2nd item (sample or batch) of the kinds
 * of spans that take the most room, next time with every 4th, and so on; new spans are thinned likewise. So it covers
 * the whole run, however long, and the items that it keeps have all their spans.
 *
 * If writing fails, the log gets one warning, the file stays as it is, and leat_recorder_close fails. */
#ifndef LEAT_TRACE_TRACE_FILE_H
#define LEAT_TRACE_TRACE_FILE_H

#include "trace/recorder.h"

/* Creates the file that the recorder's option `trace` names, and attaches the sink. */
enum leat_status leat_trace_file_open(struct leat_recorder *recorder, struct leat_err *err);

#endif
