/* SPDX-License-Identifier: MIT
 *
 * The names of energy sources and window flags, from the tables of include/wattgov/window.h.
 *
 * Threads: pure, any thread.
 */
#include <stddef.h>

#include "wattgov/window.h"

static const char *const source_keys[] = {
#define X(name, key) key,
    WG_ENERGY_SOURCES(X)
#undef X
};

const char *wg_energy_source_key(enum wg_energy_source source)
{
    return (size_t)source < WG_ENERGY_SOURCE_COUNT ? source_keys[source] : NULL;
}

const char *wg_window_flag_key(enum wg_window_flag bit)
{
    switch (bit) {
#define X(name, number, key, help)                                                                 \
    case WG_WINDOW_##name:                                                                         \
        return key;
        WG_WINDOW_FLAGS(X)
#undef X
    }
    return NULL;
}

const char *wg_window_flag_help(enum wg_window_flag bit)
{
    switch (bit) {
#define X(name, number, key, help)                                                                 \
    case WG_WINDOW_##name:                                                                         \
        return help;
        WG_WINDOW_FLAGS(X)
#undef X
    }
    return NULL;
}
