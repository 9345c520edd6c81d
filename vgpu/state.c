/* SPDX-License-Identifier: MIT
 *
 * The shared file of the virtual machine, its locks, and time: vgpu_advance.
 *
 * Between two settled points a GPU's power is constant and its temperature an exponential towards
 * ambient + kelvin_per_watt * power, so a stretch of any length is one step, and the moment at
 * which the die reaches its slowdown temperature is a logarithm. A machine that nobody looked at
 * for a night costs the next caller as little as one of a millisecond ago.
 *
 * The lock of a GPU is robust: if its holder dies, the next one repairs by settling again. What
 * counts (time, energy) is derived from the newest segment, which is written before its number.
 *
 * The file has room for the GPUs that there are and no more, and every block of it is reserved when
 * it is made: a disk that is full then is an error in words, not a SIGBUS at the first use.
 *
 * A process that dies takes its load along. Nobody tells us when, so it ends when somebody looks
 * next: until then the GPU drew its power, as far as anybody can know.
 *
 * Owns: the mapping.    Threads: any thread; a GPU's state under its lock.
 */
#include "vgpu/state.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "device/nvml_abi.h"

static const char magic[16] = "wattgov-vgpu 2";

enum { REAP_PERIOD_NS = 50000000 };

/* Of the file: the array of GPUs is its last part, and the file ends behind the last GPU. */
static size_t size_for(size_t gpu_count)
{
    return offsetof(struct vgpu_machine, gpus) + gpu_count * sizeof(struct vgpu_gpu);
}

static enum wg_code init_lock(pthread_mutex_t *lock, struct wg_error *err)
{
    pthread_mutexattr_t attributes;
    int failed = pthread_mutexattr_init(&attributes);
    if (failed == 0) {
        (void)pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
        (void)pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
        failed = pthread_mutex_init(lock, &attributes);
        (void)pthread_mutexattr_destroy(&attributes);
    }
    return failed == 0 ? WG_OK : wg__fail_errno(err, failed, "making a lock of the virtual GPU");
}

static bool sensor_is_sound(const struct vgpu_sensor *sensor)
{
    return !sensor->is_present || (sensor->period_s >= 1e-6 && sensor->window_s >= 0.0);
}

static bool meters_are_sound(const struct vgpu_model *m)
{
    return sensor_is_sound(&m->instant) && sensor_is_sound(&m->average) &&
           sensor_is_sound(&m->usage) && sensor_is_sound(&m->memory) &&
           (!m->has_counter || m->counter_period_s >= 1e-6);
}

static bool limits_are_sound(const struct vgpu_model *m)
{
    return m->limit_min_w > 0.0 && m->limit_max_w >= m->limit_min_w &&
           m->limit_default_w >= m->limit_min_w && m->limit_default_w <= m->limit_max_w;
}

static bool rises(const double *values, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        if (!(values[i] > values[i - 1]))
            return false;
    }
    return count > 0 && values[0] > 0.0;
}

static enum wg_code check_model(const struct vgpu_model *m, size_t gpu, struct wg_error *err)
{
    const char *wrong = NULL;
    if (m->clock_count > VGPU_CLOCKS_MAX || !rises(m->clocks_hz, m->clock_count))
        wrong = "its clocks must be positive and rise";
    else if (m->memory_clock_count > VGPU_MEMORY_CLOCKS_MAX ||
             !rises(m->memory_clocks_hz, m->memory_clock_count))
        wrong = "its memory clocks must be positive and rise";
    else if (!(m->idle_w >= 0.0 && m->load_w >= m->idle_w))
        wrong = "it must draw at least as much under load as idle, and idle at least 0 W";
    else if (!limits_are_sound(m))
        wrong = "its limits must be positive, and the default one between least and largest";
    else if (!meters_are_sound(m))
        wrong = "a meter needs a period of at least 1 us";
    else if (m->mig_count > VGPU_MIG_MAX)
        wrong = "it has too many MIG devices";
    if (wrong == NULL)
        return WG_OK;
    return wg__fail(err, WG_EINVAL, "virtual GPU %zu '%s': %s", gpu, m->name, wrong);
}

static enum wg_code init_gpu(struct vgpu_gpu *gpu, const struct vgpu_model *model, uint64_t now_ns,
                             struct wg_error *err)
{
    gpu->model = *model;
    gpu->limit_w = model->limit_default_w;
    gpu->external_limit_w = INFINITY;
    gpu->forced_temperature_c = NAN;
    gpu->t_ns = now_ns;
    gpu->reaped_ns = now_ns;
    /* Where the ticks of the sensors fall is chance, as on a real machine. */
    uint64_t chance = 0;
    if (getrandom(&chance, sizeof chance, 0) != (ssize_t)sizeof chance)
        return wg__fail_errno(err, errno, "drawing the phase of the sensors");
    gpu->phase_ns = chance % 10000000000U;
    /* The machine has idled for days before it was made: so the first tick of a counter counts as
     * much as any, no two GPUs show the same, and a client that keeps millijoules in 32 bits fails
     * here as it would there. */
    const double age_s = (double)VGPU_AGE_S + (double)(chance / 10000000000U % VGPU_AGE_S);
    gpu->counter_base_j = -model->idle_w * age_s;
    gpu->temperature_c = model->ambient_c + model->kelvin_per_watt * model->idle_w;
    gpu->power_w = -1.0; /* so that settling begins the first segment */
    vgpu_settle(gpu);
    return init_lock(&gpu->lock, err);
}

