#ifndef SIMULATION_RUNTIME_H
#define SIMULATION_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// The parts of the process that a simulation replaces: the executor of Swift concurrency, the clocks and random numbers of the system,
// and stream sockets. Everything belongs to one thread.

/// Takes over the executor. From now on a new thread ends the process.
void sim_install(void);

/// Seeds the system's random numbers and those of SQLite.
void sim_seed(uint64_t seed);

/// Makes OpenSSL take its random numbers from the same place; false if the system has no OpenSSL.
bool sim_seed_tls(void);

/// Sets the system's clocks, in nanoseconds.
void sim_set_clock(int64_t wall, int64_t monotonic);

/// The system's monotonic clock as it is, in nanoseconds.
int64_t sim_real_clock(void);

// Jobs.

/// The number of jobs that are ready.
int sim_job_count(void);

/// Runs a ready job and removes it.
void sim_run_job(int index);

/// Makes the delayed jobs ready whose time has come.
void sim_wake_jobs(void);

/// The time of the first delayed job on the monotonic clock; INT64_MAX if there is none.
int64_t sim_next_job(void);

// Sockets: each end of a connection is one end of a socket pair, and the simulator holds the others.

/// Whether connections to 127.0.0.HOST are rejected at once.
void sim_refuse(int host, bool refuses);

/// Takes the other end of the next socket that has connected to 127.0.0.HOST; -1 if there is none.
int sim_take_connection(int *host);

/// Lets a connection arrive at the listener; returns the simulator's end, or -1 if nothing listens.
int sim_arrive(void);

/// Whether the peer of one of the simulator's ends has closed its socket with a reset.
bool sim_was_reset(int descriptor);

/// Resets the connection at the peer of one of the simulator's ends, and closes this end.
void sim_reset(int descriptor);

/// Reads without waiting: the number of bytes, 0 at the end, -1 if there is nothing.
long sim_read(int descriptor, void *buffer, size_t count);

/// Writes without waiting; returns the number of bytes, or -1 if there is no room or no peer.
long sim_write(int descriptor, const void *buffer, size_t count);

/// Ends sending on one of the simulator's ends.
void sim_finish(int descriptor);

void sim_close(int descriptor);

// Processes.

/// Starts a copy of this process: 0 in the copy.
int sim_fork(void);

/// Waits for a copy; its exit status, or 128 and its signal.
int sim_wait(int process);

/// Ends this process without running what was registered for its end.
_Noreturn void sim_exit(int status);

#endif
