/* SPDX-License-Identifier: MIT
 *
 * A fake /sys, /proc or /etc in a scratch folder, built from a table of paths and texts.
 *
 *     static const struct tree_entry vm[] = {
 *         {.path = "/sys/class/powercap/intel-rapl:0/name", .text = "package-0\n"},
 *         {.path = "/sys/class/powercap/intel-rapl:0/energy_uj", .text = "17\n", .mode = 0400},
 *     };
 *     struct tree tree;
 *     tree_open(&tree);
 *     TREE_ADD(&tree, vm);
 *     ... tree.root ...
 *     tree_close(&tree);
 *
 * Root may read what the mode forbids, so a test of permissions drops its rights first
 * (`tree_drop_rights`): without root the mode alone does it.
 *
 * Owns: the folder.    Threads: one thread at a time.
 */
#ifndef WG_TESTS_SUPPORT_TREE_H
#define WG_TESTS_SUPPORT_TREE_H

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/scratch.h"

/* `text` NULL: a folder. `link`: a symbolic link to it instead. */
struct tree_entry {
    const char *path;
    const char *text;
    size_t length;    /* of binary `text`; 0: up to its zero */
    mode_t mode;      /* 0: 0644 */
    const char *link; /* where the link points */
};

struct tree {
    struct scratch scratch;
    const char *root; /* without a last slash */
};

static inline void tree_open(struct tree *tree)
{
    scratch_open(&tree->scratch);
    tree->root = tree->scratch.folder;
    scratch_require(chmod(tree->root, 0755) == 0, tree->root);
}

/* The path of a file of the tree; valid until the next call. */
static inline const char *tree_path(struct tree *tree, const char *path)
{
    return scratch_path(&tree->scratch, path + 1);
}

/* Makes the folders above `full`. */
static inline void tree_make_folders(const char *full, size_t root_length)
{
    char part[512];
    for (size_t i = root_length + 1; full[i] != '\0' && i < sizeof part; i++) {
        if (full[i] != '/')
            continue;
        memcpy(part, full, i);
        part[i] = '\0';
        (void)mkdir(part, 0755);
    }
}

static inline void tree_add_entry(struct tree *tree, const struct tree_entry *entry)
{
    const char *full = tree_path(tree, entry->path);
    tree_make_folders(full, strlen(tree->root));
    if (entry->link != NULL) {
        scratch_require(symlink(entry->link, full) == 0, full);
        return;
    }
    if (entry->text == NULL) {
        scratch_require(mkdir(full, 0755) == 0, full);
        return;
    }
    scratch_write(full, entry->text, entry->length != 0 ? entry->length : strlen(entry->text));
    scratch_require(chmod(full, entry->mode != 0 ? entry->mode : 0644) == 0, full);
}

static inline void tree_add(struct tree *tree, const struct tree_entry *entries, size_t count)
{
    for (size_t i = 0; i < count; i++)
        tree_add_entry(tree, &entries[i]);
}

#define TREE_ADD(tree, entries) tree_add((tree), (entries), sizeof(entries) / sizeof(entries)[0])

/* Changes what a file says, in place: a file that is held open sees it. */
static inline void tree_set(struct tree *tree, const char *path, const char *text)
{
    scratch_write(tree_path(tree, path), text, strlen(text));
}

static inline void tree_set_number(struct tree *tree, const char *path, uint64_t number)
{
    char text[32];
    (void)snprintf(text, sizeof text, "%llu\n", (unsigned long long)number);
    tree_set(tree, path, text);
}

static inline void tree_remove(struct tree *tree, const char *path)
{
    const char *full = tree_path(tree, path);
    scratch_require(remove(full) == 0, full);
}

static inline int tree_remove_visited(const char *path, const struct stat *status, int kind,
                                      struct FTW *place)
{
    (void)status, (void)kind, (void)place;
    return remove(path);
}

/* Removes a folder and all below it. */
static inline void tree_remove_folder(struct tree *tree, const char *path)
{
    const char *full = tree_path(tree, path);
    scratch_require(nftw(full, tree_remove_visited, 16, FTW_DEPTH | FTW_PHYS) == 0, full);
}

static inline void tree_close(struct tree *tree)
{
    assert_int_equal(nftw(tree->root, tree_remove_visited, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* From here on modes count, for root too. Ends with `tree_regain_rights`. */
static inline void tree_drop_rights(void)
{
    if (geteuid() == 0)
        scratch_require(seteuid(65534) == 0, "cannot drop the rights of root");
}

static inline void tree_regain_rights(void)
{
    if (getuid() == 0)
        scratch_require(seteuid(0) == 0, "cannot regain the rights of root");
}

#endif
