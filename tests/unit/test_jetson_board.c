/* SPDX-License-Identifier: MIT
 *
 * Which Jetson, and its power mode.
 */
#include "device/jetson_board.h"

#include "support/check.h"
#include "support/tree.h"

#define CONF                                                                                       \
    "# < POWER_MODEL ID=0 NAME=COMMENT >\n"                                                        \
    "< PARAM TYPE=FILE NAME=CPU_ONLINE >\n"                                                        \
    "< POWER_MODEL ID=0 NAME=MAXN >\n"                                                             \
    "CPU_ONLINE CORE_0 1\n"                                                                        \
    "< POWER_MODEL ID=1 NAME=MODE_15W >\n"                                                         \
    "< POWER_MODEL ID=10 NAME=MODE_10 >\n"                                                         \
    "# < PM_CONFIG DEFAULT=0 >\n"                                                                  \
    "< PM_CONFIG DEFAULT=1 >\n"

static struct wg_jetson_board board_of(const struct tree_entry *entries, size_t count)
{
    struct tree tree;
    struct wg_arena arena;
    struct wg_jetson_board board;
    tree_open(&tree);
    tree_add(&tree, entries, count);
    wg__arena_init(&arena);
    wg__jetson_board(tree.root, &arena, &board);
    wg__arena_fini(&arena);
    tree_close(&tree);
    return board;
}

#define BOARD_OF(entries) board_of(entries, sizeof(entries) / sizeof(entries)[0])

static void a_board_has_model_release_and_mode(void **state)
{
    (void)state;
    static const struct tree_entry entries[] = {
        {.path = "/etc/nv_tegra_release",
         .text = "# R35 (release), REVISION: 4.1, GCID: 33958178, BOARD: t186ref\n"},
        {.path = "/proc/device-tree/model",
         .text = "NVIDIA Jetson AGX Orin Developer Kit",
         .length = sizeof "NVIDIA Jetson AGX Orin Developer Kit"},
        {.path = "/var/lib/nvpmodel/status", .text = "pmode:0010 fmode:quiet\n"},
        {.path = "/etc/nvpmodel.conf", .text = CONF},
    };
    const struct wg_jetson_board board = BOARD_OF(entries);
    assert_true(board.is_jetson);
    assert_string_equal(board.model, "NVIDIA Jetson AGX Orin Developer Kit");
    assert_string_equal(board.driver, "L4T R35 (release), REVISION: 4.1");
    assert_string_equal(board.mode, "nvpmodel 10: MODE_10");
}

static void without_a_status_the_default_mode_holds(void **state)
{
    (void)state; /* field report B 18 */
    static const struct tree_entry entries[] = {
        {.path = "/sys/firmware/devicetree/base/model", .text = "NVIDIA Jetson Nano"},
        {.path = "/etc/nvpmodel.conf", .text = CONF},
    };
    const struct wg_jetson_board board = BOARD_OF(entries);
    assert_true(board.is_jetson);
    assert_string_equal(board.mode, "nvpmodel 1: MODE_15W");
    assert_string_equal(board.driver, "");
}

static void without_a_configuration_the_mode_is_a_number_or_nothing(void **state)
{
    (void)state;
    static const struct tree_entry numbered[] = {
        {.path = "/etc/nv_tegra_release", .text = "# R32\n"},
        {.path = "/var/lib/nvpmodel/status", .text = "pmode:0003\n"},
    };
    struct wg_jetson_board board = BOARD_OF(numbered);
    assert_string_equal(board.mode, "nvpmodel 3");
    assert_string_equal(board.model, "Jetson");
    assert_string_equal(board.driver, "L4T R32");
    static const struct tree_entry odd[] = {
        {.path = "/etc/nv_tegra_release", .text = ""},
        {.path = "/var/lib/nvpmodel/status", .text = "pmode:x\n"},
        {.path = "/etc/nvpmodel.conf", .text = "# no default here\n"},
    };
    board = BOARD_OF(odd);
    assert_true(board.is_jetson);
    assert_string_equal(board.mode, "");
}

static void another_board_is_none(void **state)
{
    (void)state;
    static const struct tree_entry entries[] = {
        {.path = "/proc/device-tree/model", .text = "Raspberry Pi 5 Model B Rev 1.0"},
        {.path = "/var/lib/nvpmodel/status", .text = "pmode:0003\n"},
    };
    const struct wg_jetson_board board = BOARD_OF(entries);
    assert_false(board.is_jetson);
    assert_string_equal(board.mode, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_board_has_model_release_and_mode),
        cmocka_unit_test(without_a_status_the_default_mode_holds),
        cmocka_unit_test(without_a_configuration_the_mode_is_a_number_or_nothing),
        cmocka_unit_test(another_board_is_none),
    };
    return run_tests(tests);
}