static enum wg_code init_machine(struct vgpu_machine *machine, const char *id,
                                 const struct vgpu_model *models, size_t count,
                                 struct wg_error *err)
{
    machine->size = size_for(count);
    const size_t length = strnlen(id, sizeof machine->id - 1);
    memcpy(machine->id, id, length);
    machine->created_ns = wg__clock_ns();
    machine->gpu_count = count;
    enum wg_code code = init_lock(&machine->fault_lock, err);
    for (size_t i = 0; i < count && code == WG_OK; i++)
        code = init_gpu(&machine->gpus[i], &models[i], machine->created_ns, err);
    /* Last: a machine that is half made is none. */
    if (code == WG_OK)
        memcpy(machine->magic, magic, sizeof magic);
    return code;
}

/* NULL when it fails; the code is that of the error. */
static struct vgpu_machine *map_file(int file, size_t size, const char *path,
                                     enum wg_code *code_out, struct wg_error *err)
{
    void *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (bytes != MAP_FAILED)
        return bytes;
    *code_out = wg__fail_errno(err, errno, "mapping the virtual machine '%s'", path);
    return NULL;
}

/* Gives the file its size and all blocks of it. */
static enum wg_code reserve(int file, size_t size, const char *path, struct wg_error *err)
{
    int cause;
    do {
        cause = posix_fallocate(file, 0, (off_t)size);
    } while (cause == EINTR);
    if (cause == 0)
        return WG_OK;
    return wg__fail_errno(err, cause, "reserving the %zu bytes of the virtual machine '%s'", size,
                          path);
}

enum wg_code vgpu_create(struct vgpu_machine **out, const char *path, const char *id,
                         const struct vgpu_model *models, size_t count, struct wg_error *err)
{
    if (count > VGPU_GPUS_MAX)
        return wg__fail(err, WG_EINVAL, "a virtual machine has at most %d GPUs, not %zu",
                        VGPU_GPUS_MAX, count);
    for (size_t i = 0; i < count; i++) {
        const enum wg_code code = check_model(&models[i], i, err);
        if (code != WG_OK)
            return code;
    }
    if (unlink(path) != 0 && errno != ENOENT)
        return wg__fail_errno(err, errno, "replacing the virtual machine '%s'", path);
    const int file = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
        return wg__fail_errno(err, errno, "making the virtual machine '%s'", path);
    const size_t size = size_for(count);
    struct vgpu_machine *machine = NULL;
    enum wg_code code = reserve(file, size, path, err);
    if (code == WG_OK)
        machine = map_file(file, size, path, &code, err);
    (void)close(file);
    if (machine != NULL)
        code = init_machine(machine, id, models, count, err);
    if (code != WG_OK) {
        if (machine != NULL)
            (void)munmap(machine, size);
        (void)unlink(path);
        return code;
    }
    *out = machine;
    return WG_OK;
}

/* Whether what lies in `size` bytes of a file is a machine of our making. */
static bool is_machine(const struct vgpu_machine *machine, size_t size)
{
    return memcmp(machine->magic, magic, sizeof magic) == 0 && machine->size == size &&
           machine->gpu_count <= VGPU_GPUS_MAX && size == size_for(machine->gpu_count);
}

/* NULL when it fails, as map_file; `*size_out` is that of the file. */
static struct vgpu_machine *map_opened(int file, const char *path, size_t *size_out,
                                       enum wg_code *code_out, struct wg_error *err)
{
    struct stat status;
    if (fstat(file, &status) != 0) {
        *code_out = wg__fail_errno(err, errno, "asking for the size of '%s'", path);
        return NULL;
    }
    if (!S_ISREG(status.st_mode)) {
        *code_out =
            wg__fail(err, WG_EDATA, "'%s' is no virtual machine: it is no regular file", path);
        return NULL;
    }
    const size_t size = (size_t)status.st_size;
    if (size < size_for(0) || size > sizeof(struct vgpu_machine)) {
        *code_out =
            wg__fail(err, WG_EDATA,
                     "'%s' is no virtual machine of this version of wattgov: it has %zu bytes, "
                     "not %zu to %zu",
                     path, size, size_for(0), sizeof(struct vgpu_machine));
        return NULL;
    }
    *size_out = size;
    return map_file(file, size, path, code_out, err);
}

enum wg_code vgpu_map(struct vgpu_machine **out, const char *path, struct wg_error *err)
{
    const int file = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (file < 0)
        return wg__fail_errno(err, errno, "opening the virtual machine '%s'", path);
    enum wg_code code = WG_OK;
    size_t size = 0;
    struct vgpu_machine *machine = map_opened(file, path, &size, &code, err);
    (void)close(file);
    if (machine == NULL)
        return code;
    if (!is_machine(machine, size)) {
        (void)munmap(machine, size);
        return wg__fail(err, WG_EDATA,
                        "'%s' is no virtual machine of this version of wattgov: it does not begin "
                        "with '%s' and its own size",
                        path, magic);
    }
    *out = machine;
    return WG_OK;
}

