#include "evidence.h"

#include <string.h>

/* Minimum number of accesses for a verdict, unless two of them return. */
#define LEAST_ACCESSES 4
#define LEAST_RETURNS 2
/* Counts are halved above this, so that changes in the program's behaviour have an effect. */
#define MOST_ACCESSES 4096

static hsize_t length(const chunk_box *box, int rank) {
    hsize_t chunks = 1;
    for (int at = 0; at < rank; at++) {
        hsize_t span = box->high[at] - box->low[at] + 1;
        if (span > (hsize_t)1 << 40 || chunks > ((hsize_t)1 << 40) / span) return (hsize_t)1 << 40;
        chunks *= span;
    }
    return chunks;
}

static bool meet(const chunk_box *left, const chunk_box *right, int rank) {
    for (int at = 0; at < rank; at++)
        if (left->low[at] > right->high[at] || right->low[at] > left->high[at]) return false;
    return true;
}

static void unite(chunk_box *into, const chunk_box *other, int rank) {
    for (int at = 0; at < rank; at++) {
        if (into->low[at] > other->low[at]) into->low[at] = other->low[at];
        if (into->high[at] < other->high[at]) into->high[at] = other->high[at];
    }
}

/* Returns the dimension along which `next` continues `last`, if they are equal otherwise; -1 if there is none. A row
 * written in a thousand pieces thus becomes one box. */
static int continues(const chunk_box *last, const chunk_box *next, int rank) {
    int along = -1;
    for (int at = 0; at < rank; at++) {
        if (last->low[at] == next->low[at] && last->high[at] == next->high[at]) continue;
        bool follows = next->low[at] >= last->low[at] && next->low[at] <= last->high[at] + 1 && next->high[at] > last->high[at];
        if (along >= 0 || !follows) return -1;
        along = at;
    }
    return last->along < 0 || last->along == along ? along : -1;
}

static bool equal(const chunk_box *left, const chunk_box *right, int rank) {
    size_t bytes = (size_t)rank * sizeof *left->low;
    return !memcmp(left->low, right->low, bytes) && !memcmp(left->high, right->high, bytes);
}

static void remember(access_trail *trail, const chunk_box *box) {
    chunk_box *last = trail->count ? &trail->boxes[trail->count - 1] : NULL;
    if (last && equal(last, box, trail->rank)) return;
    int along = last ? continues(last, box, trail->rank) : -1;
    if (along >= 0) {
        last->high[along] = box->high[along];
        last->along = along;
        return;
    }
    if (trail->count == TRAIL_BOXES) {
        trail->count /= 2;
        memmove(trail->boxes, trail->boxes + TRAIL_BOXES - trail->count, (size_t)trail->count * sizeof *trail->boxes);
    }
    trail->boxes[trail->count] = *box;
    trail->boxes[trail->count++].along = -1;
}

evidence trail_add(access_trail *trail, const chunk_access *access, hsize_t usual_chunks, hsize_t most_chunks) {
    evidence found = {.accesses = 1, .whole = access->is_whole, .largest = length(&access->box, trail->rank)};
    int rank = trail->rank, from = trail->count - 1;
    while (from >= 0 && !meet(&trail->boxes[from], &access->box, rank)) from--;
    if (from >= 0 && !access->is_whole) {
        /* All chunks touched since then; of a box joined from ordered accesses, the part that came later. */
        chunk_box all = access->box;
        hsize_t sum = length(&access->box, rank);
        for (int at = trail->count - 1; at >= from; at--) {
            chunk_box later = trail->boxes[at];
            if (at == from && later.along >= 0 && later.low[later.along] < access->box.low[later.along])
                later.low[later.along] = access->box.low[later.along];
            unite(&all, &later, rank);
            sum += length(&later, rank);
        }
        hsize_t box = length(&all, rank), chunks = box < sum ? box : sum;
        if (chunks <= usual_chunks) {
            found.near = 1;
        } else if (chunks > most_chunks || box > sum) {
            /* The span of scattered accesses does not apply to other datasets. */
            found.far = 1;
        } else {
            found.returns = 1;
            found.run_bytes = access->run_bytes;
            for (int at = 0; at < rank; at++) {
                found.span[at] = all.high[at] - all.low[at] + 1;
                found.full[at] = found.span[at] >= access->grid[at];
            }
        }
        found.chunks = chunks;
    }
    remember(trail, &access->box);
    return found;
}

void evidence_add(evidence *sum, const evidence *more) {
    if (sum->accesses > MOST_ACCESSES) {
        sum->accesses /= 2, sum->whole /= 2;
        sum->near /= 2, sum->returns /= 2, sum->far /= 2;
    }
    sum->accesses += more->accesses, sum->whole += more->whole;
    sum->near += more->near, sum->returns += more->returns, sum->far += more->far;
    if (sum->chunks < more->chunks) sum->chunks = more->chunks;
    if (sum->largest < more->largest) sum->largest = more->largest;
    if (!more->returns) return;
    if (sum->run_bytes < more->run_bytes) sum->run_bytes = more->run_bytes;
    for (int at = 0; at < OBSERVED_DIMENSIONS; at++) {
        if (sum->span[at] < more->span[at]) sum->span[at] = more->span[at];
        sum->full[at] |= more->full[at];
    }
}

verdict evidence_verdict(const evidence *of) {
    /* Near accesses are cheap: a chunk may be filled in many pieces before the next sweep returns to it. */
    if (of->returns >= LEAST_RETURNS && of->returns >= (of->accesses - of->near) / 4) return IS_RETURNING;
    if (of->accesses < LEAST_ACCESSES) return IS_UNKNOWN;
    if (of->whole >= of->accesses - of->accesses / 4) return IS_WHOLE;
    if (of->far >= LEAST_RETURNS && of->far >= (of->accesses - of->near) / 4) return IS_FAR;
    return of->near >= of->accesses / 4 ? IS_NEAR : IS_ONCE;
}

hsize_t evidence_chunks(const evidence *of, const hsize_t *grid, int rank) {
    hsize_t chunks = 1;
    for (int at = 0; at < rank; at++) {
        hsize_t span = of->full[at] && grid[at] > 0 ? grid[at] : of->span[at];
        if (!span || chunks > ((hsize_t)1 << 40) / span) return (hsize_t)1 << 40;
        chunks *= span;
    }
    return chunks;
}
