// Sets the hooks of the concurrency runtime before `main`.
#define _GNU_SOURCE
#include "OrderedJobs.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SWIFTCALL __attribute__((swiftcall))

extern void *swift_task_enqueueGlobal_hook;
extern void *swift_task_enqueueGlobalWithDelay_hook;
extern void *swift_task_enqueueGlobalWithDeadline_hook;
// In TestSupport: tells the product's modules about the order.
extern void larder_order_begins(void);
SWIFTCALL extern void swift_job_run(void *job, void *identity, uintptr_t implementation);

// A job of the runtime if `call` is NULL.
typedef struct {
    void (*call)(void *);
    void *context;
} work;

typedef struct {
    work *items;
    int count, capacity;
} work_list;

typedef struct {
    int64_t due;
    uint64_t number;
    work item;
} delayed_work;

typedef struct {
    bool (*step)(void *);
    void *context;
} source;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static bool is_on;
static uint64_t seed, random_state;
static work_list ready, at_rest;
static delayed_work *delayed;
static int delayed_count, delayed_capacity;
static uint64_t delayed_number;
static int64_t delayed_next = INT64_MAX;
static source *sources;
static int source_count, source_capacity;
static pthread_t thread;

// MARK: Lists

static void *grown(void *items, int count, int *capacity, size_t size) {
    if (count < *capacity) return items;
    *capacity = *capacity ? *capacity * 2 : 64;
    void *larger = realloc(items, (size_t)*capacity * size);
    if (!larger) abort();
    return larger;
}

static void append(work_list *list, work item) {
    list->items = grown(list->items, list->count, &list->capacity, sizeof *list->items);
    list->items[list->count++] = item;
}

static work removed(work_list *list, int index) {
    work item = list->items[index];
    list->count--;
    memmove(list->items + index, list->items + index + 1, (size_t)(list->count - index) * sizeof item);
    return item;
}

