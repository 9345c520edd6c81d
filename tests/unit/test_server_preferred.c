/* SPDX-License-Identifier: MIT
 *
 * The list of preferred batches that Triton adds to a configuration by itself.
 */
#include <string.h>

#include "base/alloc.h"
#include "live/server_config.h"
#include "support/check.h"

/* What becomes of `base` when the knob at `path` gets `value`. */
static void expect_config(const char *base, const char *path, double value, const char *expected)
{
    const struct wg_workload_setting setting = {.name = "knob", .value = value};
    char *config = NULL;
    struct wg_error err = {0};
    if (wg__server_config_edit(&config, base, &path, &setting, 1, &err) != WG_OK)
        fail_msg("%s", err.text);
    assert_string_equal(config, expected);
    wg__free(config);
}

static const char told[] = /* as Triton 2.51 answers for a model whose file has no such list */
    "{\"max_batch_size\":8,\"dynamic_batching\":{\"preferred_batch_size\":[8],"
    "\"max_queue_delay_microseconds\":0}}";

static void the_servers_own_list_goes_with_the_batch(void **state)
{
    (void)state;
    expect_config(
        told, "max_batch_size", 4,
        "{\"max_batch_size\":4,\"dynamic_batching\":{\"max_queue_delay_microseconds\":0}}");
    expect_config(told, "max_batch_size", 16,
                  "{\"max_batch_size\":16,\"dynamic_batching\":{\"max_queue_delay_microseconds\":0}"
                  "}");
    expect_config(told, "max_batch_size", 8, told);
    expect_config(told, "dynamic_batching.max_queue_delay_microseconds", 500,
                  "{\"max_batch_size\":8,\"dynamic_batching\":{\"preferred_batch_size\":[8],"
                  "\"max_queue_delay_microseconds\":500}}");
}

static void a_list_of_the_user_keeps_what_is_possible(void **state)
{
    (void)state;
    static const char base[] =
        "{\"max_batch_size\":16,\"dynamic_batching\":{\"preferred_batch_size\":[2,4,12]}}";
    expect_config(base, "max_batch_size", 4,
                  "{\"max_batch_size\":4,\"dynamic_batching\":{\"preferred_batch_size\":[2,4]}}");
    expect_config(base, "max_batch_size", 32,
                  "{\"max_batch_size\":32,\"dynamic_batching\":{\"preferred_batch_size\":[2,4,12]}"
                  "}");
    expect_config(told, "dynamic_batching.preferred_batch_size[0]", 4,
                  "{\"max_batch_size\":8,\"dynamic_batching\":{\"preferred_batch_size\":[4],"
                  "\"max_queue_delay_microseconds\":0}}");
}

static void a_model_without_batching_is_left_alone(void **state)
{
    (void)state;
    expect_config("{\"max_batch_size\":8}", "max_batch_size", 4, "{\"max_batch_size\":4}");
    expect_config("{}", "max_batch_size", 4, "{\"max_batch_size\":4}");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_servers_own_list_goes_with_the_batch),
        cmocka_unit_test(a_list_of_the_user_keeps_what_is_possible),
        cmocka_unit_test(a_model_without_batching_is_left_alone),
    };
    return run_tests(tests);
}
