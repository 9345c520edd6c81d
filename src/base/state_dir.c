/* SPDX-License-Identifier: MIT
 *
 * Where wattgov keeps what outlives a process; see state_dir.h.
 */
#include "base/state_dir.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool is_given(const char *text)
{
    return text != NULL && text[0] != '\0';
}

static enum wg_code put(const char *folder, const char *rest, char *out, size_t size,
                        struct wg_error *err)
{
    const size_t first = strlen(folder), second = strlen(rest);
    if (first >= size || second >= size - first)
        return wg__fail(err, WG_EINVAL, "the state directory '%s%s' is too long: at most %zu bytes",
                        folder, rest, size - 1);
    memcpy(out, folder, first);
    memcpy(out + first, rest, second);
    out[first + second] = '\0';
    return WG_OK;
}

enum wg_code wg__state_dir_choose(const struct wg_state_places *places, char *out, size_t size,
                                  struct wg_error *err)
{
    if (is_given(places->own)) {
        if (places->own[0] != '/')
            return wg__fail(err, WG_EINVAL, "WATTGOV_STATE_DIR '%s' is not an absolute path",
                            places->own);
        return put(places->own, "", out, size, err);
    }
    if (places->is_root)
        return put("/var/lib/wattgov", "", out, size, err);
    if (is_given(places->xdg) && places->xdg[0] == '/')
        return put(places->xdg, "/wattgov", out, size, err);
    if (is_given(places->home) && places->home[0] == '/')
        return put(places->home, "/.local/state/wattgov", out, size, err);
    return wg__fail(err, WG_ENOENT,
                    "no state directory: neither WATTGOV_STATE_DIR, XDG_STATE_HOME nor HOME is "
                    "set to an absolute path");
}

enum wg_code wg__state_dir(char *out, size_t size, struct wg_error *err)
{
    const struct wg_state_places places = {.own = getenv("WATTGOV_STATE_DIR"),
                                           .is_root = geteuid() == 0,
                                           .xdg = getenv("XDG_STATE_HOME"),
                                           .home = getenv("HOME")};
    return wg__state_dir_choose(&places, out, size, err);
}

/* Another process may make it at the same moment: that it exists now is what counts. */
static enum wg_code make_one(const char *path, struct wg_error *err)
{
    if (mkdir(path, 0700) == 0)
        return WG_OK;
    const int cause = errno;
    struct stat status;
    if (stat(path, &status) == 0) {
        if (S_ISDIR(status.st_mode))
            return WG_OK;
        return wg__fail(err, WG_EIO, "cannot make the folder '%s': a file of this name exists",
                        path);
    }
    return wg__fail_errno(err, cause, "cannot make the folder '%s'", path);
}

enum wg_code wg__state_dir_make(const char *path, struct wg_error *err)
{
    char part[WG_STATE_DIR_MAX] = "";
    const enum wg_code fits = put(path, "", part, sizeof part, err);
    if (fits != WG_OK)
        return fits;
    for (char *slash = strchr(part + (part[0] != '\0'), '/'); slash != NULL;
         slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        const enum wg_code code = make_one(part, err);
        if (code != WG_OK)
            return code;
        *slash = '/';
    }
    const size_t length = strlen(part);
    return length > 0 && part[length - 1] == '/' ? WG_OK : make_one(part, err);
}