static void add(work_list *list, work item) {
    pthread_mutex_lock(&lock);
    append(list, item);
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

// MARK: The order

static uint64_t next_random(void) {
    // SplitMix64 (Steele, Lea and Flood, 2014).
    uint64_t z = (random_state += 0x9E3779B97F4A7C15u);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

bool order_is_on(void) { return is_on; }

uint64_t order_seed(void) { return seed; }

void order_begin(uint64_t number) {
    pthread_mutex_lock(&lock);
    random_state = seed ^ number * 0xD1342543DE82EF95u;
    pthread_mutex_unlock(&lock);
}

// MARK: Hooks

SWIFTCALL static void enqueue(void *job, void *original) {
    (void)original;
    add(&ready, (work){NULL, job});
}

static int64_t nanoseconds(clockid_t clock) {
    struct timespec now;
    clock_gettime(clock, &now);
    return now.tv_sec * 1000000000LL + now.tv_nsec;
}

static void delay(int64_t duration, work item) {
    int64_t now = nanoseconds(CLOCK_MONOTONIC);
    if (duration < 0) duration = 0;
    int64_t due = duration > INT64_MAX - now ? INT64_MAX : now + duration;
    pthread_mutex_lock(&lock);
    delayed = grown(delayed, delayed_count, &delayed_capacity, sizeof *delayed);
    delayed[delayed_count++] = (delayed_work){due, delayed_number++, item};
    if (due < delayed_next) delayed_next = due;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
}

SWIFTCALL static void enqueue_delayed(unsigned long long duration, void *job, void *original) {
    (void)original;
    delay(duration > INT64_MAX ? INT64_MAX : (int64_t)duration, (work){NULL, job});
}

SWIFTCALL static void
enqueue_deadline(long long sec, long long nsec, long long tsec, long long tnsec, int clock, void *job, void *original) {
    (void)tsec, (void)tnsec, (void)original;
    // Clock 1 is the continuous, 2 the suspending one, 3 the wall clock.
    int64_t now = nanoseconds(clock == 1 ? CLOCK_BOOTTIME : clock == 3 ? CLOCK_REALTIME : CLOCK_MONOTONIC);
    int64_t due = sec >= INT64_MAX / 1000000000LL ? INT64_MAX : sec * 1000000000LL + nsec;
    delay(due - now, (work){NULL, job});
}

// MARK: Running

// Makes the delayed jobs ready whose time has come, with the lock.
static void wake_delayed(void) {
    if (delayed_count == 0) return;
    int64_t now = nanoseconds(CLOCK_MONOTONIC);
    while (delayed_next <= now) {
        int first = 0;
        delayed_next = INT64_MAX;
        for (int i = 1; i < delayed_count; i++)
            if (delayed[i].due < delayed[first].due
                || (delayed[i].due == delayed[first].due && delayed[i].number < delayed[first].number))
                first = i;
        append(&ready, delayed[first].item);
        delayed[first] = delayed[--delayed_count];
        for (int i = 0; i < delayed_count; i++)
            if (delayed[i].due < delayed_next) delayed_next = delayed[i].due;
    }
}

// Runs a ready job; false if there is none.
static bool run_next(void) {
    pthread_mutex_lock(&lock);
    wake_delayed();
    if (ready.count == 0) {
        pthread_mutex_unlock(&lock);
        return false;
    }
    int index = seed == 0 || ready.count == 1 ? 0 : (int)(next_random() % (uint64_t)ready.count);
    work item = removed(&ready, index);
    pthread_mutex_unlock(&lock);
    if (item.call) item.call(item.context); else swift_job_run(item.context, NULL, 0);
    return true;
}

static bool step_sources(void) {
    bool is_active = false;
    for (int i = 0; i < source_count; i++)
        if (sources[i].step(sources[i].context)) is_active = true;
    return is_active;
}

// Waits for a job, or for the time of a delayed one. With the lock, and no job ready.
static void wait_for_job(void) {
    int64_t due = delayed_next;
    // Nothing tells when a source has work.
    if (source_count > 0) {
        int64_t soon = nanoseconds(CLOCK_MONOTONIC) + 1000000;
        if (soon < due) due = soon;
    }
    if (due == INT64_MAX) {
        pthread_cond_wait(&changed, &lock);
    } else {
        struct timespec until = {due / 1000000000LL, due % 1000000000LL};
        pthread_cond_timedwait(&changed, &lock, &until);
    }
}

bool order_is_here(void) { return is_on && pthread_equal(pthread_self(), thread); }

void order_settle(void) {
    if (!order_is_here()) return;
    // A task that yields until something is true never lets the process come to rest.
    for (long turns = 0;; turns++) {
        if (turns == 20000000) {
            fputs("Jobs are ready without an end: a task yields in a loop, where it must wait for an event.\n", stderr);
            abort();
        }
        if (!run_next() && !step_sources()) return;
    }
}

void order_run_until(bool (*is_over)(void *), void *context) {
    while (!is_over(context)) {
        if (run_next() || step_sources()) continue;
        pthread_mutex_lock(&lock);
        if (ready.count == 0) wait_for_job();
        pthread_mutex_unlock(&lock);
    }
}

static void *run(void *nothing) {
    larder_order_begins();
    for (;;) {
        if (run_next() || step_sources()) continue;
        pthread_mutex_lock(&lock);
        work item = {NULL, NULL};
        if (ready.count == 0) {
            if (at_rest.count > 0) item = removed(&at_rest, 0); else wait_for_job();
        }
        pthread_mutex_unlock(&lock);
        if (item.call) item.call(item.context);
    }
    return nothing;
}

void order_add(void (*call)(void *), void *context) { add(&ready, (work){call, context}); }

void order_add_after(int64_t nanoseconds, void (*call)(void *), void *context) {
    delay(nanoseconds, (work){call, context});
}

void order_at_rest(void (*call)(void *), void *context) { add(&at_rest, (work){call, context}); }

void order_add_source(bool (*step)(void *), void *context) {
    sources = grown(sources, source_count, &source_capacity, sizeof *sources);
    sources[source_count++] = (source){step, context};
}

void order_remove_source(void *context) {
    int left = 0;
    for (int i = 0; i < source_count; i++)
        if (sources[i].context != context) sources[left++] = sources[i];
    source_count = left;
}

__attribute__((constructor)) static void begin(void) {
    const char *text = getenv("LARDER_ORDER_SEED");
    if (text && strcmp(text, "off") == 0) return;
    seed = text && *text ? strtoull(text, NULL, 10) : 1;
    random_state = seed;
    is_on = true;
    pthread_condattr_t clock;
    pthread_condattr_init(&clock);
    pthread_condattr_setclock(&clock, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &clock);
    swift_task_enqueueGlobal_hook = (void *)enqueue;
    swift_task_enqueueGlobalWithDelay_hook = (void *)enqueue_delayed;
    swift_task_enqueueGlobalWithDeadline_hook = (void *)enqueue_deadline;
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    // Jobs may run within jobs.
    pthread_attr_setstacksize(&attributes, 64 << 20);
    if (pthread_create(&thread, &attributes, run, NULL) != 0) abort();
}
