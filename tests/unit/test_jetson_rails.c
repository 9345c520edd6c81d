/* SPDX-License-Identifier: MIT
 *
 * Rails of made-up boards: which there are, where they are read, and which make the total.
 */
#include "device/jetson_rails.h"

#include <string.h>

#include "base/alloc.h"
#include "support/check.h"
#include "support/tree.h"

#define I2C "/sys/bus/i2c/drivers"

struct scene {
    struct tree tree;
    struct wg_arena arena;
    struct wg_jetson_rail *rails;
    size_t count;
};

static void begin(struct scene *scene)
{
    *scene = (struct scene){0};
    tree_open(&scene->tree);
    wg__arena_init(&scene->arena);
}

static void look(struct scene *scene)
{
    assert_int_equal(
        wg__jetson_rails(scene->tree.root, &scene->arena, &scene->rails, &scene->count, NULL),
        WG_OK);
}

static void end(struct scene *scene)
{
    wg__arena_fini(&scene->arena);
    tree_close(&scene->tree);
}

/* A channel of an INA3221 under hwmon; `label` NULL: none. */
static void add_channel(struct scene *scene, const char *chip, const char *hwmon, unsigned channel,
                        const char *label)
{
    static const char *const heads[] = {"in", "in", "curr"};
    static const char *const tails[] = {"_label", "_input", "_input"};
    for (size_t i = label != NULL ? 0 : 1; i < 3; i++) {
        char path[160];
        (void)snprintf(path, sizeof path, I2C "/ina3221/%s/hwmon/%s/%s%u%s", chip, hwmon, heads[i],
                       channel, tails[i]);
        const struct tree_entry entry = {.path = path, .text = i == 0 ? label : "5000\n"};
        tree_add(&scene->tree, &entry, 1);
    }
}

static void expect_rail(const struct scene *scene, size_t i, const char *label, const char *chip,
                        unsigned channel, bool counts)
{
    assert_true(i < scene->count);
    const struct wg_jetson_rail *rail = &scene->rails[i];
    assert_string_equal(rail->label, label);
    assert_string_equal(rail->chip, chip);
    assert_int_equal(rail->channel, channel);
    assert_int_equal(rail->counts, counts);
}

static void a_rail_that_supplies_the_others_is_first_and_alone_counts(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    add_channel(&scene, "1-0040", "hwmon3", 1, "VDD_CPU_GPU_CV\n");
    add_channel(&scene, "1-0040", "hwmon3", 2, "VDD_SOC\n");
    add_channel(&scene, "1-0040", "hwmon3", 3, "VDD_IN\n");
    look(&scene);
    assert_int_equal(scene.count, 3);
    expect_rail(&scene, 0, "VDD_IN", "1-0040", 3, true);
    expect_rail(&scene, 1, "VDD_CPU_GPU_CV", "1-0040", 1, false);
    expect_rail(&scene, 2, "VDD_SOC", "1-0040", 2, false);
    assert_string_equal(scene.rails[0].folder, I2C "/ina3221/1-0040/hwmon/hwmon3");
    assert_int_equal(scene.rails[0].layout, WG_RAIL_HWMON);
    end(&scene);
}

static void without_such_a_rail_they_add_up_but_for_the_one_behind_another(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    add_channel(&scene, "1-0040", "hwmon3", 1, "VDD_GPU_SOC\n");
    add_channel(&scene, "1-0040", "hwmon3", 2, "VDD_CPU_CV\n");
    add_channel(&scene, "1-0040", "hwmon3", 3, "VIN_SYS_5V0\n");
    add_channel(&scene, "1-0041", "hwmon4", 1, "NC\n");
    add_channel(&scene, "1-0041", "hwmon4", 2, "VDDQ_VDD2_1V8AO\n");
    add_channel(&scene, "1-0041", "hwmon4", 3, "sum of shunt voltages\n");
    look(&scene);
    assert_int_equal(scene.count, 4);
    expect_rail(&scene, 0, "VDD_GPU_SOC", "1-0040", 1, true);
    expect_rail(&scene, 1, "VDD_CPU_CV", "1-0040", 2, true);
    expect_rail(&scene, 2, "VIN_SYS_5V0", "1-0040", 3, true);
    expect_rail(&scene, 3, "VDDQ_VDD2_1V8AO", "1-0041", 2, false);
    end(&scene);
}

static void older_boards_have_their_rails_under_iio(void **state)
{
    (void)state;
    static const struct tree_entry nano[] = {
        {.path = I2C "/ina3221x/bind", .text = ""},
        {.path = I2C "/ina3221x/6-0040/iio:device0/rail_name_0", .text = "POM_5V_IN\n"},
        {.path = I2C "/ina3221x/6-0040/iio:device0/in_power0_input", .text = "2500\n"},
        {.path = I2C "/ina3221x/6-0040/iio:device0/rail_name_1", .text = "POM_5V_GPU\n"},
        {.path = I2C "/ina3221x/6-0040/iio:device0/in_power1_input", .text = "40\n"},
        {.path = I2C "/ina3221x/6-0040/iio:device0/rail_name_2", .text = "POM_5V_CPU\n"},
    };
    struct scene scene;
    begin(&scene);
    TREE_ADD(&scene.tree, nano);
    look(&scene);
    assert_int_equal(scene.count, 2); /* the third has no power */
    expect_rail(&scene, 0, "POM_5V_IN", "6-0040", 0, true);
    expect_rail(&scene, 1, "POM_5V_GPU", "6-0040", 1, false);
    assert_int_equal(scene.rails[1].layout, WG_RAIL_IIO);
    end(&scene);
}

