/* SPDX-License-Identifier: MIT
 *
 * From a machine file to GPUs: which file, `like`, and identities.
 *
 * A GPU starts from what `like` names (the first GPU of a shipped machine) or from nothing and
 * takes each key that is written (machine_gpu.c). Identities that the file does not give are
 * derived from the machine's id and the GPU's index, so that a test, a recorded trace and a second
 * run see the same ones; PCI addresses rise with the index, as NVML orders by them.
 *
 * Rejected: one file per GPU model plus one per machine. Nobody wants to ship two files to describe
 * a laptop, and `like` gives the same reuse.
 */
#include "vgpu/machine.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "vgpu/machine_file.h"
#include "vgpu/machine_gpu.h"

enum { LIKE_DEPTH_MAX = 4, PATH_MAX_BYTES = 4096 };

static void copy_text(char out[static VGPU_TEXT_MAX], const char *text)
{
    (void)snprintf(out, VGPU_TEXT_MAX, "%s", text);
}

/* FNV-1a, continued from `hash`, over a text and a number. */
static uint64_t hash_more(uint64_t hash, const char *text, uint64_t number)
{
    const uint64_t prime = UINT64_C(0x100000001b3);
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * prime;
    for (int i = 0; i < 8; i++)
        hash = (hash ^ (number >> (8 * i) & 0xff)) * prime;
    return hash ^ hash >> 32;
}

static void derive_uuid(char out[static VGPU_TEXT_MAX], const char *prefix, const char *id,
                        uint64_t number)
{
    const uint64_t high = hash_more(UINT64_C(0xcbf29ce484222325), id, number);
    const uint64_t low = hash_more(high, prefix, number);
    (void)snprintf(out, VGPU_TEXT_MAX, "%s%08x-%04x-%04x-%04x-%012llx", prefix,
                   (unsigned)(high >> 32), (unsigned)(high >> 16 & 0xffff),
                   (unsigned)(high & 0xffff), (unsigned)(low >> 48),
                   (unsigned long long)(low & UINT64_C(0xffffffffffff)));
}

/* Whether GPU `index` shares its UUID (or its PCI address) with an earlier one. */
static bool is_taken(const struct vgpu_description *machine, size_t index, bool is_uuid)
{
    for (size_t i = 0; i < index; i++) {
        const struct vgpu_model *a = &machine->models[i], *b = &machine->models[index];
        if (is_uuid ? strcmp(a->uuid, b->uuid) == 0 : strcmp(a->pci, b->pci) == 0)
            return true;
    }
    return false;
}

/* Gives GPU `index` the identities that it lacks. The salt moves on while they are taken. */
static void identify(struct vgpu_description *machine, size_t index)
{
    enum { BUS_FIRST = 3, BUS_STEP = 3, SALT_STEP = 1000, BUS_MAX = 256 };
    struct vgpu_model *model = &machine->models[index];
    for (uint64_t salt = index; model->uuid[0] == '\0' || is_taken(machine, index, true);
         salt += SALT_STEP) {
        derive_uuid(model->uuid, "GPU-", machine->id, salt);
        for (size_t i = 0; i < model->mig_count; i++)
            model->mig_uuids[i][0] = '\0';
    }
    for (size_t i = 0; i < model->mig_count; i++)
        if (model->mig_uuids[i][0] == '\0')
            derive_uuid(model->mig_uuids[i], "MIG-", model->uuid, i);
    for (unsigned bus = BUS_FIRST + BUS_STEP * (unsigned)index;
         model->pci[0] == '\0' || is_taken(machine, index, false); bus++)
        (void)snprintf(model->pci, sizeof model->pci, "00000000:%02X:00.0", bus % BUS_MAX);
}

