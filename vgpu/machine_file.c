/* SPDX-License-Identifier: MIT
 *
 * Reading a machine file by libcyaml's schema.
 *
 * libcyaml reports through a log function: first what is wrong, then a backtrace from the inner to
 * the outer place. We keep the first line of each. Its memory comes from base/alloc.h, so tests can
 * walk its failures; libyaml's own does not.
 *
 * The place of a key that is well-formed but wrong is found again in the text, by indentation, as
 * people write such files; in a file of flow style ({...}) it is the place of the list.
 */
#include "vgpu/machine_file.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cyaml/cyaml.h>

#include "base/alloc.h"
#include "base/number.h"

enum { FILE_MAX_BYTES = 1 << 20, MESSAGE_MAX = 256 };

#define OPTIONAL_PTR      (CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL)
#define TEXT(type, key)   CYAML_FIELD_STRING_PTR(#key, OPTIONAL_PTR, type, key, 1, VGPU_TEXT_MAX - 1)
#define NUMBER(type, key) CYAML_FIELD_FLOAT_PTR(#key, OPTIONAL_PTR, type, key)
#define SWITCH(type, key) CYAML_FIELD_BOOL_PTR(#key, OPTIONAL_PTR, type, key)

static const cyaml_schema_field_t sensor_fields[] = {
    NUMBER(struct vgpu_file_sensor, period_ms), NUMBER(struct vgpu_file_sensor, window_ms),
    NUMBER(struct vgpu_file_sensor, gain), NUMBER(struct vgpu_file_sensor, offset_w),
    CYAML_FIELD_END};

static const cyaml_schema_field_t mig_fields[] = {
    CYAML_FIELD_STRING_PTR("profile", CYAML_FLAG_POINTER, struct vgpu_file_mig, profile, 1, 31),
    TEXT(struct vgpu_file_mig, uuid), CYAML_FIELD_END};

static const cyaml_schema_value_t mig_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct vgpu_file_mig, mig_fields)};
static const cyaml_schema_value_t clock_entry = {CYAML_VALUE_FLOAT(CYAML_FLAG_DEFAULT, double)};

static const cyaml_schema_field_t gpu_fields[] = {
    TEXT(struct vgpu_file_gpu, like),
    CYAML_FIELD_UINT_PTR("count", OPTIONAL_PTR, struct vgpu_file_gpu, count),
    TEXT(struct vgpu_file_gpu, name),
    TEXT(struct vgpu_file_gpu, uuid),
    TEXT(struct vgpu_file_gpu, pci_address),
    TEXT(struct vgpu_file_gpu, architecture),
    TEXT(struct vgpu_file_gpu, compute_capability),
#define X(key, member, factor, min, max, required) NUMBER(struct vgpu_file_gpu, key),
    VGPU_FILE_NUMBERS(X)
#undef X
#define X(key) SWITCH(struct vgpu_file_gpu, key),
        VGPU_FILE_SWITCHES(X)
#undef X
#define X(key)                                                                                     \
    CYAML_FIELD_MAPPING_PTR(#key, OPTIONAL_PTR, struct vgpu_file_gpu, key, sensor_fields),
            VGPU_FILE_SENSORS(X)
#undef X
                NUMBER(struct vgpu_file_gpu, clock_min_mhz),
    NUMBER(struct vgpu_file_gpu, clock_max_mhz),
    NUMBER(struct vgpu_file_gpu, clock_step_mhz),
    CYAML_FIELD_SEQUENCE("clocks_mhz", OPTIONAL_PTR, struct vgpu_file_gpu, clocks_mhz, &clock_entry,
                         1, VGPU_CLOCKS_MAX),
    CYAML_FIELD_SEQUENCE("memory_clocks_mhz", OPTIONAL_PTR, struct vgpu_file_gpu, memory_clocks_mhz,
                         &clock_entry, 1, VGPU_MEMORY_CLOCKS_MAX),
    CYAML_FIELD_SEQUENCE("mig", OPTIONAL_PTR, struct vgpu_file_gpu, mig, &mig_entry, 0,
                         VGPU_MIG_MAX),
    CYAML_FIELD_END};

static const cyaml_schema_value_t gpu_entry = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_DEFAULT, struct vgpu_file_gpu, gpu_fields)};

