/* Runs a program and measures it: `raddle_measure FILE COMMAND…` writes one JSON object to FILE.
 *
 * It is a separate process, in C, because the system reports the processor time, memory and calls of a child and its
 * descendants only to the process that waits for it, and safe Rust cannot query them. Invariant: the figures cover only
 * the command and its descendants, except for descendants that nobody waited for. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

typedef struct {
    unsigned long long read, write;
    int known;
} calls;

/* Counts the calls of this process and of children that it has waited for. */
static calls count_calls(void) {
    calls found = {0};
    char text[512];
    int file = open("/proc/self/io", O_RDONLY | O_CLOEXEC);
    if (file < 0) return found;
    ssize_t length = read(file, text, sizeof text - 1);
    close(file);
    if (length <= 0) return found;
    text[length] = 0;
    const char *reads = strstr(text, "syscr:"), *writes = strstr(text, "syscw:");
    if (!reads || !writes) return found;
    found.read = strtoull(reads + 6, NULL, 10);
    found.write = strtoull(writes + 6, NULL, 10);
    found.known = 1;
    return found;
}

static double seconds(struct timeval time) { return (double)time.tv_sec + 1e-6 * (double)time.tv_usec; }

int main(int count, char **words) {
    if (count < 3) return 2;
    FILE *out = fopen(words[1], "we");
    if (!out) return 2;
    calls first = count_calls(), before = count_calls();
    struct timespec started, ended;
    struct rusage usage;
    int status = 0;
    pid_t child;
    clock_gettime(CLOCK_MONOTONIC, &started);
    int refused = posix_spawnp(&child, words[2], NULL, NULL, words + 2, environ);
    if (refused) {
        fprintf(out, "{\"refused\": \"%s\"}\n", strerror(refused));
        return fclose(out) ? 2 : 0;
    }
    while (wait4(child, &status, 0, &usage) < 0)
        if (errno != EINTR) return 2;
    clock_gettime(CLOCK_MONOTONIC, &ended);
    calls after = count_calls();
    fprintf(out, "{\"wall_s\": %.9f, \"cpu_s\": %.6f, \"peak_rss_bytes\": %ld",
            (double)(ended.tv_sec - started.tv_sec) + 1e-9 * (double)(ended.tv_nsec - started.tv_nsec),
            seconds(usage.ru_utime) + seconds(usage.ru_stime), usage.ru_maxrss * 1024);
    /* Reading the counters takes a call or two, which the next reading counts. */
    if (first.known && after.known)
        fprintf(out, ", \"calls\": {\"read\": %llu, \"write\": %llu}", after.read - before.read - (before.read - first.read),
                after.write - before.write - (before.write - first.write));
    if (WIFSIGNALED(status)) fprintf(out, ", \"signal\": %d}\n", WTERMSIG(status));
    else fprintf(out, ", \"exit_code\": %d}\n", WEXITSTATUS(status));
    return fclose(out) ? 2 : 0;
}
