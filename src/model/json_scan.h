/* SPDX-License-Identifier: MIT
 *
 * Walks JSON of any size value by value, from a file that may be gzipped.
 *
 * A trace of gigabytes is one object with one array of small ones. The caller goes through objects
 * and arrays member by member, passes values that it doesn't want without keeping them, and takes
 * the text of those that it does, which jansson then reads and checks. What is passed is only
 * followed through its brackets and strings.
 *
 *     wg__json_scan_enter(&scan, '[', &err);
 *     while (wg__json_scan_more(&scan, ']', &has, &err) == WG_OK && has)
 *         wg__json_scan_take(&scan, 1 << 20, &err);      scan.text.data, scan.text.length
 *
 * Owns: the text of the value that was taken last.    Threads: one thread at a time.
 */
#ifndef WG_MODEL_JSON_SCAN_H
#define WG_MODEL_JSON_SCAN_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buffer.h"
#include "base/error.h"
#include "base/source.h"

enum { WG_JSON_SCAN_KEY_SIZE = 64 };

struct wg_json_scan {
    struct wg_source *source; /* the caller's */
    struct wg_buffer text;
    bool is_first;                   /* nothing was read yet behind the bracket */
    char key[WG_JSON_SCAN_KEY_SIZE]; /* of the present member, as written; cut when longer */
};

void wg__json_scan_init(struct wg_json_scan *scan, struct wg_source *source);
void wg__json_scan_fini(struct wg_json_scan *scan);

/* The next byte that is no blank, WG_SOURCE_END or WG_SOURCE_BROKEN. */
int wg__json_scan_peek(struct wg_json_scan *scan, struct wg_error *err);
/* Passes the bracket that opens. All below: WG_EDATA with "FILE:LINE: ..." when it is not there. */
enum wg_code wg__json_scan_enter(struct wg_json_scan *scan, char bracket, struct wg_error *err);
/* Whether a member follows, in front of which it then stands; else `closer` was passed. Members of
 * objects ('}') have their key in `key`. */
enum wg_code wg__json_scan_more(struct wg_json_scan *scan, char closer, bool *has_member,
                                struct wg_error *err);
enum wg_code wg__json_scan_skip(struct wg_json_scan *scan, struct wg_error *err);
/* Keeps the value's text; WG_EDATA when it is longer than `most` bytes; WG_ENOMEM. */
enum wg_code wg__json_scan_take(struct wg_json_scan *scan, size_t most, struct wg_error *err);

#endif