static const cyaml_schema_field_t machine_fields[] = {
    CYAML_FIELD_STRING_PTR("id", CYAML_FLAG_POINTER, struct vgpu_file_machine, id, 1,
                           VGPU_TEXT_MAX - 1),
    CYAML_FIELD_STRING_PTR("driver", CYAML_FLAG_POINTER, struct vgpu_file_machine, driver, 1,
                           VGPU_TEXT_MAX - 1),
    TEXT(struct vgpu_file_machine, nvml_version),
    CYAML_FIELD_FLOAT_PTR("cuda_version", CYAML_FLAG_POINTER, struct vgpu_file_machine,
                          cuda_version),
    SWITCH(struct vgpu_file_machine, anyone_may_set),
    CYAML_FIELD_SEQUENCE("gpus", CYAML_FLAG_POINTER, struct vgpu_file_machine, gpus, &gpu_entry, 1,
                         VGPU_GPUS_MAX),
    CYAML_FIELD_END};

static const cyaml_schema_value_t machine_schema = {
    CYAML_VALUE_MAPPING(CYAML_FLAG_POINTER, struct vgpu_file_machine, machine_fields)};

struct place {
    unsigned line, column; /* 0: not found */
};

/* What libcyaml said: the first message, and the first place of the backtrace. */
struct complaint {
    char message[MESSAGE_MAX], place[MESSAGE_MAX];
};

static void keep_line(char out[MESSAGE_MAX], const char *text)
{
    if (out[0] != '\0')
        return;
    text += strspn(text, " ");
    (void)snprintf(out, MESSAGE_MAX, "%.*s", (int)strcspn(text, "\n"), text);
}

static void hear(cyaml_log_t level, void *context, const char *format, va_list args)
    __attribute__((format(printf, 3, 0)));

static void hear(cyaml_log_t level, void *context, const char *format, va_list args)
{
    struct complaint *complaint = context;
    char line[MESSAGE_MAX];
    if (level < CYAML_LOG_ERROR || wg__format(line, sizeof line, format, args) < 0)
        return;
    static const char prefix[] = "Load: ";
    const char *text = line;
    if (strncmp(text, prefix, sizeof prefix - 1) == 0)
        text += sizeof prefix - 1;
    if (strstr(text, "Backtrace") != NULL)
        return;
    const char *place = strstr(text, "(line: ");
    if (place != NULL)
        keep_line(complaint->place, place);
    if (place == NULL || text[0] != ' ')
        keep_line(complaint->message, text);
}

static void *allocate(void *context, void *block, size_t size)
{
    (void)context;
    if (size == 0) {
        wg__free(block);
        return NULL;
    }
    return wg__realloc_array(block, 1, size);
}

static cyaml_config_t make_config(struct complaint *complaint)
{
    return (cyaml_config_t){.log_fn = hear,
                            .log_ctx = complaint,
                            .log_level = CYAML_LOG_ERROR,
                            .mem_fn = allocate,
                            .flags = CYAML_CFG_NO_ALIAS};
}

/* The number after `label` in libcyaml's "(line: 3, column: 5)"; 0: there is none. */
static unsigned number_after(const char *text, const char *label)
{
    const char *found = strstr(text, label);
    if (found == NULL)
        return 0;
    found += strlen(label);
    char digits[16];
    uint64_t number = 0;
    (void)snprintf(digits, sizeof digits, "%.*s", (int)strspn(found, "0123456789"), found);
    return wg__parse_uint64(digits, &number) && number < 1000000 ? (unsigned)number : 0;
}

