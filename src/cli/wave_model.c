/* SPDX-License-Identifier: MIT
 *
 * From a word to a network; see wave_model.h.
 */
#include "cli/wave_model.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buffer.h"
#include "base/number.h"
#include "cli/command.h"
#include "model/built_in.h"
#include "model/lower.h"
#include "model/onnx.h"
#include "model/shapes.h"
#include "wave/staircase.h"

enum { SNIFF_BYTES = 64, DIM_NAME_SIZE = 256, BUILT_IN_MAX = 64 };

enum wg_code wg__wave_model_take(const struct wg_option_set *set, int *argc, char ***argv,
                                 struct wg_wave_model_args *args, struct wg_error *err)
{
    wg__options_words_first(set, *argc, *argv);
    args->word = wg__command_word(argc, argv);
    if (args->word == NULL || args->word[0] == '\0')
        return wg__fail(err, WG_EINVAL,
                        "which model? Give a file (ONNX, TensorRT's graph.json, a profile) or the "
                        "name of a network, as in resnet50");
    return WG_OK;
}

/* -- What the word means ---------------------------------------------------------------------- */

static bool is_built_in(const char *word)
{
    for (size_t i = 0; i < wg__built_in_count(); i++)
        if (strcmp(wg__built_in_name(i), word) == 0)
            return true;
    return false;
}

/* "m.onnx: cannot open: ..."; for a word that looks like a name, the names that there are. */
static enum wg_code fail_missing(const char *word, struct wg_error *err)
{
    const char *names[BUILT_IN_MAX];
    const size_t count = wg__built_in_count();
    char list[160] = "";
    if (strpbrk(word, "/.") != NULL)
        return wg__fail_errno(err, ENOENT, "%s: cannot open", word);
    assert(count <= BUILT_IN_MAX);
    for (size_t i = 0; i < count; i++) {
        const size_t length = strlen(list);
        names[i] = wg__built_in_name(i);
        (void)snprintf(list + length, sizeof list - length, "%s%s", i > 0 ? ", " : "", names[i]);
    }
    const char *nearest = wg__nearest_word(word, names, count);
    if (nearest != NULL)
        return wg__fail(err, WG_ENOENT, "%.100s: no such file or network; did you mean '%s'?", word,
                        nearest);
    return wg__fail(err, WG_ENOENT, "%.40s: no such file, and no network that is built in (%s)",
                    word, list);
}

/* What a file begins with. What is no plain file (a pipe) can only be read once: no bytes. */
struct beginning {
    bool is_plain;
    size_t length;
    unsigned char bytes[SNIFF_BYTES];
};

static enum wg_code read_beginning(const char *path, struct beginning *out, struct wg_error *err)
{
    struct stat status;
    *out = (struct beginning){0};
    if (stat(path, &status) == 0 && S_ISFIFO(status.st_mode))
        return WG_OK; /* opening and closing a pipe would end what is written into it */
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return errno == ENOENT ? fail_missing(path, err)
                               : wg__fail_errno(err, errno, "%s: cannot open", path);
    enum wg_code code = WG_OK;
    if (fstat(fd, &status) != 0) {
        code = wg__fail_errno(err, errno, "%s: cannot read", path);
    } else if (S_ISDIR(status.st_mode)) {
        code = wg__fail(err, WG_EIO, "%s: is a folder, expected a file", path);
    } else if (S_ISREG(status.st_mode)) {
        const ssize_t got = read(fd, out->bytes, sizeof out->bytes);
        out->is_plain = true;
        out->length = got > 0 ? (size_t)got : 0;
        if (got < 0)
            code = wg__fail_errno(err, errno, "%s: cannot read", path);
        else if (got == 0)
            code = wg__fail(err, WG_EDATA, "%s: the file is empty", path);
    }
    (void)close(fd);
    return code;
}

/* Whether it is text (JSON, CSV) or gzip: ONNX begins with a control character, and a pipe cannot
 * be mapped. */
static bool is_profile(const struct beginning *of)
{
    if (!of->is_plain || (of->length >= 2 && of->bytes[0] == 0x1f && of->bytes[1] == 0x8b))
        return true;
    for (size_t i = 0; i < of->length; i++) {
        const unsigned char byte = of->bytes[i];
        if (byte < ' ' && byte != '\t' && byte != '\r' && byte != '\n')
            return false;
    }
    return true;
}

/* -- A graph ---------------------------------------------------------------------------------- */

static enum wg_code set_dim(struct wg_model *graph, const char *text, struct wg_error *err)
{
    const char *const equals = strrchr(text, '=');
    char name[DIM_NAME_SIZE];
    uint64_t value = 0;
    if (equals == NULL || equals == text || (size_t)(equals - text) >= sizeof name ||
        !wg__parse_uint64(equals + 1, &value) || value < 1 || value > INT32_MAX)
        return wg__option_reject(err, "set-dim", text,
                                 "NAME=VALUE with a whole number from 1 to 2147483647, as in "
                                 "sequence=128");
    memcpy(name, text, (size_t)(equals - text));
    name[equals - text] = '\0';
    struct wg_error cause;
    const enum wg_code code = wg__shapes_set_dim(graph, name, (int64_t)value, &cause);
    return code == WG_OK ? WG_OK : wg__fail(err, code, "--set-dim: %s", cause.text);
}

/* Gives the inputs' first dimensions the batch where they are open; `*batch_out`: what they are
 * then, 0 where there are none. */
