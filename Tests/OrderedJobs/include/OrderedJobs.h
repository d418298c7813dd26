#ifndef ORDERED_JOBS_H
#define ORDERED_JOBS_H

#include <stdbool.h>
#include <stdint.h>

// Runs the jobs of Swift concurrency of this process on one thread, one at a time. The next job is drawn from those that are ready.
//
// LARDER_ORDER_SEED of the environment is the seed of the draws, 1 without it; 0 takes the jobs in the order of their arrival, and
// "off" leaves the usual executors in place. Jobs of the main actor run on the main thread, outside of the order.

/// Whether the jobs of this process have one order.
bool order_is_on(void);

/// Whether the caller is on the thread of the jobs.
bool order_is_here(void);

/// The seed of the process.
uint64_t order_seed(void);

/// Begins the draws anew, from the seed of the process and a number.
void order_begin(uint64_t number);

/// Adds a call to the jobs that are ready. From any thread.
void order_add(void (*_Nonnull call)(void *_Nullable), void *_Nullable context);

/// Adds a call that is ready after a time of the system's monotonic clock. From any thread.
void order_add_after(int64_t nanoseconds, void (*_Nonnull call)(void *_Nullable), void *_Nullable context);

/// Adds a call that is made when the process is at rest: no job is ready, and no source has work. One such call is made at a time.
/// From any thread.
void order_at_rest(void (*_Nonnull call)(void *_Nullable), void *_Nullable context);

/// Adds a source of work without a thread. It is asked whenever no job is ready, and returns whether it did something. Only on the
/// thread of the jobs.
void order_add_source(bool (*_Nonnull step)(void *_Nullable), void *_Nullable context);

/// Removes a source of work. Only on the thread of the jobs.
void order_remove_source(void *_Nullable context);

/// Runs what is ready, within the job that calls this, until the process is at rest but for that job. Does nothing on other threads.
void order_settle(void);

/// Runs jobs, within the job that calls this, until a condition holds. Waits for further jobs. Only on the thread of the jobs.
void order_run_until(bool (*_Nonnull is_over)(void *_Nullable), void *_Nullable context);

#endif
