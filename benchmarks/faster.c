// Lets time pass faster for the programs that preload it: clocks run ahead by a factor, and waits are as much shorter.
//
// For agent_footprint.py: an hour's worth of ticks of unchanged programs in minutes. FASTER holds the factor and, in nanoseconds, the
// monotonic and the wall clock at which it began, so that all programs of one run agree on the time. Processor time is left alone.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>

typedef long long ns;
#define SECOND 1000000000LL

static ns factor = 1, began_mono, began_wall;
static int (*real_gettime)(clockid_t, struct timespec *);

__attribute__((constructor)) static void begin(void) {
    const char *said = getenv("FASTER");
    real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    if (said && sscanf(said, "%lld %lld %lld", &factor, &began_mono, &began_wall) != 3) abort();
}

static ns of(const struct timespec *at) { return at->tv_sec * SECOND + at->tv_nsec; }
static struct timespec spec(ns at) { return (struct timespec){at / SECOND, at % SECOND}; }

static ns *began(clockid_t clock) {
    switch (clock) {
        case CLOCK_MONOTONIC: case CLOCK_MONOTONIC_RAW: case CLOCK_MONOTONIC_COARSE: case CLOCK_BOOTTIME: return &began_mono;
        case CLOCK_REALTIME: case CLOCK_REALTIME_COARSE: return &began_wall;
        default: return NULL;
    }
}

// A moment of the fast clock, on the real one. Moments before the beginning are past on both.
static struct timespec slow(clockid_t clock, const struct timespec *at) {
    const ns *from = began(clock);
    return from && of(at) > *from ? spec(*from + (of(at) - *from) / factor) : *at;
}

// Which clock a moment belongs to where the caller does not say: the two are decades apart.
static clockid_t clock_of(const struct timespec *at) { return of(at) > began_wall / 2 ? CLOCK_REALTIME : CLOCK_MONOTONIC; }

static int shorter_ms(int ms) { return ms <= 0 ? ms : (int)((ms + factor - 1) / factor); }

#define REAL(name) static __typeof__(&name) real; if (!real) real = (__typeof__(&name))dlsym(RTLD_NEXT, #name)

int clock_gettime(clockid_t clock, struct timespec *at) {
    if (!real_gettime) real_gettime = dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real_gettime(clock, at);
    const ns *from = began(clock);
    if (!failed && from && factor > 1 && of(at) > *from) *at = spec(*from + (of(at) - *from) * factor);
    return failed;
}

int nanosleep(const struct timespec *wait, struct timespec *left) {
    REAL(nanosleep);
    struct timespec shorter = spec(of(wait) / factor);
    return real(&shorter, left);
}

int clock_nanosleep(clockid_t clock, int flags, const struct timespec *wait, struct timespec *left) {
    REAL(clock_nanosleep);
    struct timespec shorter = flags & TIMER_ABSTIME ? slow(clock, wait) : spec(of(wait) / factor);
    return real(clock, flags, &shorter, left);
}

int sem_timedwait(sem_t *sem, const struct timespec *until) {
    REAL(sem_timedwait);
    struct timespec sooner = slow(CLOCK_REALTIME, until);
    return real(sem, &sooner);
}

int sem_clockwait(sem_t *sem, clockid_t clock, const struct timespec *until) {
    REAL(sem_clockwait);
    struct timespec sooner = slow(clock, until);
    return real(sem, clock, &sooner);
}

int pthread_cond_timedwait(pthread_cond_t *condition, pthread_mutex_t *mutex, const struct timespec *until) {
    REAL(pthread_cond_timedwait);
    struct timespec sooner = slow(clock_of(until), until);
    return real(condition, mutex, &sooner);
}

int pthread_cond_clockwait(pthread_cond_t *condition, pthread_mutex_t *mutex, clockid_t clock, const struct timespec *until) {
    REAL(pthread_cond_clockwait);
    struct timespec sooner = slow(clock, until);
    return real(condition, mutex, clock, &sooner);
}

int poll(struct pollfd *files, nfds_t count, int ms) {
    REAL(poll);
    return real(files, count, shorter_ms(ms));
}

int epoll_wait(int set, struct epoll_event *events, int most, int ms) {
    REAL(epoll_wait);
    return real(set, events, most, shorter_ms(ms));
}

int select(int most, fd_set *reading, fd_set *writing, fd_set *failing, struct timeval *wait) {
    REAL(select);
    if (!wait) return real(most, reading, writing, failing, wait);
    ns shorter = (wait->tv_sec * SECOND + wait->tv_usec * 1000LL) / factor;
    struct timeval sooner = {shorter / SECOND, shorter % SECOND / 1000};
    return real(most, reading, writing, failing, &sooner);
}
