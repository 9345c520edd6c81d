/* SPDX-License-Identifier: MIT
 *
 * Cards of a made-up /sys/class/drm: which there are, in which order, and which were chosen.
 */
#include "device/drm_cards.h"

#include <limits.h>
#include <string.h>

#include "base/alloc.h"
#include "device/select.h"
#include "support/check.h"
#include "support/tree.h"

#define DRM "/sys/class/drm"
#define AMD 0x1002

/* The card of the lower address was found last; a connector, a render node, another vendor, one
 * without a driver and one that is no PCI device stand among them. */
static const struct tree_entry desktop[] = {
    {.path = DRM "/version", .text = "drm 1.1.0 20060810\n"},
    {.path = DRM "/card1/device/vendor", .text = "0x1002\n"},
    {.path = DRM "/card1/device/device", .text = "0x744c\n"},
    {.path = DRM "/card1/device/uevent",
     .text = "DRIVER=amdgpu\nPCI_ID=1002:744C\nPCI_SLOT_NAME=0000:83:00.0\n"},
    {.path = DRM "/card1/device/numa_node", .text = "1\n"},
    {.path = DRM "/card1/device/unique_id", .text = "7cd1f5a2e0c3b4d6\n"},
    {.path = DRM "/card1/device/hwmon/hwmon10/name", .text = "amdgpu\n"},
    {.path = DRM "/card1/device/hwmon/hwmon9/name", .text = "amdgpu\n"},
    {.path = DRM "/card1-DP-1/status", .text = "connected\n"},
    {.path = DRM "/renderD128/device/vendor", .text = "0x1002\n"},
    {.path = DRM "/card10/device/vendor", .text = "0x1002\n"},
    {.path = DRM "/card10/device/device", .text = "0x740f\n"},
    {.path = DRM "/card10/device/uevent", .text = "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:03:00.0"},
    {.path = DRM "/card10/device/numa_node", .text = "-1\n"},
    {.path = DRM "/card0/device/vendor", .text = "0x1a03\n"},
    {.path = DRM "/card0/device/device", .text = "0x2000\n"},
    {.path = DRM "/card0/device/uevent", .text = "DRIVER=ast\nPCI_SLOT_NAME=0000:02:00.0\n"},
    {.path = DRM "/card2/device/vendor", .text = "0x1002\n"},
    {.path = DRM "/card2/device/device", .text = "0x7550\n"},
    {.path = DRM "/card2/device/uevent", .text = "PCI_SLOT_NAME=0000:04:00.0\n"},
    {.path = DRM "/card3/device/uevent", .text = "DRIVER=vkms\n"},
    {.path = DRM "/card4/device/vendor", .text = "0x10020x1002\n"},
    {.path = DRM "/card4/device/device", .text = "0x1\n"},
    {.path = DRM "/card4/device/uevent", .text = "DRIVER=amdgpu\nPCI_SLOT_NAME=0000:05:00.0\n"},
};

struct scene {
    struct tree tree;
    struct wg_arena arena;
    struct wg_drm_card *cards;
    size_t count;
};

static void begin(struct scene *scene)
{
    *scene = (struct scene){0};
    tree_open(&scene->tree);
    TREE_ADD(&scene->tree, desktop);
    wg__arena_init(&scene->arena);
    assert_int_equal(
        wg__drm_cards(scene->tree.root, AMD, &scene->arena, &scene->cards, &scene->count, NULL),
        WG_OK);
}

static void end(struct scene *scene)
{
    wg__arena_fini(&scene->arena);
    tree_close(&scene->tree);
}

static void cards_of_a_vendor_stand_in_the_order_of_their_addresses(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    assert_int_equal(scene.count, 2);
    const struct wg_drm_card *first = &scene.cards[0];
    assert_string_equal(first->pci, "0000:03:00.0");
    assert_string_equal(first->folder, DRM "/card10/device");
    assert_string_equal(first->driver, "amdgpu");
    assert_int_equal(first->device_id, 0x740f);
    assert_int_equal(first->numa_node, UINT_MAX);
    const struct wg_drm_card *second = &scene.cards[1];
    assert_string_equal(second->pci, "0000:83:00.0");
    assert_int_equal(second->device_id, 0x744c);
    assert_int_equal(second->numa_node, 1);
    end(&scene);
}

