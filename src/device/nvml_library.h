/* SPDX-License-Identifier: MIT
 *
 * NVIDIA's management library, loaded at run time.
 *
 * Nothing is linked: the library belongs to the driver of the machine that we happen to run on. One
 * table names each call that wattgov uses, newest spelling first. A call that no spelling has is
 * NULL and answers NVML_E_FUNCTION_NOT_FOUND through NVML_CALL: a capability less, no failure.
 *
 *     new -> acquire (loads, initialises) -> ... -> release (the last one shuts down and unloads)
 *
 * A GPU can be reset only when nobody has NVML open, so it is unloaded with its last user and
 * loaded again for the next. NVML does not survive fork: `check_process` initialises it anew in a
 * child.
 *
 * Owns: itself, by reference count.    Threads: any; NVML itself is safe for threads.
 */
#ifndef WG_DEVICE_NVML_LIBRARY_H
#define WG_DEVICE_NVML_LIBRARY_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "base/error.h"
#include "device/nvml_abi.h"

/*  member, NEEDED or OPTIONAL, arguments, name in messages, spellings from the newest on */
#define WG_NVML_CALLS(X)                                                                           \
    X(init_with_flags, OPTIONAL, (unsigned flags), "nvmlInitWithFlags", "nvmlInitWithFlags", NULL, \
      NULL)                                                                                        \
    X(init, NEEDED, (void), "nvmlInit", "nvmlInit_v2", "nvmlInit", NULL)                           \
    X(shutdown, NEEDED, (void), "nvmlShutdown", "nvmlShutdown", NULL, NULL)                        \
    X(driver_version, OPTIONAL, (char *out, unsigned size), "nvmlSystemGetDriverVersion",          \
      "nvmlSystemGetDriverVersion", NULL, NULL)                                                    \
    X(count, NEEDED, (unsigned *out), "nvmlDeviceGetCount", "nvmlDeviceGetCount_v2",               \
      "nvmlDeviceGetCount", NULL)                                                                  \
    X(by_index, NEEDED, (unsigned index, nvml_device *out), "nvmlDeviceGetHandleByIndex",          \
      "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex", NULL)                         \
    X(by_uuid, OPTIONAL, (const char *uuid, nvml_device *out), "nvmlDeviceGetHandleByUUID",        \
      "nvmlDeviceGetHandleByUUID", NULL, NULL)                                                     \
    X(by_pci, OPTIONAL, (const char *address, nvml_device *out), "nvmlDeviceGetHandleByPciBusId",  \
      "nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByPciBusId", NULL)                   \
    X(name, OPTIONAL, (nvml_device device, char *out, unsigned size), "nvmlDeviceGetName",         \
      "nvmlDeviceGetName", NULL, NULL)                                                             \
    X(uuid, OPTIONAL, (nvml_device device, char *out, unsigned size), "nvmlDeviceGetUUID",         \
      "nvmlDeviceGetUUID", NULL, NULL)                                                             \
    X(pci, OPTIONAL, (nvml_device device, struct nvml_pci_info * out), "nvmlDeviceGetPciInfo",     \
      "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2", "nvmlDeviceGetPciInfo")                \
    X(architecture, OPTIONAL, (nvml_device device, unsigned *out), "nvmlDeviceGetArchitecture",    \
      "nvmlDeviceGetArchitecture", NULL, NULL)                                                     \
    X(compute_capability, OPTIONAL, (nvml_device device, int *major, int *minor),                  \
      "nvmlDeviceGetCudaComputeCapability", "nvmlDeviceGetCudaComputeCapability", NULL, NULL)      \
    X(cores, OPTIONAL, (nvml_device device, unsigned *out), "nvmlDeviceGetNumGpuCores",            \
      "nvmlDeviceGetNumGpuCores", NULL, NULL)                                                      \
    X(persistence, OPTIONAL, (nvml_device device, int *out), "nvmlDeviceGetPersistenceMode",       \
      "nvmlDeviceGetPersistenceMode", NULL, NULL)                                                  \
    X(memory_v2, OPTIONAL, (nvml_device device, struct nvml_memory_v2 * out),                      \
      "nvmlDeviceGetMemoryInfo_v2", "nvmlDeviceGetMemoryInfo_v2", NULL, NULL)                      \
    X(memory, OPTIONAL, (nvml_device device, struct nvml_memory * out), "nvmlDeviceGetMemoryInfo", \
      "nvmlDeviceGetMemoryInfo", NULL, NULL)                                                       \
    X(fields, OPTIONAL, (nvml_device device, int count, struct nvml_field_value *values),          \
      "nvmlDeviceGetFieldValues", "nvmlDeviceGetFieldValues", NULL, NULL)                          \
    X(power_usage, OPTIONAL, (nvml_device device, unsigned *out), "nvmlDeviceGetPowerUsage",       \
      "nvmlDeviceGetPowerUsage", NULL, NULL)                                                       \
    X(energy, OPTIONAL, (nvml_device device, unsigned long long *out),                             \
      "nvmlDeviceGetTotalEnergyConsumption", "nvmlDeviceGetTotalEnergyConsumption", NULL, NULL)    \
    X(limit, OPTIONAL, (nvml_device device, unsigned *out), "nvmlDeviceGetPowerManagementLimit",   \
      "nvmlDeviceGetPowerManagementLimit", NULL, NULL)                                             \
    X(enforced_limit, OPTIONAL, (nvml_device device, unsigned *out),                               \
      "nvmlDeviceGetEnforcedPowerLimit", "nvmlDeviceGetEnforcedPowerLimit", NULL, NULL)            \
    X(default_limit, OPTIONAL, (nvml_device device, unsigned *out),                                \
      "nvmlDeviceGetPowerManagementDefaultLimit", "nvmlDeviceGetPowerManagementDefaultLimit",      \
      NULL, NULL)                                                                                  \
    X(limit_range, OPTIONAL, (nvml_device device, unsigned *min, unsigned *max),                   \
      "nvmlDeviceGetPowerManagementLimitConstraints",                                              \
      "nvmlDeviceGetPowerManagementLimitConstraints", NULL, NULL)                                  \
    X(clock, OPTIONAL, (nvml_device device, int clock, unsigned *out), "nvmlDeviceGetClockInfo",   \
      "nvmlDeviceGetClockInfo", NULL, NULL)                                                        \
    X(max_clock, OPTIONAL, (nvml_device device, int clock, unsigned *out),                         \
      "nvmlDeviceGetMaxClockInfo", "nvmlDeviceGetMaxClockInfo", NULL, NULL)                        \
    X(temperature_v, OPTIONAL, (nvml_device device, struct nvml_temperature * out),                \
      "nvmlDeviceGetTemperatureV", "nvmlDeviceGetTemperatureV", NULL, NULL)                        \
    X(temperature, OPTIONAL, (nvml_device device, int sensor, unsigned *out),                      \
      "nvmlDeviceGetTemperature", "nvmlDeviceGetTemperature", NULL, NULL)                          \
    X(utilization, OPTIONAL, (nvml_device device, struct nvml_utilization * out),                  \
      "nvmlDeviceGetUtilizationRates", "nvmlDeviceGetUtilizationRates", NULL, NULL)                \
    X(reasons, OPTIONAL, (nvml_device device, unsigned long long *out),                            \
      "nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksEventReasons",          \
      "nvmlDeviceGetCurrentClocksThrottleReasons", NULL)                                           \
    X(memory_clocks, OPTIONAL, (nvml_device device, unsigned *count, unsigned *out_mhz),           \
      "nvmlDeviceGetSupportedMemoryClocks", "nvmlDeviceGetSupportedMemoryClocks", NULL, NULL)      \
    X(graphics_clocks, OPTIONAL,                                                                   \
      (nvml_device device, unsigned memory_mhz, unsigned *count, unsigned *out_mhz),               \
      "nvmlDeviceGetSupportedGraphicsClocks", "nvmlDeviceGetSupportedGraphicsClocks", NULL, NULL)  \
    X(set_limit, OPTIONAL, (nvml_device device, unsigned limit_mw),                                \
      "nvmlDeviceSetPowerManagementLimit", "nvmlDeviceSetPowerManagementLimit", NULL, NULL)        \
    X(lock_gpu_clocks, OPTIONAL, (nvml_device device, unsigned min_mhz, unsigned max_mhz),         \
      "nvmlDeviceSetGpuLockedClocks", "nvmlDeviceSetGpuLockedClocks", NULL, NULL)                  \
    X(lock_memory_clocks, OPTIONAL, (nvml_device device, unsigned min_mhz, unsigned max_mhz),      \
      "nvmlDeviceSetMemoryLockedClocks", "nvmlDeviceSetMemoryLockedClocks", NULL, NULL)            \
    X(unlock_gpu_clocks, OPTIONAL, (nvml_device device), "nvmlDeviceResetGpuLockedClocks",         \
      "nvmlDeviceResetGpuLockedClocks", NULL, NULL)                                                \
    X(unlock_memory_clocks, OPTIONAL, (nvml_device device), "nvmlDeviceResetMemoryLockedClocks",   \
      "nvmlDeviceResetMemoryLockedClocks", NULL, NULL)                                             \
    X(mig_mode, OPTIONAL, (nvml_device device, unsigned *current, unsigned *pending),              \
      "nvmlDeviceGetMigMode", "nvmlDeviceGetMigMode", NULL, NULL)                                  \
    X(mig_max, OPTIONAL, (nvml_device device, unsigned *out), "nvmlDeviceGetMaxMigDeviceCount",    \
      "nvmlDeviceGetMaxMigDeviceCount", NULL, NULL)                                                \
    X(mig_device, OPTIONAL, (nvml_device device, unsigned index, nvml_device *out),                \
      "nvmlDeviceGetMigDeviceHandleByIndex", "nvmlDeviceGetMigDeviceHandleByIndex", NULL, NULL)    \
    X(compute_v3, OPTIONAL, (nvml_device device, unsigned *count, void *out),                      \
      "nvmlDeviceGetComputeRunningProcesses_v3", "nvmlDeviceGetComputeRunningProcesses_v3", NULL,  \
      NULL)                                                                                        \
    X(compute_v2, OPTIONAL, (nvml_device device, unsigned *count, void *out),                      \
      "nvmlDeviceGetComputeRunningProcesses_v2", "nvmlDeviceGetComputeRunningProcesses_v2", NULL,  \
      NULL)                                                                                        \
    X(compute_v1, OPTIONAL, (nvml_device device, unsigned *count, void *out),                      \
      "nvmlDeviceGetComputeRunningProcesses", "nvmlDeviceGetComputeRunningProcesses", NULL, NULL)  \
    X(graphics_v3, OPTIONAL, (nvml_device device, unsigned *count, void *out),                     \
      "nvmlDeviceGetGraphicsRunningProcesses_v3", "nvmlDeviceGetGraphicsRunningProcesses_v3",      \
      NULL, NULL)                                                                                  \
    X(graphics_v2, OPTIONAL, (nvml_device device, unsigned *count, void *out),                     \
      "nvmlDeviceGetGraphicsRunningProcesses_v2", "nvmlDeviceGetGraphicsRunningProcesses_v2",      \
      NULL, NULL)                                                                                  \
    X(graphics_v1, OPTIONAL, (nvml_device device, unsigned *count, void *out),                     \
      "nvmlDeviceGetGraphicsRunningProcesses", "nvmlDeviceGetGraphicsRunningProcesses", NULL,      \
      NULL)

