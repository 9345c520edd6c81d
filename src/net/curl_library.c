/* SPDX-License-Identifier: MIT
 *
 * Loading libcurl: one loop over the table of its calls.
 *
 * The handle is closed at once, for the library is told to stay: those that it brings along do not
 * survive being unloaded (handlers that run at exit, threads' keys).
 *
 * Threads: any.
 */
#include "net/curl_library.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

static const struct {
    const char *name;
    size_t offset; /* in struct wg_curl */
} calls[] = {
#define X(name) {"curl_" #name, offsetof(struct wg_curl, name)},
    WG_CURL_CALLS(X)
#undef X
};

enum wg_code wg__curl_load(struct wg_curl *out, const char *library, struct wg_error *err)
{
    struct wg_curl found;
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (handle == NULL) {
        const char *cause = dlerror();
        return wg__fail(err, WG_EUNSUPPORTED,
                        "requests need libcurl (Debian package libcurl4): %.120s",
                        cause != NULL ? cause : library);
    }
    const char *missing = NULL;
    for (size_t i = 0; i < sizeof calls / sizeof *calls && missing == NULL; i++) {
        void *call = dlsym(handle, calls[i].name);
        if (call == NULL)
            missing = calls[i].name;
        memcpy((char *)&found + calls[i].offset, &call, sizeof call);
    }
    (void)dlclose(handle);
    if (missing != NULL)
        return wg__fail(err, WG_EUNSUPPORTED, "%s has no %s: expected libcurl 7.85 or later",
                        library, missing);
    *out = found;
    return WG_OK;
}
