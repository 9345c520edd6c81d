/* SPDX-License-Identifier: MIT
 *
 * What the files of the NVIDIA backend share: one GPU, and what was found out about it.
 *
 *     nvml.c          finds the GPUs that are chosen; handles, release, reopen
 *     nvml_pci.c      what the kernel tells of them without waking one
 *     nvml_probe.c    what a GPU is and can be asked; nvml_knobs.c: what can be set
 *     nvml_control.c  setting it
 *     nvml_read.c     one look at it
 *     nvml_retry.c    coming back to a driver that was there and is gone
 *     nvml_process.c  who uses it
 *     nvml_code.c     what the driver's codes mean
 *     nvml_library.c  the library itself
 *
 * Threads: one at a time per GPU.
 */
#ifndef WG_DEVICE_NVML_H
#define WG_DEVICE_NVML_H

#include <stdint.h>
#include <sys/types.h>

#include "device/backend.h"
#include "device/nvml_library.h"

enum { NVML_FIELDS_MAX = 16, NVML_PCI_SIZE = 32 };

/* A metric that comes as a field of nvmlDeviceGetFieldValues. */
struct nvml_field_plan {
    enum wg_metric metric;
    unsigned field;
    unsigned scope;
    double scale; /* to SI */
};

/* A driver that refuses every call to a GPU that it answered before (nvml_retry.c). */
struct nvml_retry {
    uint64_t since_ns; /* of the first refusal; 0: all is well */
    uint64_t next_ns;  /* not before is NVML started anew */
    uint64_t wait_ns;  /* until the try after that */
};

struct nvml_gpu {
    struct wg_device base;
    _Atomic(const char *) *note;  /* where the call that runs is noted: &base.call; may be NULL */
    struct nvml_library *library; /* a reference */
    const char *root;             /* the machine's */
    unsigned index;               /* NVML's */
    char uuid[NVML_UUID_SIZE];    /* "": unknown */
    char pci[NVML_PCI_SIZE];      /* "0000:1a:00.0"; "": unknown */
    bool has_library;             /* has acquired it */
    bool is_picked;               /* by the user; not one of all */
    bool is_on_bus;               /* `pci` is from the kernel's list */
    bool is_known;                /* the probe has read uuid and pci */
    nvml_device handle;           /* NULL: none yet */
    pid_t handle_pid;             /* the process that got it */
    unsigned handle_start;        /* and which start of NVML it is of */
    struct nvml_retry retry;

    /* What the probe found; the rest is not asked for again. */
    struct nvml_field_plan fields[NVML_FIELDS_MAX];
    size_t field_count;
    uint32_t readers;    /* bit i: nvml_readers[i] answers */
    double power_most_w; /* readings above are nonsense */
    double memory_most;  /* bytes; 0: unknown */
    bool has_throttle;   /* reasons can be read */
    char who[160];       /* "gpu0 (GPU-1a2b)" for messages */
};

/* Calls `member` of the library and notes its name for the watchdog. A call that the library lacks
 * answers NVML_E_FUNCTION_NOT_FOUND. */
#define NVML_CALL(gpu, member, ...)                                                                \
    ((gpu)->library->calls.member == NULL                                                          \
         ? (int)NVML_E_FUNCTION_NOT_FOUND                                                          \
         : (wg__nvml_enter((gpu), wg__nvml_names.member),                                          \
            wg__nvml_leave((gpu), (gpu)->library->calls.member(__VA_ARGS__))))

static inline void wg__nvml_enter(struct nvml_gpu *gpu, const char *call)
{
    if (gpu->note != NULL)
        atomic_store_explicit(gpu->note, call, memory_order_relaxed);
}

static inline int wg__nvml_leave(struct nvml_gpu *gpu, int code)
{
    wg__nvml_enter(gpu, NULL);
    return code;
}

static inline struct nvml_gpu *wg__nvml_gpu(struct wg_device *device)
{
    return (struct nvml_gpu *)device; /* it is the first member */
}

/* nvml.c: as wg__backend_nvml.open, with a loader for tests (NULL: dlopen). */
enum wg_code wg__nvml_open(const struct wg_backend_config *config, const struct nvml_loader *loader,
                           struct wg_device_list *list, const char **remedy_out,
                           struct wg_error *err);