struct nvml_calls { /* each returns an enum nvml_return, or a number unknown to us */
#define X(member, need, arguments, name, newest, older, oldest) int(*member) arguments;
    WG_NVML_CALLS(X)
#undef X
};

/* The calls' names for messages. */
struct nvml_names {
#define X(member, need, arguments, name, newest, older, oldest) const char *member;
    WG_NVML_CALLS(X)
#undef X
};
extern const struct nvml_names wg__nvml_names;

/* How the library is found; tests bring one of their own. */
struct nvml_loader {
    /* NULL: failed; `why` then tells the cause. */
    void *(*open)(const char *path, char *why, size_t why_size);
    void *(*symbol)(void *handle, const char *name);
    void (*close)(void *handle);
};

struct nvml_library {
    const struct nvml_loader *loader;
    const char *path;       /* the caller's, must outlive it */
    atomic_uint references; /* who may use this struct */
    atomic_int lock_owner;  /* pid; guards what follows */
    unsigned users;         /* who has the library open */
    void *handle;
    atomic_int init_pid; /* the process in which NVML was initialised; 0: none */
    atomic_uint starts;  /* counts the initialisations: handles of an older one are void */
    atomic_uint_least64_t well_ns; /* when a read of some GPU last succeeded */
    struct nvml_calls calls;
    char driver[NVML_VERSION_SIZE]; /* "535.129.03"; "": unknown */
};

