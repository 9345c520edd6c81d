/* SPDX-License-Identifier: MIT
 *
 * The inner side of struct wg_machine: what measure/ and live/ need beyond
 * include/wattgov/device.h.
 */
#ifndef WG_DEVICE_MACHINE_H
#define WG_DEVICE_MACHINE_H

#include "device/backend.h"

/* wg_machine_open over another table of backends (ended by NULL): for tests. */
enum wg_code wg__machine_open_with(struct wg_machine **out,
                                   const struct wg_backend *const *backends,
                                   const struct wg_machine_opts *opts, struct wg_error *err);

/* The same with more of the inside replaced; what is zero stays as it is. */
struct wg_machine_setup {
    const struct wg_backend *const *backends;
    const char *nvml_library; /* must outlive the machine, as the next */
    const char *rocm_smi_library;
    uint64_t (*replay_now_ns)(void *context);
    void *replay_context;
};
enum wg_code wg__machine_open_setup(struct wg_machine **out, const struct wg_machine_setup *setup,
                                    const struct wg_machine_opts *opts, struct wg_error *err);

/* Reads in the caller's own thread and waits for as long as it takes: for a thread that belongs to
 * this device alone and is watched by another (measure/sampler.c). Refused with WG_ESTATE while the
 * machine is quiescent, or while an abandoned call hangs. Sets `call` names for the watchdog. When
 * the read was abandoned meanwhile and the machine is closed, the device is gone on return. */
enum wg_code wg__device_read_blocking(struct wg_device *device, uint32_t wanted,
                                      struct wg_sample *out, struct wg_error *err);

/* Sets a knob, in SI units, within the machine's call timeout; NAN: what the driver chooses by
 * itself. The value is the caller's care: it is not compared with the knob's range.
 * WG_EUNSUPPORTED: no such knob, or nothing can be set here (a recording); WG_EPERM with what to
 * do; WG_ETIMEOUT: it may still be set when the call returns; else as wg_device_read. */
enum wg_code wg__device_set_knob(struct wg_device *device, enum wg_knob knob, double value,
                                 struct wg_error *err);

/* What a knob stands at. NAN with WG_OK: the driver does not tell (NVML's locked clocks). WG_EDATA:
 * no single number. */
enum wg_code wg__device_get_knob(struct wg_device *device, enum wg_knob knob, double *out,
                                 struct wg_error *err);

/* The watchdog's side: marks that a call of `wg__device_read_blocking` was given up. The device and
 * its machine are not freed before it returns; others get WG_ETIMEOUT at once until then. The text
 * names device, call and how long. */
void wg__device_abandon(struct wg_device *device, uint64_t waited_ns, struct wg_error *err);

/* Call timeout of the machine, in nanoseconds. */
uint64_t wg__machine_call_timeout_ns(const struct wg_machine *machine);

bool wg__machine_is_quiescent(const struct wg_machine *machine);

/* A hold on the machine's memory, for a call that may outlive it. The last one frees. */
void wg__machine_ref(struct wg_machine *machine);
void wg__machine_unref(struct wg_machine *machine);

#endif
