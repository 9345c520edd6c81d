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

/* The elements that are open. */
struct xml_stack {
    size_t depth;
    char names[XML_DEPTH_MAX][XML_NAME_MAX];
};

/* Beyond one character of text or one entity; NULL when it should have been escaped. */
static inline const char *xml_skip_text(const char *at, const struct xml_stack *stack)
{
    if ((unsigned char)*at < ' ' && *at != '\n')
        return NULL;
    if (*at == '&')
        return xml_skip_entity(at);
    /* CSS is raw text, and ours has no '<'; all else would be escaped. */
    const bool is_css = stack->depth > 0 && strcmp(stack->names[stack->depth - 1], "style") == 0;
    return *at == '>' && !is_css ? NULL : at + 1;
}

/* Beyond the tag at `at`, which stands behind its '<'; NULL when it is malformed or closes another
 * one. */
static inline const char *xml_skip_tag(const char *at, struct xml_stack *stack)
{
    const bool is_end = *at == '/';
    at += is_end;
    char name[XML_NAME_MAX] = "";
    size_t length = 0;
    while (isalnum((unsigned char)*at) && length + 1 < sizeof name)
        name[length++] = *at++;
    if (length == 0)
        return NULL;
    if (is_end) {
        if (stack->depth == 0 || *at != '>')
            return NULL;
        stack->depth--;
        return strcmp(stack->names[stack->depth], name) == 0 ? at + 1 : NULL;
    }
    at = xml_skip_attributes(at);
    if (at == NULL)
        return NULL;
    const bool is_closed = *at == '/';
    at += is_closed;
    if (*at != '>')
        return NULL;
    if (is_closed || strcmp(name, "meta") == 0)
        return at + 1;
    if (stack->depth == XML_DEPTH_MAX)
        return NULL;
    memcpy(stack->names[stack->depth++], name, sizeof name);
    return at + 1;
}

/* NULL when `text` is well-formed, else where it breaks. */
static inline const char *xml_find_fault(const char *text)
{
    struct xml_stack stack = {0};
    const char *at = text;
    if (strncmp(at, "<!DOCTYPE html>", 15) == 0)
        at += 15;
    while (*at != '\0') {
        const char *next = *at == '<' ? xml_skip_tag(at + 1, &stack) : xml_skip_text(at, &stack);
        if (next == NULL)
            return at;
        at = next;
    }
    return stack.depth == 0 ? NULL : at;
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