/* `loader` NULL: dlopen. WG_ENOMEM. */
enum wg_code wg__nvml_library_new(struct nvml_library **out, const char *path,
                                  const struct nvml_loader *loader, struct wg_error *err);
void wg__nvml_library_ref(struct nvml_library *library);
void wg__nvml_library_unref(struct nvml_library *library);

/* WG_ENODEV: no such library, or no driver; WG_EUNSUPPORTED: it lacks a call that is needed; else
 * the code of nvmlInit. `note` (may be NULL) is told which call runs; `remedy_out` may be NULL. */
enum wg_code wg__nvml_library_acquire(struct nvml_library *library, _Atomic(const char *) *note,
                                      const char **remedy_out, struct wg_error *err);
void wg__nvml_library_release(struct nvml_library *library);

/* After fork: initialises NVML in this process. The caller has acquired it; handles of the parent
 * are void. */
enum wg_code wg__nvml_library_check_process(struct nvml_library *library,
                                            _Atomic(const char *) *note, struct wg_error *err);

/* Ends NVML in this process and initialises it anew, unless somebody has since start `seen`. When
 * that fails NVML is down, and calls that get handles fail, until a later restart succeeds. */
enum wg_code wg__nvml_library_restart(struct nvml_library *library, unsigned seen,
                                      _Atomic(const char *) *note, struct wg_error *err);

/* -- Codes ------------------------------------------------------------------------------------ */

struct nvml_code {
    int code;
    enum wg_code meaning;
    const char *words;
    const char *remedy; /* NULL: none known */
};

/* Never NULL. */
const struct nvml_code *wg__nvml_code(int code);

/* "gpu0 (GPU-1a2b): nvmlDeviceGetPowerUsage: error 15: the GPU is lost"; `who` may be NULL. What to
 * do is not in it: that has a place of its own (`remedy`) wherever there is one. */
enum wg_code wg__nvml_fail(struct wg_error *err, const char *who, const char *call, int code);

/* "...; what to do", for a message that has no other place for it. Each may be NULL. */
void wg__nvml_add_remedy(struct wg_error *err, const char *remedy);

#endif
