/* SPDX-License-Identifier: MIT
 *
 * A device that is a handful of the kernel's files: the common part of rapl.c, amdgpu.c, jetson.c
 * and intel.c.
 *
 * Most meters are one file with one number ("power1_average", microwatts). A backend says where its
 * folders are (`locate`) and which files it would like (`wg__kernel_add`); here they are tried,
 * kept open, read, closed and found again. Numbers of folders ("hwmon3", "card1") change with each
 * boot and each load of a driver, so after `release` the folders are searched anew, by what is
 * lasting; what `info` says of a meter stays as the first probe found it.
 *
 *     device.arena   texts of `info`, as long as the device
 *     paths          folders and paths, from `locate` to the next `locate`
 *
 * Owns: its files and `paths`.    Threads: as struct wg_device.
 */
#ifndef WG_DEVICE_KERNEL_DEVICE_H
#define WG_DEVICE_KERNEL_DEVICE_H

#include "device/backend.h"
#include "device/sysfs.h"

struct wg_cpu_clock;
struct wg_kernel_device;

enum { WG_KERNEL_FOLDERS = 4 };

/* One meter. */
struct wg_kernel_gauge {
    unsigned folder;  /* of wg_kernel_device.folders */
    const char *name; /* of the file; NULL: this meter is not read from a file */
    double scale;     /* value = number * scale */
    /* Another way to get the value; NULL: a number in `file`. NAN with WG_OK: not known this time.
     * Must not allocate. */
    enum wg_code (*read)(struct wg_kernel_device *kernel, const struct wg_kernel_gauge *gauge,
                         double *out, struct wg_error *err);
    struct wg_sysfs_file file; /* set by wg__kernel_add */
};

/* What sets a knob: one file with one number. */
struct wg_kernel_handle {
    unsigned folder;  /* of wg_kernel_device.folders */
    const char *name; /* of the file; NULL: the knob is set in another way, or not at all */
    double scale;     /* value = number * scale */
};

struct wg_kernel_ops {
    /* Finds the folders again and puts them into `folders` (texts in `paths`); folders[0] is gone
     * when the device is. WG_ELOST: it is not there any more. */
    enum wg_code (*locate)(struct wg_kernel_device *kernel, struct wg_error *err);
    /* Closes and opens what is not in `gauges`; NULL: nothing. */
    void (*release)(struct wg_kernel_device *kernel);
    enum wg_code (*reopen)(struct wg_kernel_device *kernel, struct wg_error *err);
    /* As struct wg_device_ops, for knobs without a handle; NULL: there are none. */
    enum wg_code (*set)(struct wg_kernel_device *kernel, enum wg_knob knob, double value,
                        struct wg_error *err);
    enum wg_code (*get)(struct wg_kernel_device *kernel, enum wg_knob knob, double *out,
                        struct wg_error *err);
};

struct wg_kernel_device {
    struct wg_device device; /* first: the two are one */
    const struct wg_kernel_ops *ops;
    const char *root;
    struct wg_arena paths;
    const char *folders[WG_KERNEL_FOLDERS];
    struct wg_kernel_gauge gauges[WG_METRIC_COUNT];
    struct wg_kernel_handle handles[WG_KNOB_COUNT]; /* set by probes */
    const struct wg_cpu_clock *cpu_clock;           /* sets WG_KNOB_CPU_CLOCK; NULL: nothing does */
    bool is_out_of_memory; /* a text could not be kept: wg__kernel_finish tells */
};

static inline struct wg_kernel_device *wg__kernel_of(struct wg_device *device)
{
    return (struct wg_kernel_device *)device;
}

/* Begins a probe, the first or a later one: forgets what was found before and locates the folders.
 */
enum wg_code wg__kernel_begin(struct wg_kernel_device *kernel, struct wg_error *err);

/* Tries a meter: opens its file, reads it once and notes what became of it, with `remedy` when it
 * is not permitted. Another code than WG_OK: the meter is absent, the text tells why. */
enum wg_code wg__kernel_add(struct wg_kernel_device *kernel, enum wg_metric metric,
                            const struct wg_kernel_gauge *gauge, const char *remedy,
                            struct wg_error *err);
/* Takes a meter back that `wg__kernel_add` found. */
void wg__kernel_drop(struct wg_kernel_device *kernel, enum wg_metric metric, const char *why,
                     const char *remedy);
/* A meter or knob that is not there; texts are copied. */
void wg__kernel_absent(struct wg_kernel_device *kernel, enum wg_metric metric, const char *source,
                       const char *why, const char *remedy);
void wg__kernel_no_knob(struct wg_kernel_device *kernel, enum wg_knob knob, const char *source,
                        const char *why, const char *remedy);
/* A knob that is there. Not writable by this process: says so, with `remedy`. `levels` lie in the
 * device's arena. */
void wg__kernel_knob(struct wg_kernel_device *kernel, enum wg_knob knob,
                     const struct wg_knob_info *knob_info, const char *path, const char *remedy);

/* The same for one that is set by writing a number to a file. */
void wg__kernel_knob_file(struct wg_kernel_device *kernel, enum wg_knob knob,
                          const struct wg_knob_info *knob_info,
                          const struct wg_kernel_handle *handle, const char *remedy);

/* Reads or writes a number of a file in one of the folders: value = number * scale. */
enum wg_code wg__kernel_get_number(struct wg_kernel_device *kernel,
                                   const struct wg_kernel_handle *handle, double *out,
                                   struct wg_error *err);
enum wg_code wg__kernel_set_number(struct wg_kernel_device *kernel,
                                   const struct wg_kernel_handle *handle, double value,
                                   struct wg_error *err);

/* Reads or writes a whole file of a folder, which is named as the call that may hang; `name` must
 * last. No allocation: the way back must work without memory. WG_ENOENT: `folder` is NULL, or the
 * file is not there; else as wg__sysfs_text and wg__sysfs_write. */
enum wg_code wg__kernel_get_text(struct wg_kernel_device *kernel, const char *folder,
                                 const char *name, char *out, size_t size, struct wg_error *err);
enum wg_code wg__kernel_set_text(struct wg_kernel_device *kernel, const char *folder,
                                 const char *name, const char *text, struct wg_error *err);

/* The levels of a knob: the numbers of a file, times `scale`, rising; without the file none. */
void wg__kernel_levels(struct wg_kernel_device *kernel, const char *path, double scale,
                       struct wg_knob_info *knob_info);

/* A copy in the device's arena; "" when memory has run out. `text` NULL gives NULL. */
const char *wg__kernel_keep(struct wg_kernel_device *kernel, const char *text);
const char *wg__kernel_format(struct wg_kernel_device *kernel, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Ends a probe: `why` for each meter and knob that nothing was said of. */
enum wg_code wg__kernel_finish(struct wg_kernel_device *kernel, const char *why,
                               struct wg_error *err);

/* Ready to be struct wg_device_ops members. `destroy` takes a struct from wg__alloc. */
enum wg_code wg__kernel_read(struct wg_device *device, uint32_t wanted, struct wg_sample *out,
                             struct wg_error *err);
enum wg_code wg__kernel_set(struct wg_device *device, enum wg_knob knob, double value,
                            struct wg_error *err);
enum wg_code wg__kernel_get(struct wg_device *device, enum wg_knob knob, double *out,
                            struct wg_error *err);
void wg__kernel_release(struct wg_device *device);
enum wg_code wg__kernel_reopen(struct wg_device *device, struct wg_error *err);
void wg__kernel_destroy(struct wg_device *device);
/* For a device that never got into a list. NULL does nothing. */
void wg__kernel_free(struct wg_kernel_device *kernel);

#endif
