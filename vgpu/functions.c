/* SPDX-License-Identifier: MIT
 *
 * How often each function of the library was called: for tests that assert a budget of calls.
 *
 * Owns: nothing.    Threads: any thread; the counters are atomic.
 */
#include <string.h>

#include "vgpu/nvml_functions.h"
#include "vgpu/state.h"

static const char *const names[] = {
#define X(kind, since, name) #name,
    VGPU_NVML_FUNCTIONS(X)
#undef X
};

_Static_assert(sizeof names / sizeof names[0] <= VGPU_FUNCTIONS_MAX,
               "the counters have room for every function");

const char *vgpu_function_name(unsigned function)
{
    return function < VGPU_FN_COUNT ? names[function] : NULL;
}

uint64_t vgpu_calls(const struct vgpu_machine *machine, int gpu, const char *function)
{
    for (unsigned i = 0; i < VGPU_FN_COUNT; i++) {
        if (strcmp(names[i], function) == 0)
            return gpu < 0 ? atomic_load(&machine->calls[i])
                           : atomic_load(&machine->gpus[gpu].calls[i]);
    }
    return 0;
}
