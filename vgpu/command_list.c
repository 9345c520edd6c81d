/* SPDX-License-Identifier: MIT
 *
 * `wattgov-vgpu list`: the machines that are shipped.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/json.h"
#include "cli/options.h"
#include "cli/table.h"
#include "vgpu/machine.h"
#include "vgpu/program.h"

struct args {
    bool json;
};

static const struct wg_option options[] = {
    {.name = "json", WG_OPTION_FLAG(struct args, json), .help = "Write JSON."},
};

static const struct wg_option_set set = {
    .command = "wattgov-vgpu list",
    .summary = "Lists the shipped virtual machines, one a line.",
    .options = options,
    .count = sizeof options / sizeof options[0],
};

/* Same GPUs beside each other become one: "8 x NVIDIA H100 80GB HBM3". */
static void describe_gpus(const struct vgpu_description *machine, struct wg_buffer *out)
{
    for (size_t i = 0; i < machine->count;) {
        const char *name = machine->models[i].name;
        size_t same = 1;
        while (i + same < machine->count && machine->models[i + same].mig_count == 0 &&
               machine->models[i].mig_count == 0 &&
               strcmp(machine->models[i + same].name, name) == 0)
            same++;
        wg__buffer_puts(out, i > 0 ? " + " : "");
        if (same > 1)
            wg__buffer_printf(out, "%zu x ", same);
        wg__buffer_puts(out, name);
        if (machine->models[i].mig_count > 0)
            wg__buffer_printf(out, " in %zu MIG instances", machine->models[i].mig_count);
        i += same;
    }
}

static void write_json(struct wg_json *json, const struct vgpu_description *machine)
{
    wg__json_object(json);
    wg__json_member_string(json, "id", machine->id);
    wg__json_member_string(json, "driver", machine->driver);
    wg__json_key(json, "gpus");
    wg__json_array(json);
    for (size_t i = 0; i < machine->count; i++) {
        const struct vgpu_model *model = &machine->models[i];
        wg__json_object(json);
        wg__json_member_string(json, "name", model->name);
        wg__json_member_string(json, "uuid", model->uuid);
        wg__json_member_double(json, "idle_w", model->idle_w);
        wg__json_member_double(json, "load_w", model->load_w);
        wg__json_member_double(json, "limit_min_w", model->limit_min_w);
        wg__json_member_double(json, "limit_default_w", model->limit_default_w);
        wg__json_member_double(json, "limit_max_w", model->limit_max_w);
        wg__json_member_uint(json, "mig_instances", model->mig_count);
        wg__json_close(json);
    }
    wg__json_close(json);
    wg__json_close(json);
}

static void add_row(struct wg_table *table, const struct vgpu_description *machine)
{
    struct wg_buffer gpus;
    wg__buffer_init(&gpus);
    describe_gpus(machine, &gpus);
    const struct vgpu_model *first = &machine->models[0];
    wg__table_cell(table, "%s", machine->id);
    wg__table_cell(table, "%s", gpus.failed ? "" : gpus.data);
    wg__table_cell(table, "%g .. %g W", first->limit_min_w, first->limit_max_w);
    wg__table_cell(table, "%s", machine->driver);
    table->failed = table->failed || gpus.failed;
    wg__buffer_fini(&gpus);
}

static enum wg_code write_machines(bool is_json, struct wg_buffer *out, struct wg_error *err)
{
    char folder[VGPU_PATH_MAX];
    struct vgpu_machine_ids *ids = wg__alloc_zeroed(1, sizeof *ids);
    if (ids == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    enum wg_code code = vgpu_find_machines(folder, err);
    if (code == WG_OK)
        code = vgpu_machine_list(ids, folder, err);
    static const struct wg_table_column columns[] = {{"machine", WG_ALIGN_LEFT},
                                                     {"GPUs", WG_ALIGN_LEFT},
                                                     {"limits", WG_ALIGN_LEFT},
                                                     {"driver", WG_ALIGN_LEFT}};
    struct wg_table table;
    struct wg_json json;
    wg__table_init(&table, columns, sizeof columns / sizeof columns[0]);
    wg__json_init(&json, out);
    wg__json_object(&json);
    wg__json_member_string(&json, "schema", "wattgov.vgpu.list/1");
    wg__json_key(&json, "machines");
    wg__json_array(&json);
    for (size_t i = 0; i < ids->count && code == WG_OK; i++) {
        struct vgpu_description machine = {0};
        code = vgpu_machine_read(&machine, folder, ids->ids[i], err);
        if (code != WG_OK)
            break;
        write_json(&json, &machine);
        add_row(&table, &machine);
        vgpu_description_fini(&machine);
    }
    wg__json_close(&json);
    wg__json_close(&json);
    wg__buffer_puts(out, "\n");
    if (!is_json) {
        out->length = 0;
        wg__table_write(&table, wg__wants_color(stdout), out);
    }
    wg__table_fini(&table);
    wg__free(ids);
    return code;
}

static int run(int argc, char *argv[])
{
    struct args args = {0};
    int status = WG_EXIT_OK;
    if (!wg__command_begin(&set, argc, argv, &args, &status))
        return status;
    vgpu_sweep();
    struct wg_error err;
    struct wg_buffer text;
    wg__buffer_init(&text);
    enum wg_code code = write_machines(args.json, &text, &err);
    if (code == WG_OK)
        code = wg__command_print(stdout, &text, &err);
    wg__buffer_fini(&text);
    return code == WG_OK ? WG_EXIT_OK : wg__command_fail(&set, &err);
}

const struct wg_command vgpu_command_list = {
    .name = "list", .summary = "List the shipped virtual machines", .run = run};
