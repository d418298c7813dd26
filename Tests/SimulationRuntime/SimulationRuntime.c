// Replaces functions of the C library and sets the hooks of the concurrency runtime: this file is linked into the simulator only. The
// dynamic linker prefers the definitions of an executable, so that the toolchain's libraries use them too.
#define _GNU_SOURCE
#include "SimulationRuntime.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static long raw(long number, long a, long b, long c, long d, long e, long f) {
#if defined(__x86_64__)
    long result;
    register long r10 __asm__("r10") = d;
    register long r8 __asm__("r8") = e;
    register long r9 __asm__("r9") = f;
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
#elif defined(__aarch64__)
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a;
    register long x1 __asm__("x1") = b;
    register long x2 __asm__("x2") = c;
    register long x3 __asm__("x3") = d;
    register long x4 __asm__("x4") = e;
    register long x5 __asm__("x5") = f;
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    long result = x0;
#else
#error "The simulator needs the system call of this processor."
#endif
    if (result < 0 && result > -4096) {
        errno = (int)-result;
        return -1;
    }
    return result;
}

// MARK: Random numbers

static uint64_t random_state = 1;

static uint64_t next_random(void) {
    uint64_t z = (random_state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static ssize_t fill(void *buffer, size_t count) {
    unsigned char *bytes = buffer;
    for (size_t i = 0; i < count; i++) bytes[i] = (unsigned char)(next_random() >> 32);
    return (ssize_t)count;
}

void sim_seed(uint64_t seed) {
    random_state = seed * 2 + 1;
    sqlite3_test_control(SQLITE_TESTCTRL_PRNG_SEED, (int)(seed % 0x7FFFFFFF) + 1, (sqlite3 *)NULL);
}

ssize_t getrandom(void *buffer, size_t count, unsigned flags) {
    (void)flags;
    return fill(buffer, count);
}

int getentropy(void *buffer, size_t count) {
    fill(buffer, count);
    return 0;
}

// OpenSSL mixes the number of the process and the processor's cycles into its own generator. Handshakes and signatures have other bytes
// and lengths then, so the generator is replaced: RAND_METHOD of OpenSSL 1.1 and 3.
static int tls_bytes(unsigned char *buffer, int count) { return fill(buffer, (size_t)count) == count; }
static int tls_seed(const void *buffer, int count) { return (void)buffer, (void)count, 1; }
static int tls_add(const void *buffer, int count, double entropy) { return (void)entropy, tls_seed(buffer, count); }
static int tls_status(void) { return 1; }
static const struct {
    int (*seed)(const void *, int);
    int (*bytes)(unsigned char *, int);
    void (*cleanup)(void);
    int (*add)(const void *, int, double);
    int (*pseudorand)(unsigned char *, int);
    int (*status)(void);
} tls_method = {tls_seed, tls_bytes, NULL, tls_add, tls_bytes, tls_status};

bool sim_seed_tls(void) {
    void *library = dlopen("libcrypto.so.3", RTLD_NOW);
    if (!library) library = dlopen("libcrypto.so.1.1", RTLD_NOW);
    int (*set)(const void *) = library ? (int (*)(const void *))dlsym(library, "RAND_set_rand_method") : NULL;
    return set && set(&tls_method) == 1;
}

pid_t gettid(void) { return 1; }

// The standard library of Swift asks for random numbers with syscall(2).
long syscall(long number, ...) {
    va_list list;
    va_start(list, number);
    long a = va_arg(list, long), b = va_arg(list, long), c = va_arg(list, long);
    long d = va_arg(list, long), e = va_arg(list, long), f = va_arg(list, long);
    va_end(list);
    if (number == SYS_getrandom) return fill((void *)a, (size_t)b);
    // Locks hold the number of their thread, and some of them are older than the copy of the process.
    if (number == SYS_gettid) return 1;
    return raw(number, a, b, c, d, e, f);
}

// MARK: Clocks

static int64_t wall_now = 1790000000LL * 1000000000LL;
static int64_t monotonic_now = 1000000000LL;

void sim_set_clock(int64_t wall, int64_t monotonic) {
    wall_now = wall;
    monotonic_now = monotonic;
}

int64_t sim_real_clock(void) {
    struct timespec now;
    raw(SYS_clock_gettime, CLOCK_MONOTONIC, (long)&now, 0, 0, 0, 0);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    bool is_wall = clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE;
    int64_t value = is_wall ? wall_now : monotonic_now;
    now->tv_sec = value / 1000000000LL;
    now->tv_nsec = value % 1000000000LL;
    return 0;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    (void)zone;
    now->tv_sec = wall_now / 1000000000LL;
    now->tv_usec = wall_now % 1000000000LL / 1000;
    return 0;
}

time_t time(time_t *now) {
    time_t value = wall_now / 1000000000LL;
    if (now) *now = value;
    return value;
}

// MARK: Threads

int pthread_create(pthread_t *restrict thread, const pthread_attr_t *restrict attributes, void *(*start)(void *), void *restrict argument) {
    (void)thread, (void)attributes, (void)start, (void)argument;
    static const char text[] = "A simulation has one thread, and its code has started another.\n";
    raw(SYS_write, 2, (long)text, sizeof text - 1, 0, 0, 0);
    abort();
}

// MARK: Jobs

#define SWIFTCALL __attribute__((swiftcall))

extern void *swift_task_enqueueGlobal_hook;
extern void *swift_task_enqueueGlobalWithDelay_hook;
extern void *swift_task_enqueueGlobalWithDeadline_hook;
extern void *swift_task_enqueueMainExecutor_hook;
SWIFTCALL extern void swift_job_run(void *job, void *identity, uintptr_t implementation);

struct delayed {
    int64_t due;
    uint64_t number;
    void *job;
};

static void **jobs;
static int job_count, job_capacity;
static struct delayed *delayed;
static int delayed_count, delayed_capacity;
static uint64_t delayed_number;

static void add_job(void *job) {
    if (job_count == job_capacity) {
        job_capacity = job_capacity ? job_capacity * 2 : 256;
        jobs = realloc(jobs, (size_t)job_capacity * sizeof *jobs);
    }
    jobs[job_count++] = job;
}

static void add_delayed(int64_t delay, void *job) {
    if (delayed_count == delayed_capacity) {
        delayed_capacity = delayed_capacity ? delayed_capacity * 2 : 64;
        delayed = realloc(delayed, (size_t)delayed_capacity * sizeof *delayed);
    }
    delayed[delayed_count++] = (struct delayed){monotonic_now + (delay > 0 ? delay : 0), delayed_number++, job};
}

SWIFTCALL static void enqueue(void *job, void *original) {
    (void)original;
    add_job(job);
}

SWIFTCALL static void enqueue_delayed(unsigned long long delay, void *job, void *original) {
    (void)original;
    add_delayed((int64_t)delay, job);
}

SWIFTCALL static void
enqueue_deadline(long long sec, long long nsec, long long tsec, long long tnsec, int clock, void *job, void *original) {
    (void)tsec, (void)tnsec, (void)original;
    // Clock 1 is the continuous, 2 the suspending one; both are the monotonic clock here, and 3 is the wall clock.
    int64_t now = clock == 3 ? wall_now : monotonic_now;
    add_delayed(sec * 1000000000LL + nsec - now, job);
}

// The order of sets and dictionaries must not depend on addresses: the standard library reads that from the environment, once.
__attribute__((constructor)) static void begin_deterministically(int count, char **arguments) {
    (void)count;
    if (getenv("SWIFT_DETERMINISTIC_HASHING")) return;
    setenv("SWIFT_DETERMINISTIC_HASHING", "1", 1);
    // Types are named by their addresses. A container may forbid it.
    int now = personality(0xFFFFFFFF);
    if (now < 0 || personality((unsigned long)now | ADDR_NO_RANDOMIZE) < 0 || !(personality(0xFFFFFFFF) & ADDR_NO_RANDOMIZE))
        fputs("The addresses of this process stay random: runs of one seed may differ.\n", stderr);
    execv("/proc/self/exe", arguments);
    perror("The simulator cannot start itself again");
    _exit(2);
}

void sim_install(void) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    swift_task_enqueueGlobal_hook = (void *)enqueue;
    swift_task_enqueueGlobalWithDelay_hook = (void *)enqueue_delayed;
    swift_task_enqueueGlobalWithDeadline_hook = (void *)enqueue_deadline;
    swift_task_enqueueMainExecutor_hook = (void *)enqueue;
}

int sim_job_count(void) { return job_count; }

void sim_run_job(int index) {
    void *job = jobs[index];
    job_count--;
    memmove(jobs + index, jobs + index + 1, (size_t)(job_count - index) * sizeof *jobs);
    swift_job_run(job, NULL, 0);
}

void sim_wake_jobs(void) {
    for (;;) {
        int first = -1;
        for (int i = 0; i < delayed_count; i++) {
            if (delayed[i].due > monotonic_now) continue;
            if (first < 0 || delayed[i].due < delayed[first].due
                || (delayed[i].due == delayed[first].due && delayed[i].number < delayed[first].number))
                first = i;
        }
        if (first < 0) return;
        void *job = delayed[first].job;
        delayed[first] = delayed[--delayed_count];
        add_job(job);
    }
}

int64_t sim_next_job(void) {
    int64_t next = INT64_MAX;
    for (int i = 0; i < delayed_count; i++)
        if (delayed[i].due < next) next = delayed[i].due;
    return next;
}

// MARK: Sockets

enum { descriptors_maximum = 4096, queue_maximum = 256 };

// What is known of a socket of the code under test, by its descriptor.
static struct {
    int peer;  // The simulator's end; 0: not a simulated socket.
    bool is_taken, resets, is_reset;
} sockets[descriptors_maximum];
// The socket of the code under test, by the simulator's end.
static int owners[descriptors_maximum];
static bool was_reset[descriptors_maximum];
static int listener = -1;
static struct {
    int end, host;
} connecting[queue_maximum];
static int connecting_count;
static int arriving[queue_maximum], arriving_count;
// By host.
static bool refuses_connections[256];
static uint16_t next_port = 40000;

static int make_socket(void) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) != 0) return -1;
    if (ends[0] >= descriptors_maximum || ends[1] >= descriptors_maximum) abort();
    memset(&sockets[ends[0]], 0, sizeof sockets[0]);
    sockets[ends[0]].peer = ends[1];
    owners[ends[1]] = ends[0];
    was_reset[ends[1]] = false;
    return ends[0];
}

