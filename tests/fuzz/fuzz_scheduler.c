/* SPDX-License-Identifier: MIT
 *
 * libFuzzer entry of the scheduler: bytes are the chance of a random world, its setup first and
 * then its events; whatever they are, every action is what the headers promise.
 *
 * support/scheduler_books.h has the checks, tests/unit/test_scheduler_properties.c the same worlds
 * from a seed. Behind the bytes' end a fixed seed goes on.
 *
 *     CC=clang-19 meson setup build/fuzz -Dfuzz=true && ninja -C build/fuzz
 * tests/fuzz/fuzz_scheduler build/fuzz/tests/fuzz/fuzz_scheduler -max_total_time=60 NEW_FOLDER
 * tests/fuzz/corpus/scheduler
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/scheduler_world.h"

/* libFuzzer prescribes the name. NOLINTNEXTLINE(readability-identifier-naming) */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* About as many bytes as an event takes. */
enum { EVENT_BYTES = 12, EVENTS_MAX = 400 };

__attribute__((noreturn)) static void break_off(const char *what, int line)
{
    (void)fprintf(stderr, "not so: %s (line %d of scheduler_books.h or _world.h)\n", what, line);
    abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct world world;
    memset(&world, 0, sizeof world);
    world.chance = (struct chance){.bytes = data, .left = size};
    wg__rng_init(&world.chance.rng, 1);
    wg__rng_init(&world.wrong.rng, 2);
    world.has_wrong_events = true;
    world.broken = break_off;
    const size_t events = size / EVENT_BYTES;
    world_play(&world, events < EVENTS_MAX ? events : EVENTS_MAX);
    return 0;
}
