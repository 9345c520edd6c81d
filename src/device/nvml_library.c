/* SPDX-License-Identifier: MIT
 *
 * Loading NVML: one loop over a table of names, newest first.
 *
 * The lock is a word that holds the pid of its owner. A mutex would do but for fork: a child of a
 * process whose other thread had the mutex would wait for ever. Here the child sees a pid that is
 * not its own and takes the lock over. It is held while NVML starts, which may take seconds, and
 * contended only then, so waiting by short sleeps costs nothing.
 *
 * NVML_INIT_NO_GPUS: a machine whose driver is loaded without a GPU is no failure. We do not ask
 * for NVML_INIT_NO_ATTACH: the header's FORCE_INIT ("even when a previous init was called with
 * NO_ATTACH") suggests that GPUs of such a library cannot be read.
 *
 * Owns: the handle of dlopen.    Threads: any.
 */
#include "device/nvml_library.h"

#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"

enum { SPELLINGS = 3 };

struct spelled {
    size_t offset; /* in struct nvml_calls */
    bool is_needed;
    const char *name;
    const char *spellings[SPELLINGS];
};

#define NEEDED   true
#define OPTIONAL false
static const struct spelled table[] = {
#define X(member, need, arguments, name, newest, older, oldest)                                    \
    {offsetof(struct nvml_calls, member), need, name, {newest, older, oldest}},
    WG_NVML_CALLS(X)
#undef X
};
#undef NEEDED
#undef OPTIONAL

const struct nvml_names wg__nvml_names = {
#define X(member, need, arguments, name, newest, older, oldest) .member = name,
    WG_NVML_CALLS(X)
#undef X
};

static void *open_shared(const char *path, char *why, size_t why_size)
{
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) {
        const char *cause = dlerror();
        const size_t length = cause != NULL ? strnlen(cause, why_size - 1) : 0;
        memcpy(why, cause != NULL ? cause : "", length);
        why[length] = '\0';
    }
    return handle;
}

static void *find_symbol(void *handle, const char *name)
{
    return dlsym(handle, name);
}

static void close_shared(void *handle)
{
    (void)dlclose(handle);
}

static const struct nvml_loader shared_loader = {open_shared, find_symbol, close_shared};

static void lock(struct nvml_library *library)
{
    const int self = (int)getpid();
    for (;;) {
        int owner = 0;
        if (atomic_compare_exchange_strong(&library->lock_owner, &owner, self))
            return;
        if (owner != self && atomic_compare_exchange_strong(&library->lock_owner, &owner, self))
            return; /* the owner is a thread of the parent that is not here */
        (void)nanosleep(&(struct timespec){.tv_nsec = 100000}, NULL);
    }
}

static void unlock(struct nvml_library *library)
{
    atomic_store(&library->lock_owner, 0);
}

enum wg_code wg__nvml_library_new(struct nvml_library **out, const char *path,
                                  const struct nvml_loader *loader, struct wg_error *err)
{
    struct nvml_library *library = wg__alloc_zeroed(1, sizeof *library);
    if (library == NULL)
        return wg__fail(err, WG_ENOMEM, "%s: out of memory", path);
    library->loader = loader != NULL ? loader : &shared_loader;
    library->path = path;
    atomic_init(&library->references, 1);
    *out = library;
    return WG_OK;
}

void wg__nvml_library_ref(struct nvml_library *library)
{
    (void)atomic_fetch_add(&library->references, 1);
}

void wg__nvml_library_unref(struct nvml_library *library)
{
    if (library != NULL && atomic_fetch_sub(&library->references, 1) == 1)
        wg__free(library);
}

/* Fills `calls`; the name of the first call that is needed and missing, or NULL. */
static const char *find_calls(struct nvml_library *library)
{
    const char *missing = NULL;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        void *symbol = NULL;
        for (size_t j = 0; j < SPELLINGS && symbol == NULL; j++) {
            if (table[i].spellings[j] != NULL)
                symbol = library->loader->symbol(library->handle, table[i].spellings[j]);
        }
        /* POSIX has functions and objects of one size; C has no cast for it. */
        memcpy((char *)&library->calls + table[i].offset, &symbol, sizeof symbol);
        if (symbol == NULL && table[i].is_needed && missing == NULL)
            missing = table[i].name;
    }
    return missing;
}

static void unload(struct nvml_library *library)
{
    library->loader->close(library->handle);
    library->handle = NULL;
    library->calls = (struct nvml_calls){0};
    library->driver[0] = '\0';
}