int socket(int family, int type, int protocol) {
    if (family == AF_INET || family == AF_INET6) return make_socket();
    return (int)raw(SYS_socket, family, type, protocol, 0, 0, 0);
}

int bind(int descriptor, const struct sockaddr *address, socklen_t length) {
    if (sockets[descriptor].peer) return 0;
    return (int)raw(SYS_bind, descriptor, (long)address, length, 0, 0, 0);
}

int listen(int descriptor, int backlog) {
    if (!sockets[descriptor].peer) return (int)raw(SYS_listen, descriptor, backlog, 0, 0, 0, 0);
    listener = descriptor;
    return 0;
}

static void write_address(uint16_t port, struct sockaddr *address, socklen_t *length) {
    struct sockaddr_in local = {.sin_family = AF_INET, .sin_port = htons(port)};
    local.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    memcpy(address, &local, *length < sizeof local ? *length : sizeof local);
    *length = sizeof local;
}

int getsockname(int descriptor, struct sockaddr *restrict address, socklen_t *restrict length) {
    if (!sockets[descriptor].peer) return (int)raw(SYS_getsockname, descriptor, (long)address, (long)length, 0, 0, 0);
    write_address(8080, address, length);
    return 0;
}

int accept4(int descriptor, struct sockaddr *restrict address, socklen_t *restrict length, int flags) {
    (void)flags;
    if (descriptor != listener || arriving_count == 0) {
        errno = EAGAIN;
        return -1;
    }
    char byte;
    raw(SYS_read, descriptor, (long)&byte, 1, 0, 0, 0);
    int accepted = arriving[0];
    arriving_count--;
    memmove(arriving, arriving + 1, (size_t)arriving_count * sizeof *arriving);
    if (++next_port == 0) next_port = 40000;
    write_address(next_port, address, length);
    return accepted;
}