static void a_machine_without_graphics_has_none(void **state)
{
    (void)state;
    struct tree tree;
    tree_open(&tree);
    struct wg_arena arena;
    wg__arena_init(&arena);
    struct wg_drm_card *cards = NULL;
    size_t count = 7;
    assert_int_equal(wg__drm_cards(tree.root, AMD, &arena, &cards, &count, NULL), WG_OK);
    assert_int_equal(count, 0);
    const char *folder = "";
    assert_int_equal(wg__drm_card_find(tree.root, "0000:03:00.0", &arena, &folder, NULL), WG_OK);
    assert_null(folder);
    wg__arena_fini(&arena);
    tree_close(&tree);
}

static void a_card_is_found_by_its_address_whatever_its_number(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    const char *folder = NULL;
    assert_int_equal(
        wg__drm_card_find(scene.tree.root, "0000:83:00.0", &scene.arena, &folder, NULL), WG_OK);
    assert_string_equal(folder, DRM "/card1/device");
    const char *hwmon = NULL;
    assert_int_equal(wg__drm_card_hwmon(scene.tree.root, folder, &scene.arena, &hwmon, NULL),
                     WG_OK);
    assert_string_equal(hwmon, DRM "/card1/device/hwmon/hwmon9"); /* the first by number */
    assert_int_equal(
        wg__drm_card_hwmon(scene.tree.root, DRM "/card10/device", &scene.arena, &hwmon, NULL),
        WG_OK);
    assert_null(hwmon);
    assert_int_equal(
        wg__drm_card_find(scene.tree.root, "0000:99:00.0", &scene.arena, &folder, NULL), WG_OK);
    assert_null(folder);
    end(&scene);
}

static void expect_choice(struct scene *scene, const char *selector, bool first, bool second)
{
    struct wg_selection *selection = NULL;
    const char *const selectors[] = {selector};
    assert_int_equal(wg__selection_new(&selection, selectors, 1, NULL, NULL, NULL), WG_OK);
    const struct wg_backend_config config = {.root = scene->tree.root, .selection = selection};
    assert_int_equal(wg__drm_cards_choose(&config, scene->cards, scene->count, &scene->arena, NULL),
                     WG_OK);
    if (scene->cards[0].is_chosen != first || scene->cards[1].is_chosen != second)
        fail_msg("'%s' chooses %d and %d", selector, scene->cards[0].is_chosen,
                 scene->cards[1].is_chosen);
    wg__selection_free(selection);
}

static void cards_are_chosen_by_number_address_and_uuid(void **state)
{
    (void)state;
    struct scene scene;
    begin(&scene);
    expect_choice(&scene, "all", true, true);
    expect_choice(&scene, "1", false, true);
    expect_choice(&scene, "03:00.0", true, false);
    expect_choice(&scene, "GPU-7cd1f5a2", false, true);
    expect_choice(&scene, "GPU-12345678", false, false);
    const struct wg_backend_config config = {.root = scene.tree.root};
    assert_int_equal(wg__drm_cards_choose(&config, scene.cards, scene.count, &scene.arena, NULL),
                     WG_OK);
    assert_true(scene.cards[0].is_chosen && scene.cards[1].is_chosen);
    end(&scene);
}

/* Want of memory is told, never a list with a card missing. */
static void every_allocation_may_fail(void **state)
{
    (void)state;
    struct tree tree;
    tree_open(&tree);
    TREE_ADD(&tree, desktop);
    size_t count = 0;
    for (size_t n = 1; count != 2; n++) {
        struct wg_arena arena;
        struct wg_drm_card *cards = NULL;
        wg__arena_init(&arena);
        count = 0;
        wg__alloc_fail_from(n);
        const enum wg_code code = wg__drm_cards(tree.root, AMD, &arena, &cards, &count, NULL);
        wg__alloc_fail_from(0);
        if (code == WG_OK)
            assert_int_equal(count, 2);
        else
            assert_int_equal(code, WG_ENOMEM);
        assert_true(n < 1000);
        wg__arena_fini(&arena);
    }
    tree_close(&tree);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cards_of_a_vendor_stand_in_the_order_of_their_addresses),
        cmocka_unit_test(a_machine_without_graphics_has_none),
        cmocka_unit_test(a_card_is_found_by_its_address_whatever_its_number),
        cmocka_unit_test(cards_are_chosen_by_number_address_and_uuid),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return run_tests(tests);
}
