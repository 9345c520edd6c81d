/* SPDX-License-Identifier: MIT
 *
 * The virtual machine's file: several processes at once, a holder of the lock that is killed, a
 * load whose process ends, and files that are no machine.
 */
#include "vgpu/state.h"

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/clock.h"
#include "base/rng.h"
#include "support/check.h"
#include "support/vgpu.h"

static uint64_t after(const struct vgpu_stage *stage, double seconds)
{
    return stage->begin_ns + (uint64_t)llround(seconds * 1e9);
}

static void the_load_of_a_process_that_ended_vanishes(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 1);
    struct vgpu_gpu *gpu = &stage.machine->gpus[0];
    const pid_t child = fork();
    if (child == 0) {
        const struct vgpu_load load = {.utilization = 1.0, .intensity = 1.0};
        _exit(vgpu_set_load(gpu, &load, NULL) == WG_OK ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    check_close(gpu->power_w, 500.0, 1e-12);
    vgpu_stage_pass(&stage, 0, 0.04); /* nobody has looked yet */
    check_close(gpu->power_w, 500.0, 1e-12);
    vgpu_stage_pass(&stage, 0, 0.02);
    check_close(gpu->power_w, 100.0, 1e-12);
    vgpu_stage_close(&stage);
}

static void a_process_killed_with_the_lock_held_leaves_a_gpu_that_goes_on(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 1);
    struct vgpu_gpu *gpu = &stage.machine->gpus[0];
    const double before_j = vgpu_true_energy_j(gpu, after(&stage, 0.0));
    const pid_t child = fork();
    if (child == 0) {
        vgpu_lock(gpu);
        gpu->energy_j += 12345.0; /* half of a step is done */
        (void)raise(SIGKILL);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    vgpu_stage_load(&stage, 0, 1.0, 1.0);
    check_close(vgpu_true_energy_j(gpu, after(&stage, 1.0)) - before_j, 500.0, 1e-9);
    vgpu_stage_close(&stage);
}

/* Work of one process among many: changes its load and its limit, and reads what must not fall. */
static int disturb(struct vgpu_machine *machine, uint64_t seed)
{
    struct wg_rng rng;
    wg__rng_init(&rng, seed);
    struct vgpu_gpu *gpu = &machine->gpus[0];
    uint64_t last_mj = 0;
    for (int i = 0; i < 300; i++) {
        const struct vgpu_load load = {.utilization = wg__rng_uniform(&rng), .intensity = 1.0};
        if (vgpu_set_load(gpu, &load, NULL) != WG_OK)
            return 1;
        vgpu_set_limit(gpu, 150.0 + 350.0 * wg__rng_uniform(&rng));
        vgpu_lock(gpu);
        const uint64_t now_ns = wg__clock_ns();
        vgpu_advance(gpu, now_ns);
        const uint64_t counted_mj = vgpu_counter_mj(gpu, now_ns);
        vgpu_unlock(gpu);
        if (counted_mj < last_mj)
            return 2;
        last_mj = counted_mj;
    }
    return 0;
}

/* Each segment begins with the energy that the one before ends with. */
static void check_ring(const struct vgpu_gpu *gpu)
{
    assert_true(gpu->segment_count <= VGPU_SEGMENTS_MAX);
    for (uint64_t i = 1; i < gpu->segment_count; i++) {
        const struct vgpu_segment *a = &gpu->segments[i - 1];
        const struct vgpu_segment *b = &gpu->segments[i];
        assert_true(b->t_ns > a->t_ns);
        check_close_abs(b->energy_j, a->energy_j + a->power_w * (double)(b->t_ns - a->t_ns) * 1e-9,
                        1e-12, 1e-9);
    }
}

static void energy_is_conserved_while_many_processes_write_and_read(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    const struct vgpu_model model = vgpu_stage_model(0);
    struct vgpu_machine *machine = NULL;
    const char *path = scratch_path(&scratch, "machine");
    assert_int_equal(vgpu_create(&machine, path, "test", &model, 1, NULL), WG_OK);
    pid_t children[6];
    for (size_t i = 0; i < 6; i++) {
        children[i] = fork();
        if (children[i] == 0) {
            struct vgpu_machine *own = NULL; /* as a program that was started apart would */
            if (vgpu_map(&own, path, NULL) != WG_OK)
                _exit(3);
            _exit(disturb(own, i));
        }
    }
    for (size_t i = 0; i < 6; i++) {
        int status = -1;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    check_ring(&machine->gpus[0]);
    vgpu_unmap(machine);
    scratch_close(&scratch);
}

static void the_file_belongs_to_its_owner_alone(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 1);
    struct stat status;
    assert_int_equal(stat(stage.path, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    vgpu_stage_close(&stage);
}

static void two_mappings_see_the_same_machine(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 2);
    struct vgpu_machine *other = NULL;
    assert_int_equal(setenv("WATTGOV_VGPU", stage.path, 1), 0);
    assert_int_equal(vgpu_map_from_environment(&other, NULL), WG_OK);
    assert_ptr_not_equal(other, stage.machine);
    vgpu_set_limit(&stage.machine->gpus[1], 222.0);
    check_close(other->gpus[1].limit_w, 222.0, 0.0);
    check_close(other->gpus[0].limit_w, 500.0, 0.0);
    vgpu_unmap(other);
    assert_int_equal(unsetenv("WATTGOV_VGPU"), 0);
    struct wg_error err = {0};
    assert_int_equal(vgpu_map_from_environment(&other, &err), WG_ENOENT);
    assert_string_equal(err.text, "WATTGOV_VGPU names no virtual machine");
    vgpu_stage_close(&stage);
}

static void a_machine_made_anew_leaves_the_old_one_to_whoever_has_it(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 1);
    const struct vgpu_model models[2] = {vgpu_stage_model(0), vgpu_stage_model(1)};
    struct vgpu_machine *other = NULL;
    assert_int_equal(vgpu_create(&other, stage.path, "new", models, 2, NULL), WG_OK);
    assert_int_equal(other->gpu_count, 2);
    assert_string_equal(other->id, "new");
    assert_int_equal(stage.machine->gpu_count, 1);
    vgpu_unmap(other);
    vgpu_stage_close(&stage);
}

static void expect_no_map(const char *path, enum wg_code code, const char *part)
{
    struct vgpu_machine *machine = NULL;
    struct wg_error err = {0};
    assert_int_equal(vgpu_map(&machine, path, &err), code);
    assert_null(machine);
    if (strstr(err.text, part) == NULL)
        fail_msg("'%s' does not say '%s'", err.text, part);
}

static void a_file_that_is_no_machine_is_refused_in_words(void **state)
{
    (void)state;
    struct vgpu_stage stage;
    vgpu_stage_open(&stage, 1);
    expect_no_map("/nonexistent/machine", WG_ENOENT, "opening the virtual machine '/nonexistent");
    const char *path = scratch_path(&stage.scratch, "short");
    scratch_write(path, "wattgov-vgpu 2", 15);
    expect_no_map(path, WG_EDATA, "it has 15 bytes, not ");
    stage.machine->gpu_count++; /* would reach behind the end of the file */
    expect_no_map(stage.path, WG_EDATA, "and its own size");
    stage.machine->gpu_count--;
    stage.machine->magic[13] = '0'; /* an older one of the same size */
    expect_no_map(stage.path, WG_EDATA, "does not begin with 'wattgov-vgpu 2'");
    expect_no_map("/dev/null", WG_EDATA, "is no virtual machine");
    expect_no_map(stage.scratch.folder, WG_EIO, "opening the virtual machine");
    vgpu_stage_close(&stage);
}

static void the_file_has_all_its_blocks_and_room_for_no_more_gpus_than_there_are(void **state)
{
    (void)state;
    struct stat one, two;
    for (size_t count = 1; count <= 2; count++) {
        struct vgpu_stage stage;
        vgpu_stage_open(&stage, count);
        assert_int_equal(stat(stage.path, count == 1 ? &one : &two), 0);
        vgpu_stage_close(&stage);
    }
    assert_true(one.st_blocks * 512 >= one.st_size);
    assert_true(two.st_blocks * 512 >= two.st_size);
    assert_int_equal(two.st_size - one.st_size, sizeof(struct vgpu_gpu));
    assert_true(one.st_size < 1 << 20);
}

/* A limit on the size of files stands for a full disk, which needs a file system of our own. */
static void a_machine_that_the_disk_has_no_room_for_is_told_and_leaves_nothing(void **state)
{
    (void)state;
    struct scratch scratch;
    scratch_open(&scratch);
    const struct vgpu_model model = vgpu_stage_model(0);
    struct vgpu_machine *machine = NULL;
    struct rlimit before;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &(struct rlimit){65536, before.rlim_max}), 0);
    struct wg_error err = {0};
    const enum wg_code code =
        vgpu_create(&machine, scratch_path(&scratch, "machine"), "test", &model, 1, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, handler);
    assert_int_equal(code, WG_EIO);
    assert_null(machine);
    assert_non_null(strstr(err.text, "bytes of the virtual machine '"));
    assert_non_null(strstr(err.text, "File too large"));
    assert_int_equal(scratch_count(&scratch), 0);
    scratch_close(&scratch);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_load_of_a_process_that_ended_vanishes),
        cmocka_unit_test(a_process_killed_with_the_lock_held_leaves_a_gpu_that_goes_on),
        cmocka_unit_test(energy_is_conserved_while_many_processes_write_and_read),
        cmocka_unit_test(the_file_belongs_to_its_owner_alone),
        cmocka_unit_test(two_mappings_see_the_same_machine),
        cmocka_unit_test(a_machine_made_anew_leaves_the_old_one_to_whoever_has_it),
        cmocka_unit_test(a_file_that_is_no_machine_is_refused_in_words),
        cmocka_unit_test(the_file_has_all_its_blocks_and_room_for_no_more_gpus_than_there_are),
        cmocka_unit_test(a_machine_that_the_disk_has_no_room_for_is_told_and_leaves_nothing),
    };
    return run_tests(tests);
}