enum wg_code vgpu_map_from_environment(struct vgpu_machine **out, struct wg_error *err)
{
    const char *path = getenv("WATTGOV_VGPU");
    if (path == NULL || *path == '\0')
        return wg__fail(err, WG_ENOENT, "WATTGOV_VGPU names no virtual machine");
    return vgpu_map(out, path, err);
}

void vgpu_unmap(struct vgpu_machine *machine)
{
    if (machine != NULL)
        (void)munmap(machine, machine->size);
}

/* The energy at gpu->t_ns, from the newest segment and not added up: many small steps give what one
 * long step gives. */
static void count_energy(struct vgpu_gpu *gpu)
{
    const struct vgpu_segment *newest =
        &gpu->segments[(gpu->segment_count - 1) % VGPU_SEGMENTS_MAX];
    const double since_s = (double)(gpu->t_ns - newest->t_ns) * 1e-9;
    gpu->energy_j = newest->energy_j + newest->power_w * since_s;
    gpu->memory_energy_j = newest->memory_energy_j + newest->memory_power_w * since_s;
}

/* The holder died: what it had not finished is derived again. */
static void repair(struct vgpu_gpu *gpu)
{
    count_energy(gpu);
    gpu->power_w = -1.0; /* whether or not the segment of the present power was begun */
    vgpu_settle(gpu);
}

void vgpu_lock(struct vgpu_gpu *gpu)
{
    if (pthread_mutex_lock(&gpu->lock) != EOWNERDEAD)
        return;
    (void)pthread_mutex_consistent(&gpu->lock);
    repair(gpu);
}

void vgpu_unlock(struct vgpu_gpu *gpu)
{
    (void)pthread_mutex_unlock(&gpu->lock);
}

/* One stretch of constant power. */
static void step(struct vgpu_gpu *gpu, uint64_t t_ns)
{
    const struct vgpu_model *model = &gpu->model;
    const double seconds = (double)(t_ns - gpu->t_ns) * 1e-9;
    const double end_c = model->ambient_c + model->kelvin_per_watt * gpu->power_w;
    const double rest = model->thermal_s > 0.0 ? exp(-seconds / model->thermal_s) : 0.0;
    gpu->temperature_c = end_c + (gpu->temperature_c - end_c) * rest;
    if (!isnan(gpu->forced_temperature_c))
        gpu->temperature_c = gpu->forced_temperature_c;
    if ((gpu->reasons & NVML_REASON_POWER_LIMIT) != 0)
        gpu->throttled_power_s += seconds;
    if ((gpu->reasons & NVML_REASON_SW_THERMAL) != 0)
        gpu->throttled_thermal_s += seconds;
    if ((gpu->reasons & NVML_REASON_HW_THERMAL) != 0)
        gpu->throttled_hw_thermal_s += seconds;
    gpu->t_ns = t_ns;
    count_energy(gpu);
}

/* When the die reaches its slowdown temperature at the present power; UINT64_MAX: never. */
static uint64_t hot_at_ns(const struct vgpu_gpu *gpu)
{
    const struct vgpu_model *model = &gpu->model;
    const double end_c = model->ambient_c + model->kelvin_per_watt * gpu->power_w;
    if (gpu->is_hot || !isnan(gpu->forced_temperature_c) || model->slowdown_c <= 0.0 ||
        end_c <= model->slowdown_c)
        return UINT64_MAX;
    if (gpu->temperature_c >= model->slowdown_c)
        return gpu->t_ns;
    const double seconds =
        model->thermal_s * log((end_c - gpu->temperature_c) / (end_c - model->slowdown_c));
    if (!(seconds < 1e9)) /* 30 years */
        return UINT64_MAX;
    return gpu->t_ns + (uint64_t)ceil(seconds * 1e9);
}

static bool reap(struct vgpu_gpu *gpu, uint64_t t_ns)
{
    if (t_ns - gpu->reaped_ns < REAP_PERIOD_NS)
        return false;
    gpu->reaped_ns = t_ns;
    bool has_ended = false;
    for (size_t i = 0; i < VGPU_LOADS_MAX; i++) {
        struct vgpu_load *load = &gpu->loads[i];
        if (load->pid != 0 && kill((pid_t)load->pid, 0) != 0 && errno == ESRCH) {
            load->pid = 0;
            has_ended = true;
        }
    }
    return has_ended;
}

void vgpu_advance(struct vgpu_gpu *gpu, uint64_t t_ns)
{
    if (t_ns <= gpu->t_ns)
        return;
    const uint64_t hot_ns = hot_at_ns(gpu);
    if (hot_ns < t_ns) {
        step(gpu, hot_ns);
        gpu->temperature_c = fmax(gpu->temperature_c, gpu->model.slowdown_c);
        vgpu_settle(gpu);
    }
    step(gpu, t_ns);
    if (reap(gpu, t_ns))
        vgpu_settle(gpu);
}
