/* SPDX-License-Identifier: MIT
 *
 * What the commands on devices share; see device_args.h.
 */
#include "cli/device_args.h"

#include <errno.h>
#include <math.h>
#include <sys/stat.h>

#include "base/alloc.h"

enum wg_code wg__device_args_open(const struct wg_device_args *args, struct wg_machine **out,
                                  struct wg_error *err)
{
    struct stat status;
    if (args->root != NULL && stat(args->root, &status) != 0)
        return wg__fail_errno(err, errno, "--root: '%s'", args->root);
    if (args->root != NULL && !S_ISDIR(status.st_mode))
        return wg__option_reject(err, "root", args->root, "a folder that holds sys and proc");
    const struct wg_machine_opts opts =
        WG_MACHINE_OPTS(.root = args->root, .device = args->device, .gpus = args->gpus.items,
                        .gpu_count = args->gpus.count,
                        .call_timeout_ms = (unsigned)lround(args->timeout_s * 1000));
    return wg_machine_open(out, &opts, err);
}

enum wg_code wg__machine_infos(const struct wg_machine *machine,
                               const struct wg_device_info *const **out, struct wg_error *err)
{
    const size_t count = wg_machine_device_count(machine);
    const struct wg_device_info **infos = wg__alloc_zeroed(count + 1, sizeof *infos);
    if (infos == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    for (size_t i = 0; i < count; i++)
        infos[i] = wg_device_get_info(wg_machine_device(machine, i));
    *out = infos;
    return WG_OK;
}

enum wg_code wg__machine_backends(const struct wg_machine *machine,
                                  const struct wg_backend_info *const **out, struct wg_error *err)
{
    const size_t count = wg_machine_backend_count(machine);
    const struct wg_backend_info **backends = wg__alloc_zeroed(count + 1, sizeof *backends);
    if (backends == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    for (size_t i = 0; i < count; i++)
        backends[i] = wg_machine_backend(machine, i);
    *out = backends;
    return WG_OK;
}