/* nvml.c: the handle of this process, gotten when there is none yet. */
enum wg_code wg__nvml_get_handle(struct nvml_gpu *gpu, struct wg_error *err);

/* "gpu0", before it has a label "GPU 0 (GPU-1a2b)"; valid until the next call. */
const char *wg__nvml_name(struct nvml_gpu *gpu);

/* Fails with the GPU's name in front. */
enum wg_code wg__nvml_fail_gpu(struct nvml_gpu *gpu, struct wg_error *err, const char *call,
                               int code);

/* nvml_pci.c */
struct nvml_pci_gpu {
    char address[NVML_PCI_SIZE]; /* "0000:1a:00.0" */
    bool is_suspended;
    const char *uuid; /* as the driver's /proc file knows it; NULL: unknown */
};

/* The NVIDIA GPUs that the kernel lists, in PCI order, in `arena`; those of another driver (vfio,
 * nouveau) are left out. */
enum wg_code wg__nvml_pci_list(const char *root, struct wg_arena *arena, struct nvml_pci_gpu **out,
                               size_t *count_out, struct wg_error *err);
bool wg__nvml_pci_is_suspended(const char *root, const char *address);
unsigned wg__nvml_pci_numa_node(const char *root, const char *address); /* UINT_MAX: unknown */

/* "00000000:1A:00.0" becomes "0000:1a:00.0". */
void wg__nvml_pci_address(const struct nvml_pci_info *info, char out[static NVML_PCI_SIZE]);

/* nvml_probe.c */
enum wg_code wg__nvml_probe(struct wg_device *device, struct wg_error *err);

/* The UUIDs of the instances of a GPU that is split, in `arena`. */
enum wg_code wg__nvml_mig_uuids(struct nvml_gpu *gpu, struct wg_arena *arena,
                                const char *const **out, size_t *count_out, struct wg_error *err);

/* A text in the GPU's arena; NULL: out of memory. */
const char *wg__nvml_text(struct nvml_gpu *gpu, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Why a call gave nothing: "nvmlDeviceGetPowerUsage: error 3: ..."; NULL: out of memory. */
const char *wg__nvml_why_not(struct nvml_gpu *gpu, const char *call, int code);

/* nvml_knobs.c: fills info.knobs. WG_ENOMEM. */
enum wg_code wg__nvml_probe_knobs(struct nvml_gpu *gpu, struct wg_error *err);

/* nvml_control.c */
enum wg_code wg__nvml_set(struct wg_device *device, enum wg_knob knob, double value,
                          struct wg_error *err);
enum wg_code wg__nvml_get(struct wg_device *device, enum wg_knob knob, double *out,
                          struct wg_error *err);

/* nvml_read.c */
enum wg_code wg__nvml_read(struct wg_device *device, uint32_t wanted, struct wg_sample *out,
                           struct wg_error *err);

/* nvml_retry.c: before a read, whether to start NVML anew; WG_OK: read now. */
enum wg_code wg__nvml_retry_before(struct nvml_gpu *gpu, struct wg_error *err);
/* After a read of the GPU: NVML_OK, or what it failed with. */
void wg__nvml_retry_after(struct nvml_gpu *gpu, int code);

/* A call that gives one or two metrics. */
struct nvml_reader {
    uint32_t metrics;        /* bits */
    const char *const *call; /* its name, in wg__nvml_names */
    int (*read)(struct nvml_gpu *gpu, struct wg_sample *out);
};

enum { NVML_READERS = 11 };
extern const struct nvml_reader wg__nvml_readers[NVML_READERS];

/* Sets has_throttle and throttle. */
int wg__nvml_read_reasons(struct nvml_gpu *gpu, struct wg_sample *out);

/* The number in a field, if it is one: no sentinel, of a known type, in range for the metric. */
bool wg__nvml_field_number(const struct nvml_gpu *gpu, const struct nvml_field_plan *plan,
                           const struct nvml_field_value *value, double *out);

/* nvml_process.c */
enum wg_code wg__nvml_read_processes(struct wg_device *device, struct wg_process *out,
                                     size_t capacity, size_t *count_out, struct wg_error *err);

#endif