/* What libcyaml says, and our words for it around the text that follows. */
static const struct {
    const char *theirs, *before, *after;
    bool is_key; /* the text is a key whose place is to be found */
} words[] = {
    {"Unexpected key: ", "unknown key '", "'", true},
    {"Mapping field already seen: ", "'", "' was given already", false},
    {"Missing required mapping field: ", "'", "' is missing", false},
    {"Invalid FLOAT value: ", "'", "' is not a number", false},
    {"Invalid UINT value: ", "", " is not a whole number", false},
    {"Invalid uint64_t value: ", "", " is not a whole number", false},
    {"Expecting MAPPING, got event: ", "expected keys with values (KEY: VALUE), not ", "", false},
    {"Expecting SEQUENCE, got event: ", "expected a list, not ", "", false},
    {"Expecting SCALAR, got event: ", "expected one value, not ", "", false},
    {"YAML alias unsupported", "anchors and aliases are not supported", "", false},
};

/* The first line from `first` on that holds `key`, or {first, column}. */
static struct place find_key_after(const char *text, const char *key, struct place first)
{
    assert(text != NULL); /* parsing comes after reading */
    unsigned number = 0;
    const size_t key_length = strlen(key);
    for (const char *line = text; *line != '\0'; line += *line == '\n') {
        number++;
        const size_t start = strspn(line, " -");
        if (number >= first.line && strncmp(line + start, key, key_length) == 0 &&
            line[start + key_length] == ':')
            return (struct place){number, (unsigned)start + 1};
        line += strcspn(line, "\n");
    }
    return first;
}

static enum wg_code report(const struct vgpu_file *file, const struct complaint *complaint,
                           cyaml_err_t code, struct wg_error *err)
{
    if (code == CYAML_ERR_OOM)
        return wg__fail(err, WG_ENOMEM, "out of memory while reading %s", file->path);
    const char *before = "", *after = "";
    const char *message = complaint->message[0] != '\0' ? complaint->message : cyaml_strerror(code);
    struct place place = {number_after(complaint->place, "line: "),
                          number_after(complaint->place, "column: ")};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t length = strlen(words[i].theirs);
        if (strncmp(message, words[i].theirs, length) != 0)
            continue;
        before = words[i].before;
        after = words[i].after;
        message += length;
        /* Of a key it knows only where the one before it stood. */
        if (words[i].is_key)
            place = find_key_after(file->text, message, place);
        break;
    }
    if (place.line == 0)
        return wg__fail(err, WG_EDATA, "%s: %s%s%s", file->path, before, message, after);
    return wg__fail(err, WG_EDATA, "%s:%u:%u: %s%s%s", file->path, place.line, place.column, before,
                    message, after);
}