static void the_supply_of_a_carrier_is_nearest_to_the_plug(void **state)
{
    (void)state;
    static const struct tree_entry supply[] = {
        {.path = I2C "/ina238/2-0044/hwmon/hwmon7/power1_input", .text = "61000000\n"}};
    struct scene scene;
    begin(&scene);
    add_channel(&scene, "2-0040", "hwmon5", 1, "VDD_IN\n");
    add_channel(&scene, "2-0040", "hwmon5", 2, "VDD GPU\n");
    TREE_ADD(&scene.tree, supply);
    look(&scene);
    assert_int_equal(scene.count, 3);
    expect_rail(&scene, 0, "VIN", "2-0044", 1, true);
    assert_int_equal(scene.rails[0].layout, WG_RAIL_INA238);
    expect_rail(&scene, 1, "VDD_IN", "2-0040", 1, false);
    expect_rail(&scene, 2, "VDD_GPU", "2-0040", 2, false); /* a label is one word */
    end(&scene);
}

static void chips_that_are_not_under_their_driver_are_found_by_name(void **state)
{
    (void)state;
    static const struct tree_entry named[] = {
        {.path = "/sys/class/hwmon/hwmon0/name", .text = "nvme\n"},
        {.path = "/sys/class/hwmon/hwmon0/in1_label", .text = "VDD_IN\n"},
        {.path = "/sys/class/hwmon/hwmon4/name", .text = "ina3221\n"},
        {.path = "/sys/class/hwmon/hwmon4/in1_label", .text = "VDD_IN\n"},
        {.path = "/sys/class/hwmon/hwmon4/in1_input", .text = "5000\n"},
        {.path = "/sys/class/hwmon/hwmon4/curr1_input", .text = "900\n"},
    };
    struct scene scene;
    begin(&scene);
    look(&scene);
    assert_int_equal(scene.count, 0); /* a bare board */
    TREE_ADD(&scene.tree, named);
    look(&scene);
    assert_int_equal(scene.count, 1);
    expect_rail(&scene, 0, "VDD_IN", "", 1, true);
    assert_string_equal(scene.rails[0].folder, "/sys/class/hwmon/hwmon4");
    end(&scene);
}

static void what_cannot_be_read_costs_its_own_rail(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    add_channel(&scene, "1-0040", "hwmon3", 1, NULL);
    add_channel(&scene, "1-0040", "hwmon3", 2, "\n");
    add_channel(&scene, "1-0040", "hwmon3", 3, "VDD_SOC\n");
    char label[201];
    memset(label, 'A', sizeof label - 1);
    label[sizeof label - 1] = '\0';
    add_channel(&scene, "1-0041", "hwmon4", 1, label); /* a text without end */
    look(&scene);
    assert_int_equal(scene.count, 1);
    expect_rail(&scene, 0, "VDD_SOC", "1-0040", 3, true);
    end(&scene);
}

static void a_board_of_more_chips_than_can_be_has_only_so_many_rails(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    for (unsigned i = 0; i < 20; i++) {
        char chip[16];
        (void)snprintf(chip, sizeof chip, "%u-0040", i);
        for (unsigned channel = 1; channel <= 3; channel++)
            add_channel(&scene, chip, "hwmon1", channel, "RAIL\n");
    }
    look(&scene);
    assert_int_equal(scene.count, 48);
    end(&scene);
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    add_channel(&scene, "1-0040", "hwmon3", 1, "VDD_SOC\n");
    add_channel(&scene, "1-0040", "hwmon3", 2, "VDD_IN\n");
    enum wg_code code = WG_ENOMEM;
    for (size_t n = 1; code != WG_OK; n++) {
        struct wg_arena arena;
        struct wg_jetson_rail *rails = NULL;
        size_t count = 0;
        wg__arena_init(&arena);
        wg__alloc_fail_from(n);
        code = wg__jetson_rails(scene.tree.root, &arena, &rails, &count, NULL);
        wg__alloc_fail_from(0);
        if (code == WG_OK)
            assert_int_equal(count, 2);
        else
            assert_int_equal(code, WG_ENOMEM);
        assert_true(n < 1000);
        wg__arena_fini(&arena);
    }
    end(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rail_that_supplies_the_others_is_first_and_alone_counts),
        cmocka_unit_test(without_such_a_rail_they_add_up_but_for_the_one_behind_another),
        cmocka_unit_test(older_boards_have_their_rails_under_iio),
        cmocka_unit_test(the_supply_of_a_carrier_is_nearest_to_the_plug),
        cmocka_unit_test(chips_that_are_not_under_their_driver_are_found_by_name),
        cmocka_unit_test(what_cannot_be_read_costs_its_own_rail),
        cmocka_unit_test(a_board_of_more_chips_than_can_be_has_only_so_many_rails),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return run_tests(tests);
}