static enum wg_code load(struct nvml_library *library, const char **remedy, struct wg_error *err)
{
    char why[256] = "";
    library->handle = library->loader->open(library->path, why, sizeof why);
    if (library->handle == NULL) {
        *remedy = "install the NVIDIA driver's library (Debian: libnvidia-ml1); a container needs "
                  "NVIDIA_DRIVER_CAPABILITIES=utility";
        return wg__fail(err, WG_ENODEV, "%s cannot be loaded: %s", library->path, why);
    }
    const char *missing = find_calls(library);
    if (missing == NULL)
        return WG_OK;
    unload(library);
    *remedy = "install a newer NVIDIA driver (Debian: nvidia-driver and libnvidia-ml1)";
    return wg__fail(err, WG_EUNSUPPORTED, "%s has no call %s: it is too old, or not NVML",
                    library->path, missing);
}

/* Old libraries lack the call with flags; some refuse a flag that they do not know. */
static int call_init(struct nvml_library *library, const char **name)
{
    const struct nvml_calls *calls = &library->calls;
    *name = wg__nvml_names.init_with_flags;
    int code = NVML_E_FUNCTION_NOT_FOUND;
    if (calls->init_with_flags != NULL)
        code = calls->init_with_flags(NVML_INIT_NO_GPUS);
    if (code != NVML_E_FUNCTION_NOT_FOUND && code != NVML_E_INVALID_ARGUMENT &&
        code != NVML_E_NOT_SUPPORTED)
        return code;
    *name = wg__nvml_names.init;
    return calls->init != NULL ? calls->init() : NVML_E_FUNCTION_NOT_FOUND;
}

static void tell(_Atomic(const char *) *note, const char *call)
{
    if (note != NULL)
        atomic_store_explicit(note, call, memory_order_relaxed);
}

static enum wg_code initialise(struct nvml_library *library, _Atomic(const char *) *note,
                               const char **remedy, struct wg_error *err)
{
    const struct nvml_calls *calls = &library->calls;
    const char *name = NULL;
    tell(note, wg__nvml_names.init);
    const int code = call_init(library, &name);
    tell(note, NULL);
    if (code != NVML_OK) {
        *remedy = wg__nvml_code(code)->remedy;
        return wg__nvml_fail(err, library->path, name, code);
    }
    atomic_store(&library->init_pid, (int)getpid());
    (void)atomic_fetch_add(&library->starts, 1);
    library->driver[0] = '\0';
    if (calls->driver_version != NULL &&
        calls->driver_version(library->driver, sizeof library->driver) != NVML_OK)
        library->driver[0] = '\0';
    library->driver[sizeof library->driver - 1] = '\0';
    return WG_OK;
}

enum wg_code wg__nvml_library_acquire(struct nvml_library *library, _Atomic(const char *) *note,
                                      const char **remedy_out, struct wg_error *err)
{
    const char *remedy = NULL;
    enum wg_code code = WG_OK;
    lock(library);
    if (library->users == 0) {
        code = load(library, &remedy, err);
        if (code == WG_OK) {
            code = initialise(library, note, &remedy, err);
            if (code != WG_OK)
                unload(library);
        }
    }
    if (code == WG_OK)
        library->users++;
    unlock(library);
    if (remedy_out != NULL)
        *remedy_out = remedy;
    else if (code != WG_OK)
        wg__nvml_add_remedy(err, remedy);
    return code;
}

void wg__nvml_library_release(struct nvml_library *library)
{
    lock(library);
    if (--library->users == 0) {
        /* What a parent initialised is the parent's to shut down. */
        if (atomic_load(&library->init_pid) == (int)getpid())
            (void)library->calls.shutdown();
        unload(library);
    }
    unlock(library);
}

enum wg_code wg__nvml_library_check_process(struct nvml_library *library,
                                            _Atomic(const char *) *note, struct wg_error *err)
{
    const int owner = atomic_load(&library->init_pid);
    if (owner == (int)getpid())
        return WG_OK;
    if (owner == 0)
        return wg__fail(err, WG_EIO, "%s: NVML could not be started again yet", library->path);
    const char *remedy = NULL;
    enum wg_code code = WG_OK;
    lock(library);
    if (atomic_load(&library->init_pid) != (int)getpid())
        code = initialise(library, note, &remedy, err);
    unlock(library);
    if (code != WG_OK)
        wg__nvml_add_remedy(err, remedy);
    return code;
}

enum wg_code wg__nvml_library_restart(struct nvml_library *library, unsigned seen,
                                      _Atomic(const char *) *note, struct wg_error *err)
{
    const char *remedy = NULL;
    enum wg_code code = WG_OK;
    lock(library);
    const bool is_mine = atomic_load(&library->init_pid) == (int)getpid();
    if (!is_mine || atomic_load(&library->starts) == seen) {
        if (is_mine) {
            tell(note, wg__nvml_names.shutdown);
            (void)library->calls.shutdown();
            (void)atomic_fetch_add(&library->starts, 1); /* its handles are void */
        }
        atomic_store(&library->init_pid, 0);
        code = initialise(library, note, &remedy, err);
    }
    unlock(library);
    if (code != WG_OK)
        wg__nvml_add_remedy(err, remedy);
    return code;
}
