/* SPDX-License-Identifier: MIT
 *
 * The one door to the heap, with a fault counter for the tests.
 *
 * Every call of the three allocating functions takes one ticket. When faults are on, tickets from
 * `fail_from` upwards get NULL: "all later ones too", because code that retries after a failure
 * must not be rescued by chance. The two counters are the only mutable state below main; they are
 * atomic, so tests may run threads, and relaxed, because nothing is ordered by them.
 *
 * Owns: the counters.    Threads: any thread.
 */
#include "base/alloc.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

static atomic_size_t tickets;   /* allocations since the last wg__alloc_fail_from */
static atomic_size_t fail_from; /* the first ticket that fails; 0: none */

static bool ticket_fails(void)
{
    const size_t ticket = atomic_fetch_add_explicit(&tickets, 1, memory_order_relaxed) + 1;
    const size_t limit = atomic_load_explicit(&fail_from, memory_order_relaxed);
    return limit != 0 && ticket >= limit;
}

static bool product_overflows(size_t count, size_t size)
{
    return size != 0 && count > SIZE_MAX / size;
}

/* Zero bytes become one, because malloc(0) may return NULL, which would read as a failure. */
void *wg__alloc(size_t size)
{
    if (ticket_fails())
        return NULL;
    return malloc(size != 0 ? size : 1);
}

void *wg__alloc_zeroed(size_t count, size_t size)
{
    if (ticket_fails())
        return NULL;
    if (product_overflows(count,
                          size)) /* calloc checks too, but sanitizers end the program there */
        return NULL;
    if (count == 0 || size == 0)
        return calloc(1, 1);
    return calloc(count, size);
}

void *wg__realloc_array(void *ptr, size_t count, size_t size)
{
    if (ticket_fails())
        return NULL;
    if (product_overflows(count, size))
        return NULL;
    const size_t bytes = count * size;
    return realloc(ptr, bytes != 0 ? bytes : 1);
}

char *wg__strdup(const char *text)
{
    const size_t size = strlen(text) + 1;
    char *copy = wg__alloc(size);
    if (copy != NULL)
        memcpy(copy, text, size);
    return copy;
}

void wg__free(void *ptr)
{
    free(ptr);
}

void wg__alloc_fail_from(size_t nth)
{
    atomic_store_explicit(&tickets, 0, memory_order_relaxed);
    atomic_store_explicit(&fail_from, nth, memory_order_relaxed);
}

size_t wg__alloc_count(void)
{
    return atomic_load_explicit(&tickets, memory_order_relaxed);
}
