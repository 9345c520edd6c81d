/* SPDX-License-Identifier: MIT
 *
 * Filling a command's template; see tune_template.h.
 */
#include "live/tune_template.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/buffer.h"
#include "base/number.h"

void wg__tune_value_text(char out[static WG_TUNE_VALUE_SIZE],
                         const struct wg_workload_setting *setting)
{
    char number[WG_DOUBLE_TEXT_SIZE];
    wg__format_double(number, setting->value);
    (void)snprintf(out, WG_TUNE_VALUE_SIZE, "%s", setting->label != NULL ? setting->label : number);
}

/* The setting whose {name} begins at `at`; NULL: none. */
static const struct wg_workload_setting *
named_at(const char *at, const struct wg_workload_setting *settings, size_t count)
{
    if (*at != '{')
        return NULL;
    for (size_t i = 0; i < count; i++) {
        const size_t length = strlen(settings[i].name);
        if (strncmp(at + 1, settings[i].name, length) == 0 && at[1 + length] == '}')
            return &settings[i];
    }
    return NULL;
}

bool wg__tune_template_has(char *const *words, const char *name)
{
    const struct wg_workload_setting setting = {.name = name};
    for (; *words != NULL; words++)
        for (const char *at = *words; *at != '\0'; at++)
            if (named_at(at, &setting, 1) != NULL)
                return true;
    return false;
}

static char *fill_word(const char *word, const struct wg_workload_setting *settings, size_t count)
{
    struct wg_buffer text;
    wg__buffer_init(&text);
    wg__buffer_append(&text, "", 0);
    for (const char *at = word; *at != '\0';) {
        const struct wg_workload_setting *setting = named_at(at, settings, count);
        if (setting == NULL) {
            wg__buffer_append(&text, at++, 1);
            continue;
        }
        char value[WG_TUNE_VALUE_SIZE];
        wg__tune_value_text(value, setting);
        wg__buffer_puts(&text, value);
        at += strlen(setting->name) + 2;
    }
    char *made = text.failed ? NULL : wg__strdup(text.data != NULL ? text.data : "");
    wg__buffer_fini(&text);
    return made;
}

void wg__tune_variable_name(char out[static WG_TUNE_VALUE_SIZE], const char *knob)
{
    (void)snprintf(out, WG_TUNE_VALUE_SIZE, "WATTGOV_TUNE_%.64s", knob);
    for (char *at = out; *at != '\0'; at++)
        *at = isalnum((unsigned char)*at) ? (char)toupper((unsigned char)*at) : '_';
}

static char *variable(const struct wg_workload_setting *setting)
{
    char name[WG_TUNE_VALUE_SIZE], value[WG_TUNE_VALUE_SIZE], text[2 * WG_TUNE_VALUE_SIZE];
    wg__tune_variable_name(name, setting->name);
    wg__tune_value_text(value, setting);
    (void)snprintf(text, sizeof text, "%s=%s", name, value);
    return wg__strdup(text);
}

static void free_texts(char **texts)
{
    for (size_t i = 0; texts != NULL && texts[i] != NULL; i++)
        wg__free(texts[i]);
    wg__free(texts);
}

void wg__tune_command_fini(struct wg_tune_command *command)
{
    free_texts(command->words);
    free_texts(command->environment);
    *command = (struct wg_tune_command){0};
}

enum wg_code wg__tune_template_fill(struct wg_tune_command *out, char *const *words,
                                    const struct wg_workload_setting *settings, size_t count,
                                    struct wg_error *err)
{
    struct wg_tune_command made = {0};
    size_t word_count = 0;
    while (words[word_count] != NULL)
        word_count++;
    made.words = wg__alloc_zeroed(word_count + 1, sizeof *made.words);
    made.environment = wg__alloc_zeroed(count + 1, sizeof *made.environment);
    bool has_failed = made.words == NULL || made.environment == NULL;
    for (size_t i = 0; i < word_count && !has_failed; i++) {
        made.words[i] = fill_word(words[i], settings, count);
        has_failed = made.words[i] == NULL;
    }
    for (size_t i = 0; i < count && !has_failed; i++) {
        made.environment[i] = variable(&settings[i]);
        has_failed = made.environment[i] == NULL;
    }
    if (has_failed) {
        wg__tune_command_fini(&made);
        return wg__fail(err, WG_ENOMEM, "out of memory");
    }
    *out = made;
    return WG_OK;
}