int connect(int descriptor, const struct sockaddr *address, socklen_t length) {
    if (!sockets[descriptor].peer) return (int)raw(SYS_connect, descriptor, (long)address, length, 0, 0, 0);
    // A device has a loopback address of its own for the server, by which its connections are known.
    int host = (int)(ntohl(((const struct sockaddr_in *)address)->sin_addr.s_addr) & 0xFF);
    if (refuses_connections[host] || connecting_count == queue_maximum) {
        errno = ECONNREFUSED;
        return -1;
    }
    sockets[descriptor].is_taken = true;
    connecting[connecting_count].end = sockets[descriptor].peer;
    connecting[connecting_count++].host = host;
    return 0;
}

int setsockopt(int descriptor, int level, int option, const void *value, socklen_t length) {
    if (descriptor < descriptors_maximum && sockets[descriptor].peer) {
        if (level == SOL_SOCKET && option == SO_LINGER) sockets[descriptor].resets = ((const struct linger *)value)->l_onoff != 0;
        return 0;
    }
    return (int)raw(SYS_setsockopt, descriptor, level, option, (long)value, length, 0);
}

ssize_t recv(int descriptor, void *buffer, size_t count, int flags) {
    if (descriptor < descriptors_maximum && sockets[descriptor].is_reset) {
        errno = ECONNRESET;
        return -1;
    }
    return raw(SYS_recvfrom, descriptor, (long)buffer, (long)count, flags, 0, 0);
}

