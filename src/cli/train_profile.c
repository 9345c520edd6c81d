/* SPDX-License-Identifier: MIT
 *
 * The value of --profile; see train_profile.h.
 *
 * Threads: pure, any thread.
 */
#include "cli/train_profile.h"

#include <stdbool.h>
#include <string.h>

#include "cli/duration.h"
#include "cli/options.h"

/* "warmup=5s,measure=10s", in any order, each once at most. */
enum wg_code wg__train_profile_parse(const char *text, double *warmup_s, double *measure_s,
                                     struct wg_error *err)
{
    const char *const keys[] = {"warmup=", "measure="};
    double *const values[] = {warmup_s, measure_s};
    const char *at = text;
    while (at != NULL && *at != '\0') {
        char part[48];
        const size_t length = strcspn(at, ",");
        bool is_known = false;
        if (length >= sizeof part)
            break;
        memcpy(part, at, length);
        part[length] = '\0';
        for (size_t i = 0; i < 2; i++) {
            const size_t skip = strlen(keys[i]);
            if (strncmp(part, keys[i], skip) != 0)
                continue;
            is_known =
                wg__parse_duration(part + skip, values[i]) && *values[i] > 0 && *values[i] <= 86400;
        }
        if (!is_known)
            break;
        at = at[length] == ',' ? at + length + 1 : NULL;
    }
    if (at != NULL)
        return wg__option_reject(err, "profile", text, "of the form warmup=5s,measure=10s");
    return WG_OK;
}
