/* SPDX-License-Identifier: MIT
 *
 * A tiny checker of markup: are tags balanced, attributes quoted, and special characters escaped?
 *
 * It knows the XML that our writers make, and the two things that HTML adds: the document type and
 * <meta>, which stays open. It is no parser; it only must notice what a broken writer would do.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_TESTS_SUPPORT_XML_H
#define WG_TESTS_SUPPORT_XML_H

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { XML_DEPTH_MAX = 32, XML_NAME_MAX = 16 };

/* Beyond an entity at `text`, or NULL. */
static inline const char *xml_skip_entity(const char *text)
{
    static const char *const known[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (strncmp(text, known[i], strlen(known[i])) == 0)
            return text + strlen(known[i]);
    return NULL;
}

/* Beyond the attributes of a tag, at its '>' or '/'; NULL when one is malformed. */
static inline const char *xml_skip_attributes(const char *at)
{
    while (*at == ' ') {
        at++;
        while (isalnum((unsigned char)*at) || *at == '-')
            at++;
        if (*at != '=') /* only HTML's <details open> has no value */
            continue;
        if (*++at != '"')
            return NULL;
        for (at++; *at != '"';) {
            if (*at == '\0' || *at == '<')
                return NULL;
            at = *at == '&' ? xml_skip_entity(at) : at + 1;
            if (at == NULL)
                return NULL;
        }
        at++;
    }
    return at;
}

/* NULL when `text` is well-formed, else where it breaks. */
static inline const char *xml_find_fault(const char *text)
{
    char stack[XML_DEPTH_MAX][XML_NAME_MAX];
    size_t depth = 0;
    const char *at = text;
    if (strncmp(at, "<!DOCTYPE html>", 15) == 0)
        at += 15;
    while (*at != '\0') {
        const char *start = at;
        if ((unsigned char)*at < ' ' && *at != '\n')
            return start;
        if (*at == '&') {
            at = xml_skip_entity(at);
            if (at == NULL)
                return start;
            continue;
        }
        if (*at != '<') {
            /* CSS is raw text, and ours has no '<'; all else would be escaped. */
            if (*at == '>' && !(depth > 0 && strcmp(stack[depth - 1], "style") == 0))
                return start;
            at++;
            continue;
        }
        const bool is_end = *++at == '/';
        at += is_end;
        char name[XML_NAME_MAX] = "";
        size_t length = 0;
        while (isalnum((unsigned char)*at) && length + 1 < sizeof name)
            name[length++] = *at++;
        if (length == 0)
            return start;
        if (is_end) {
            if (depth == 0 || strcmp(stack[depth - 1], name) != 0 || *at != '>')
                return start;
            depth--;
            at++;
            continue;
        }
        at = xml_skip_attributes(at);
        if (at == NULL)
            return start;
        const bool is_closed = *at == '/';
        at += is_closed;
        if (*at++ != '>')
            return start;
        if (is_closed || strcmp(name, "meta") == 0)
            continue;
        if (depth == XML_DEPTH_MAX)
            return start;
        memcpy(stack[depth++], name, sizeof name);
    }
    return depth == 0 ? NULL : at;
}

#define check_well_formed(text)                                                                    \
    do {                                                                                           \
        const char *check_fault = xml_find_fault(text);                                            \
        if (check_fault != NULL)                                                                   \
            fail_msg("markup breaks at: %.80s", check_fault);                                      \
    } while (0)

/* How often `part` occurs. */
static inline size_t count_of(const char *text, const char *part)
{
    size_t count = 0;
    for (const char *at = strstr(text, part); at != NULL; at = strstr(at + 1, part))
        count++;
    return count;
}

#endif