int close(int descriptor) {
    if (descriptor >= 0 && descriptor < descriptors_maximum && sockets[descriptor].peer) {
        int peer = sockets[descriptor].peer;
        was_reset[peer] = sockets[descriptor].resets;
        owners[peer] = 0;
        bool is_mine = sockets[descriptor].is_taken;
        memset(&sockets[descriptor], 0, sizeof sockets[0]);
        if (descriptor == listener) {
            listener = -1;
            while (arriving_count > 0) close(arriving[--arriving_count]);
        }
        if (!is_mine) raw(SYS_close, peer, 0, 0, 0, 0, 0);
    }
    return (int)raw(SYS_close, descriptor, 0, 0, 0, 0, 0);
}

void sim_refuse(int host, bool refuses) { refuses_connections[host & 0xFF] = refuses; }

int sim_take_connection(int *host) {
    if (connecting_count == 0) return -1;
    int first = connecting[0].end;
    *host = connecting[0].host;
    connecting_count--;
    memmove(connecting, connecting + 1, (size_t)connecting_count * sizeof *connecting);
    return first;
}

int sim_arrive(void) {
    if (listener < 0 || arriving_count == queue_maximum) return -1;
    int accepted = make_socket();
    if (accepted < 0) return -1;
    sockets[accepted].is_taken = true;
    arriving[arriving_count++] = accepted;
    char byte = 1;
    raw(SYS_write, sockets[listener].peer, (long)&byte, 1, 0, 0, 0);
    return sockets[accepted].peer;
}

bool sim_was_reset(int descriptor) { return was_reset[descriptor]; }

void sim_reset(int descriptor) {
    if (owners[descriptor]) sockets[owners[descriptor]].is_reset = true;
    sim_close(descriptor);
}

long sim_read(int descriptor, void *buffer, size_t count) {
    long result = raw(SYS_recvfrom, descriptor, (long)buffer, (long)count, MSG_DONTWAIT, 0, 0);
    // A peer that has closed its socket with unread bytes counts as one that has ended.
    return result < 0 && errno != EAGAIN ? 0 : result;
}

long sim_write(int descriptor, const void *buffer, size_t count) {
    return raw(SYS_sendto, descriptor, (long)buffer, (long)count, MSG_DONTWAIT | MSG_NOSIGNAL, 0, 0);
}

void sim_finish(int descriptor) { shutdown(descriptor, SHUT_WR); }

void sim_close(int descriptor) {
    owners[descriptor] = 0;
    raw(SYS_close, descriptor, 0, 0, 0, 0, 0);
}

// MARK: Processes

int sim_fork(void) {
    fflush(NULL);
    int process = fork();
    // The copy gets a listener of its own, because a socket pair would be shared.
    int ends[2];
    if (process == 0 && listener >= 0 && socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends) == 0) {
        dup3(ends[0], listener, O_CLOEXEC);
        dup3(ends[1], sockets[listener].peer, O_CLOEXEC);
        raw(SYS_close, ends[0], 0, 0, 0, 0, 0);
        raw(SYS_close, ends[1], 0, 0, 0, 0, 0);
    }
    return process;
}

int sim_wait(int process) {
    int status = 0;
    while (waitpid(process, &status, 0) < 0)
        if (errno != EINTR) return 255;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void sim_exit(int status) {
    fflush(NULL);
    _exit(status);
}
