/* SPDX-License-Identifier: MIT
 *
 * Our libnvidia-ml.so.1 as its clients meet it: opened with dlopen, functions by name.
 *
 *     void *library = nvml_library_open("lib");
 *     NVML_FUNCTION(library, nvmlDeviceGetCount_v2, unsigned *);
 *     assert_int_equal(nvmlDeviceGetCount_v2(&count), NVML_OK);
 *
 * Owns: nothing; the caller closes the library.    Threads: any thread.
 */
#ifndef WG_TESTS_SUPPORT_NVML_LIBRARY_H
#define WG_TESTS_SUPPORT_NVML_LIBRARY_H

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "device/nvml_abi.h"
#include "support/check.h"

static inline void *nvml_library_open(const char *folder)
{
    const char *root = getenv("WATTGOV_BUILD_ROOT");
    char path[1024];
    (void)snprintf(path, sizeof path, "%s/vgpu/%s/libnvidia-ml.so.1", root != NULL ? root : ".",
                   folder);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL)
        fail_msg("%s", dlerror());
    return library;
}

typedef void (*nvml_any_function)(void); /* to be cast to what it is */

static inline nvml_any_function nvml_symbol(void *library, const char *name)
{
    void *symbol = dlsym(library, name);
    if (symbol == NULL)
        fail_msg("the library has no %s", name);
    nvml_any_function function =
        NULL; /* C has no cast from data to code; POSIX has the same bits */
    memcpy(&function, &symbol, sizeof function);
    return function;
}

/* Declares a pointer of the function's name. */
#define NVML_FUNCTION(library, name, ...)                                                          \
    int (*name)(__VA_ARGS__) = (int (*)(__VA_ARGS__))nvml_symbol(library, #name)

#endif