static enum wg_code set_batch(struct wg_model *graph, unsigned batch, uint64_t *batch_out,
                              struct wg_error *err)
{
    const struct wg_graph *of = graph->graph;
    *batch_out = 0;
    for (size_t i = 0; i < of->input_count; i++) {
        const struct wg_tensor *input = &of->tensors[of->inputs[i]];
        if (!input->shape.is_known || input->shape.rank == 0)
            continue;
        const struct wg_dim *first = &input->shape.dims[0];
        char axis[DIM_NAME_SIZE];
        if (first->value == WG_DIM_UNKNOWN) {
            const int length = snprintf(axis, sizeof axis, "%s:0", input->name);
            const bool fits = length > 0 && (size_t)length < sizeof axis;
            const char *name = first->name != NULL ? first->name : axis;
            if (first->name == NULL && !fits)
                return wg__fail(err, WG_EDATA, "input '%.100s...': its name is too long",
                                input->name);
            const enum wg_code code =
                wg__shapes_set_dim(graph, name, batch > 0 ? (int64_t)batch : 1, err);
            if (code != WG_OK)
                return code;
        }
        if (*batch_out == 0)
            *batch_out = (uint64_t)first->value;
    }
    return WG_OK;
}

/* A model whose batch is a number, at another one: what counts samples grows in each layer. */
static enum wg_code rescale(struct wg_wave_model *out, unsigned batch, struct wg_error *err)
{
    struct wg_network *network = &out->lowered;
    if (out->batch == 0)
        return wg__fail(err, WG_EINVAL, "--batch: no input of %s has a batch", out->name);
    for (size_t i = 0; i < network->layer_count; i++) {
        struct wg_layer *layer = &network->layers[i];
        const enum wg_code code =
            wg__layer_resize(layer, WG_SWEEP_BATCH, out->batch, batch, layer, err);
        if (code != WG_OK)
            return code;
    }
    out->batch = batch;
    return WG_OK;
}

/* The model's room knows of no options. */
static void name_set_dim(struct wg_error *err)
{
    static const char asked[] = "; give it a value", how[] = " with --set-dim NAME=VALUE";
    const size_t length = strlen(err->text), tail = strlen(asked);
    if (length >= tail && length + sizeof how <= sizeof err->text &&
        strcmp(err->text + length - tail, asked) == 0)
        memcpy(err->text + length, how, sizeof how);
}

static enum wg_code lower_graph(struct wg_wave_model *out, const struct wg_wave_model_args *args,
                                struct wg_error *err)
{
    enum wg_code code = WG_OK;
    out->dtype = WG_DTYPE_FP16;
    if (args->precision != NULL)
        code = wg__dtype_parse(args->precision, &out->dtype, err);
    for (size_t i = 0; i < args->dims.count && code == WG_OK; i++)
        code = set_dim(out->graph, args->dims.items[i], err);
    if (code == WG_OK)
        code = set_batch(out->graph, args->batch, &out->batch, err);
    if (code == WG_OK)
        code = wg__shapes_infer(out->graph, err);
    const struct wg_lower_opts opts = {.dtype = out->dtype, .batch = out->batch};
    if (code == WG_OK && !args->is_graph_only)
        code = wg__lower(&out->lowered, out->graph, &opts, err);
    if (code != WG_OK)
        name_set_dim(err);
    out->network = &out->lowered;
    if (code == WG_OK && args->batch > 0 && out->batch != args->batch)
        code = rescale(out, args->batch, err);
    return code;
}

/* -- A profile -------------------------------------------------------------------------------- */

static enum wg_code read_profile(struct wg_wave_model *out, const struct wg_wave_model_args *args,
                                 struct wg_error *err)
{
    const char *given = args->batch > 0           ? "batch"
                        : args->dims.count > 0    ? "set-dim"
                        : args->precision != NULL ? "precision"
                                                  : NULL;
    if (given != NULL)
        return wg__fail(err, WG_EINVAL, "--%s: %s is a profile, whose sizes are what was measured",
                        given, args->word);
    const enum wg_code code = wg__profile_read(&out->read, args->word, args->times, err);
    if (code != WG_OK)
        return code;
    out->profile = &out->read;
    out->kind = wg__profile_kind_name(out->read.kind);
    out->batch = out->read.batch;
    out->network = &out->read.network;
    return WG_OK;
}

/* -- Opening ---------------------------------------------------------------------------------- */

enum wg_code wg__wave_model_open(struct wg_wave_model *out, const struct wg_wave_model_args *args,
                                 struct wg_error *err)
{
    const char *const slash = strrchr(args->word, '/');
    struct beginning beginning = {0};
    enum wg_code code = WG_OK;
    out->name = slash != NULL && slash[1] != '\0' ? slash + 1 : args->word;
    const bool is_name = is_built_in(args->word);
    if (!is_name)
        code = read_beginning(args->word, &beginning, err);
    const bool has_profile = !is_name && is_profile(&beginning);
    if (code == WG_OK && args->times != NULL && !has_profile)
        code = wg__fail(err, WG_EINVAL, "--times: %s is no profile, which the times could be of",
                        args->word);
    if (code != WG_OK)
        return code;
    if (has_profile)
        return read_profile(out, args, err);
    out->kind = is_name ? "built-in" : "onnx";
    code = is_name ? wg__built_in_open(&out->graph, args->word, err)
                   : wg__onnx_open(&out->graph, args->word, err);
    return code == WG_OK ? lower_graph(out, args, err) : code;
}

bool wg__wave_left_out_text(const struct wg_wave_model *model, struct wg_buffer *out)
{
    const size_t count = model->network->left_out_count;
    if (count == 0)
        return false;
    wg__buffer_printf(out,
                      "%zu node%s in no layer and no total: bodies of loops, or sizes that are not "
                      "known",
                      count, count == 1 ? " is" : "s are");
    return true;
}

void wg__wave_model_close(struct wg_wave_model *model)
{
    wg__network_fini(&model->lowered);
    wg__profile_fini(&model->read);
    wg__model_close(model->graph);
    *model = (struct wg_wave_model){0};
}
