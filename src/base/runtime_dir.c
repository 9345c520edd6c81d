/* SPDX-License-Identifier: MIT
 *
 * Where things lie that live no longer than their program.
 *
 * Owns: nothing.    Threads: any, while nobody changes the environment.
 */
#include "base/runtime_dir.h"

#include <stdlib.h>
#include <unistd.h>

const char *wg__runtime_dir(void)
{
    static const char *const names[] = {"XDG_RUNTIME_DIR", "TMPDIR"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *folder = getenv(names[i]);
        if (folder != NULL && *folder == '/' && access(folder, W_OK | X_OK) == 0)
            return folder;
    }
    return "/tmp";
}