static enum wg_code add_models(struct vgpu_description *machine, const struct vgpu_model *model,
                               size_t count, struct wg_error *err)
{
    struct vgpu_model *longer =
        wg__realloc_array(machine->models, machine->count + count, sizeof *longer);
    if (longer == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory for %zu GPUs", machine->count + count);
    machine->models = longer;
    for (size_t i = 0; i < count; i++) {
        machine->models[machine->count] = *model;
        identify(machine, machine->count);
        machine->count++;
    }
    return WG_OK;
}

static enum wg_code read_machine(struct vgpu_description *out, const char *folder,
                                 const char *id_or_path, unsigned depth, struct wg_error *err);

/* What `like` names, without its identities. */
static enum wg_code read_like(struct vgpu_model *model, const struct vgpu_file_place *context,
                              const char *folder, unsigned depth, struct wg_error *err)
{
    const char *like = context->given->like;
    if (strchr(like, '/') != NULL)
        return vgpu_file_reject(context->file, context->gpu, "like", err,
                                "'%s' is no id of a shipped machine", like);
    if (depth >= LIKE_DEPTH_MAX)
        return vgpu_file_reject(context->file, context->gpu, "like", err,
                                "more than %d steps, or a circle", LIKE_DEPTH_MAX);
    struct vgpu_description other = {0};
    struct wg_error cause = {0};
    const enum wg_code code = read_machine(&other, folder, like, depth + 1, &cause);
    if (code == WG_ENOMEM)
        return wg__fail(err, code, "%s", cause.text);
    if (code != WG_OK)
        return vgpu_file_reject(context->file, context->gpu, "like", err, "%s", cause.text);
    if (other.models == NULL)
        return vgpu_file_reject(context->file, context->gpu, "like", err, "'%s' has no GPU", like);
    *model = other.models[0];
    model->uuid[0] = model->pci[0] = '\0';
    for (size_t i = 0; i < model->mig_count; i++)
        model->mig_uuids[i][0] = '\0';
    vgpu_description_fini(&other);
    return WG_OK;
}

static enum wg_code add_gpu(struct vgpu_description *out, const struct vgpu_file *file, size_t gpu,
                            const char *folder, unsigned depth, struct wg_error *err)
{
    const struct vgpu_file_place context = {file, gpu, &file->machine->gpus[gpu]};
    const unsigned count = context.given->count != NULL ? *context.given->count : 1;
    if (count < 1 || count > VGPU_GPUS_MAX - out->count)
        return vgpu_file_reject(file, gpu, "count", err,
                                "%u is not in 1 .. %d, the most that a machine has", count,
                                VGPU_GPUS_MAX);
    struct vgpu_model model = {0};
    if (context.given->like != NULL) {
        const enum wg_code code = read_like(&model, &context, folder, depth, err);
        if (code != WG_OK)
            return code;
    }
    const enum wg_code code = vgpu_model_fill(&model, &context, err);
    if (code != WG_OK)
        return code;
    for (size_t i = 0; i < out->count; i++) {
        if (model.uuid[0] != '\0' && strcmp(model.uuid, out->models[i].uuid) == 0)
            return vgpu_file_reject(file, gpu, "uuid", err, "is that of GPU %zu already", i);
        if (model.pci[0] != '\0' && strcmp(model.pci, out->models[i].pci) == 0)
            return vgpu_file_reject(file, gpu, "pci_address", err, "is that of GPU %zu already", i);
    }
    return add_models(out, &model, count, err);
}

/* The major number of CUDA stands before the driver's in NVML's version: 12.535.161.08. */
static enum wg_code set_versions(struct vgpu_description *out, const struct vgpu_file *file,
                                 struct wg_error *err)
{
    const struct vgpu_file_machine *machine = file->machine;
    const double cuda = *machine->cuda_version;
    if (!(cuda >= 8 && cuda < 100))
        return vgpu_file_reject(file, SIZE_MAX, "cuda_version", err, "%.10g is not in 8.0 .. 99.9",
                                cuda);
    out->cuda_version = (int)lround(floor(cuda) * 1000 + (cuda - floor(cuda)) * 100);
    copy_text(out->id, machine->id);
    copy_text(out->driver, machine->driver);
    if (machine->nvml_version != NULL)
        copy_text(out->nvml_version, machine->nvml_version);
    else
        (void)snprintf(out->nvml_version, sizeof out->nvml_version, "%d.%.80s",
                       out->cuda_version / 1000, machine->driver);
    out->anyone_may_set = machine->anyone_may_set != NULL && *machine->anyone_may_set;
    return WG_OK;
}

/* Takes the file. */
static enum wg_code build_machine(struct vgpu_description *out, struct vgpu_file *file,
                                  const char *folder, unsigned depth, struct wg_error *err)
{
    struct vgpu_description machine = {0};
    enum wg_code code = set_versions(&machine, file, err);
    for (size_t i = 0; code == WG_OK && i < file->machine->gpus_count; i++)
        code = add_gpu(&machine, file, i, folder, depth, err);
    vgpu_file_free(file);
    if (code != WG_OK) {
        vgpu_description_fini(&machine);
        return code;
    }
    *out = machine;
    return WG_OK;
}

static enum wg_code read_file(struct vgpu_description *out, const char *folder, const char *path,
                              unsigned depth, struct wg_error *err)
{
    struct vgpu_file file = {0};
    const enum wg_code code = vgpu_file_read(&file, path, err);
    return code == WG_OK ? build_machine(out, &file, folder, depth, err) : code;
}

enum wg_code vgpu_machine_parse(struct vgpu_description *out, const char *folder, const char *name,
                                const char *text, size_t length, struct wg_error *err)
{
    struct vgpu_file file = {0};
    const enum wg_code code = vgpu_file_parse(&file, name, text, length, err);
    return code == WG_OK ? build_machine(out, &file, folder, 0, err) : code;
}

static enum wg_code reject_id(const char *folder, const char *id, struct wg_error *err)
{
    struct vgpu_machine_ids *ids = wg__alloc_zeroed(1, sizeof *ids);
    struct wg_buffer text;
    wg__buffer_init(&text);
    enum wg_code code = WG_ENOMEM;
    if (ids != NULL && vgpu_machine_list(ids, folder, err) == WG_OK) {
        for (size_t i = 0; i < ids->count; i++)
            wg__buffer_printf(&text, "%s%s", i > 0 ? ", " : "", ids->ids[i]);
        if (ids->count > 0 && !text.failed)
            code = wg__fail(err, WG_ENOENT, "'%s' is no shipped machine (%s) and no path of a file",
                            id, text.data);
        else if (!text.failed)
            code = wg__fail(err, WG_ENOENT, "'%s': %s holds no machine files", id, folder);
    } else if (ids != NULL) {
        code = WG_ENOENT;
    }
    if (code == WG_ENOMEM)
        (void)wg__fail(err, WG_ENOMEM, "out of memory while looking for the machine '%s'", id);
    wg__buffer_fini(&text);
    wg__free(ids);
    return code;
}

static bool is_path(const char *text)
{
    const size_t length = strlen(text);
    return strchr(text, '/') != NULL || (length > 5 && strcmp(text + length - 5, ".yaml") == 0) ||
           (length > 4 && strcmp(text + length - 4, ".yml") == 0);
}

static enum wg_code read_machine(struct vgpu_description *out, const char *folder,
                                 const char *id_or_path, unsigned depth, struct wg_error *err)
{
    if (is_path(id_or_path))
        return read_file(out, folder, id_or_path, depth, err);
    char path[PATH_MAX_BYTES];
    const int length = snprintf(path, sizeof path, "%s/%s.yaml", folder, id_or_path);
    if (length < 0 || (size_t)length >= sizeof path)
        return reject_id(folder, id_or_path, err);
    if (access(path, F_OK) == 0)
        return read_file(out, folder, path, depth, err);
    /* The shipped ids are lower case; the GPUs' names on paper are not: "V100". */
    for (char *c = path + strlen(folder); *c != '\0'; c++)
        *c = *c >= 'A' && *c <= 'Z' ? (char)(*c - 'A' + 'a') : *c;
    if (access(path, F_OK) == 0)
        return read_file(out, folder, path, depth, err);
    return reject_id(folder, id_or_path, err);
}

enum wg_code vgpu_machine_read(struct vgpu_description *out, const char *folder,
                               const char *id_or_path, struct wg_error *err)
{
    return read_machine(out, folder, id_or_path, 0, err);
}

void vgpu_description_fini(struct vgpu_description *description)
{
    wg__free(description->models);
    *description = (struct vgpu_description){0};
}

enum wg_code vgpu_description_append(struct vgpu_description *base,
                                     const struct vgpu_description *other, struct wg_error *err)
{
    if (other->count > VGPU_GPUS_MAX - base->count)
        return wg__fail(err, WG_EINVAL, "%zu GPUs are more than the %d that a machine has",
                        base->count + other->count, VGPU_GPUS_MAX);
    const struct vgpu_description before = *base;
    if (base->count == 0) {
        *base = *other;
        base->models = NULL;
        base->count = 0;
    } else {
        (void)snprintf(base->id, sizeof base->id, "%.47s+%.47s", before.id, other->id);
        base->anyone_may_set = before.anyone_may_set || other->anyone_may_set;
    }
    for (size_t i = 0; i < other->count; i++) {
        const enum wg_code code = add_models(base, &other->models[i], 1, err);
        if (code != WG_OK)
            return code;
    }
    return WG_OK;
}

static int compare_ids(const void *a, const void *b)
{
    return strcmp(a, b);
}

enum wg_code vgpu_machine_list(struct vgpu_machine_ids *out, const char *folder,
                               struct wg_error *err)
{
    DIR *entries = opendir(folder);
    if (entries == NULL)
        return wg__fail_errno(err, errno, "cannot list the machines in %s", folder);
    out->count = 0;
    for (;;) {
        const struct dirent *entry = readdir(entries);
        if (entry == NULL || out->count == VGPU_MACHINES_MAX)
            break;
        const size_t length = strlen(entry->d_name);
        if (length <= 5 || length - 5 >= VGPU_TEXT_MAX || entry->d_name[0] == '.' ||
            strcmp(entry->d_name + length - 5, ".yaml") != 0)
            continue;
        (void)snprintf(out->ids[out->count++], VGPU_TEXT_MAX, "%.*s", (int)(length - 5),
                       entry->d_name);
    }
    (void)closedir(entries);
    qsort(out->ids, out->count, sizeof out->ids[0], compare_ids);
    return WG_OK;
}