/* Fills `file->text` from an open descriptor. */
static enum wg_code read_text(struct vgpu_file *file, int fd, struct wg_error *err)
{
    struct stat status;
    if (fstat(fd, &status) != 0)
        return wg__fail_errno(err, errno, "cannot read %s", file->path);
    if (!S_ISREG(status.st_mode))
        return wg__fail(err, WG_EDATA, "%s: is no regular file", file->path);
    if (status.st_size > FILE_MAX_BYTES)
        return wg__fail(err, WG_EDATA, "%s: is larger than %d bytes", file->path, FILE_MAX_BYTES);
    const size_t size = (size_t)status.st_size;
    file->text = wg__alloc(size + 1);
    if (file->text == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory while reading %s", file->path);
    while (file->length < size) {
        const ssize_t got = read(fd, file->text + file->length, size - file->length);
        if (got < 0 && errno != EINTR)
            return wg__fail_errno(err, errno, "cannot read %s", file->path);
        if (got == 0)
            break;
        if (got > 0)
            file->length += (size_t)got;
    }
    file->text[file->length] = '\0';
    return WG_OK;
}

/* Parses `file->text`. */
static enum wg_code parse(struct vgpu_file *file, struct wg_error *err)
{
    struct complaint complaint = {0};
    const cyaml_config_t config = make_config(&complaint);
    cyaml_data_t *data = NULL;
    const cyaml_err_t status = cyaml_load_data((const uint8_t *)file->text, file->length, &config,
                                               &machine_schema, &data, NULL);
    file->machine = (struct vgpu_file_machine *)data;
    if (status != CYAML_OK)
        return report(file, &complaint, status, err);
    if (file->machine == NULL)
        return wg__fail(err, WG_EDATA, "%s: holds no machine", file->path);
    return WG_OK;
}

static enum wg_code finish(struct vgpu_file *out, struct vgpu_file *file, enum wg_code code,
                           struct wg_error *err)
{
    if (code == WG_OK)
        code = parse(file, err);
    if (code != WG_OK) {
        vgpu_file_free(file);
        return code;
    }
    *out = *file;
    return WG_OK;
}

enum wg_code vgpu_file_read(struct vgpu_file *out, const char *path, struct wg_error *err)
{
    struct vgpu_file file = {.path = path};
    /* Not to wait for the writer of a pipe, which is refused below. */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
        return wg__fail_errno(err, errno, "cannot read %s", path);
    const enum wg_code code = read_text(&file, fd, err);
    (void)close(fd);
    return finish(out, &file, code, err);
}

enum wg_code vgpu_file_parse(struct vgpu_file *out, const char *name, const char *text,
                             size_t length, struct wg_error *err)
{
    struct vgpu_file file = {.path = name, .text = wg__alloc(length + 1), .length = length};
    if (file.text == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory while reading %s", name);
    memcpy(file.text, text, length);
    file.text[length] = '\0';
    return finish(out, &file, WG_OK, err);
}

void vgpu_file_free(struct vgpu_file *file)
{
    struct complaint complaint = {0};
    const cyaml_config_t config = make_config(&complaint);
    if (file->machine != NULL)
        (void)cyaml_free(&config, &machine_schema, file->machine, 0);
    wg__free(file->text);
    *file = (struct vgpu_file){0};
}

/* Where the list item `gpu` begins, and the key in it when it stands there on a line of its own. */
static struct place find_place(const struct vgpu_file *file, size_t gpu, const char *key)
{
    struct place place = {0};
    const size_t key_length = strlen(key);
    size_t items = 0, indent = 0;
    bool in_list = gpu == SIZE_MAX;
    unsigned number = 0;
    for (const char *line = file->text; *line != '\0'; line += *line == '\n') {
        number++;
        const size_t length = strcspn(line, "\n");
        size_t start = strspn(line, " ");
        const bool is_list = strncmp(line, "gpus:", 5) == 0;
        if (is_list && gpu != SIZE_MAX)
            place = (struct place){number, 1};
        if (in_list && gpu != SIZE_MAX && line[start] == '-' && (items == 0 || start == indent)) {
            indent = start;
            if (items++ == gpu)
                place = (struct place){number, (unsigned)start + 1};
            start += 1 + strspn(line + start + 1, " ");
        }
        in_list = in_list || is_list;
        const bool is_here = gpu == SIZE_MAX ? start == 0 : items == gpu + 1;
        if (is_here && strncmp(line + start, key, key_length) == 0 &&
            line[start + key_length] == ':')
            return (struct place){number, (unsigned)start + 1};
        line += length;
    }
    return place;
}

enum wg_code vgpu_file_reject(const struct vgpu_file *file, size_t gpu, const char *key,
                              struct wg_error *err, const char *format, ...)
{
    char text[MESSAGE_MAX], where[64] = "", which[32] = "";
    va_list args;
    va_start(args, format);
    (void)wg__format(text, sizeof text, format, args);
    va_end(args);
    const struct place place = find_place(file, gpu, key);
    if (place.line != 0)
        (void)snprintf(where, sizeof where, ":%u:%u", place.line, place.column);
    if (gpu != SIZE_MAX)
        (void)snprintf(which, sizeof which, "gpus[%zu]: ", gpu);
    return wg__fail(err, WG_EDATA, "%s%s: %s%s: %s", file->path, where, which, key, text);
}
