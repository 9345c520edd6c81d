/* SPDX-License-Identifier: MIT
 *
 * The one door to the heap.
 *
 * Everything that wattgov allocates goes through here, so that tests can make the Nth allocation
 * fail and walk every out-of-memory path. Sizes are checked for overflow.
 *
 * Threads: any thread; the fault counter is atomic.
 */
#ifndef WG_BASE_ALLOC_H
#define WG_BASE_ALLOC_H

#include <stddef.h>

/* Like malloc, calloc, realloc and free, but `wg__alloc(0)` returns a valid pointer or NULL only
 * when memory has run out. `wg__realloc_array` leaves `ptr` valid when it fails. */
void *wg__alloc(size_t size) __attribute__((malloc));
void *wg__alloc_zeroed(size_t count, size_t size) __attribute__((malloc));
void *wg__realloc_array(void *ptr, size_t count, size_t size);
char *wg__strdup(const char *text) __attribute__((malloc));
void wg__free(void *ptr);

/* Tests only: the `nth` allocation from now on (1 is the next) and all later ones fail; 0 turns
 * faults off. `wg__alloc_count` counts the allocations since the last call of this. */
void wg__alloc_fail_from(size_t nth);
size_t wg__alloc_count(void);

#endif
