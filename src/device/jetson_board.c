/* SPDX-License-Identifier: MIT
 *
 * The board and its power mode.
 *
 *     /etc/nv_tegra_release          # R35 (release), REVISION: 4.1, GCID: ..
 *     /proc/device-tree/model        NVIDIA Jetson AGX Orin Developer Kit
 *     /var/lib/nvpmodel/status       pmode:0002
 *     /etc/nvpmodel.conf             < POWER_MODEL ID=2 NAME=MODE_30W >
 *                                    < PM_CONFIG DEFAULT=2 >
 *
 * Owns: nothing.    Threads: any thread.
 */
#include "device/jetson_board.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "device/sysfs.h"

enum { CONF_MAX = 64 * 1024, NO_MODE = -1, MODE_MAX = 9999 };

static const char *const CONF = "/etc/nvpmodel.conf";

/* The number at the beginning of `text`; NO_MODE when there is none. */
static int leading_number(const char *text)
{
    char digits[8];
    const size_t count = strspn(text, "0123456789");
    if (count == 0 || count >= sizeof digits)
        return NO_MODE;
    memcpy(digits, text, count);
    digits[count] = '\0';
    uint64_t number = 0;
    return wg__parse_uint64(digits, &number) && number <= MODE_MAX ? (int)number : NO_MODE;
}

/* The configuration, which grows with the number of modes; "" when it cannot be read. */
static const char *read_conf(const char *root, struct wg_arena *arena)
{
    struct wg_sysfs_file file;
    char *text = wg__arena_alloc(arena, CONF_MAX + 1, 1);
    if (text == NULL || wg__sysfs_open(&file, root, CONF, NULL) != WG_OK)
        return "";
    size_t length = 0;
    if (wg__sysfs_read_bytes(&file, text, CONF_MAX, &length, NULL) != WG_OK)
        length = 0;
    wg__sysfs_close(&file);
    text[length] = '\0';
    return text;
}

/* What stands behind `key` in the first line that begins with `head`; NULL: no such line. A line
 * that is a comment ends its head with '#'. */
static const char *find_value(const char *conf, const char *head, const char *key)
{
    for (const char *at = strstr(conf, head); at != NULL; at = strstr(at + 1, head)) {
        const char *line = at;
        while (line > conf && line[-1] != '\n')
            line--;
        const char *value = strstr(at, key);
        if (memchr(line, '#', (size_t)(at - line)) == NULL && value != NULL &&
            value < at + strcspn(at, "\n"))
            return value + strlen(key);
    }
    return NULL;
}

static void name_mode(const char *conf, int mode, char *out, size_t size)
{
    char head[48];
    (void)snprintf(head, sizeof head, "POWER_MODEL ID=%d ", mode);
    const char *name = find_value(conf, head, "NAME=");
    const int length = name != NULL ? (int)strcspn(name, " \t\r\n>") : 0;
    if (length > 0 && length < 40)
        (void)snprintf(out, size, "nvpmodel %d: %.*s", mode, length, name);
    else
        (void)snprintf(out, size, "nvpmodel %d", mode);
}

static void read_mode(const char *root, struct wg_arena *arena, char *out, size_t size)
{
    static const char key[] = "pmode:";
    char text[256];
    int mode = NO_MODE;
    if (wg__sysfs_text(root, "/var/lib/nvpmodel/status", text, sizeof text, NULL) == WG_OK) {
        const char *value = strstr(text, key);
        mode = value != NULL ? leading_number(value + sizeof key - 1) : NO_MODE;
    }
    const char *conf = read_conf(root, arena);
    if (mode == NO_MODE) {
        const char *value = find_value(conf, "PM_CONFIG ", "DEFAULT=");
        mode = value != NULL ? leading_number(value) : NO_MODE;
    }
    out[0] = '\0';
    if (mode != NO_MODE)
        name_mode(conf, mode, out, size);
}

void wg__jetson_board(const char *root, struct wg_arena *arena, struct wg_jetson_board *out)
{
    *out = (struct wg_jetson_board){.model = "Jetson"};
    char text[256];
    if (wg__sysfs_text(root, "/etc/nv_tegra_release", text, sizeof text, NULL) == WG_OK) {
        out->is_jetson = true;
        const char *release = text + strspn(text, "# ");
        const char *end = strstr(release, ", GCID");
        const size_t length = end != NULL ? (size_t)(end - release) : strcspn(release, "\n");
        if (length < sizeof out->driver - 4)
            (void)snprintf(out->driver, sizeof out->driver, "L4T %.*s", (int)length, release);
    }
    static const char *const models[] = {"/proc/device-tree/model",
                                         "/sys/firmware/devicetree/base/model"};
    for (size_t i = 0; i < sizeof models / sizeof models[0]; i++) {
        if (wg__sysfs_text(root, models[i], text, sizeof text, NULL) != WG_OK)
            continue;
        out->is_jetson |= strstr(text, "Jetson") != NULL || strstr(text, "jetson") != NULL;
        if (text[0] != '\0' && strlen(text) < sizeof out->model)
            memcpy(out->model, text, strlen(text) + 1);
        break;
    }
    if (out->is_jetson)
        read_mode(root, arena, out->mode, sizeof out->mode);
}
