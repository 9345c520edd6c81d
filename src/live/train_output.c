/* SPDX-License-Identifier: MIT
 *
 * The job's output on its way through us; see train_parts.h.
 *
 * Where our own stream is a terminal the job gets one too (a pty), so that progress bars and
 * colours stay and its lines come at once; else a pipe. Python buffers a pipe by blocks, so
 * PYTHONUNBUFFERED is set for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/error.h"
#include "live/train_parts.h"

static enum wg_code open_pty(int copy_fd, int *ours, int *theirs, struct wg_error *err)
{
    struct termios modes;
    struct winsize size;
    const bool has_modes = tcgetattr(copy_fd, &modes) == 0;
    const bool has_size = ioctl(copy_fd, TIOCGWINSZ, &size) == 0;
    if (has_modes)
        modes.c_oflag &= ~(tcflag_t)OPOST; /* the real terminal does that */
    if (openpty(ours, theirs, NULL, has_modes ? &modes : NULL, has_size ? &size : NULL) != 0)
        return wg__fail_errno(err, errno, "cannot open a terminal for the command's output");
    (void)fcntl(*ours, F_SETFD, FD_CLOEXEC);
    (void)fcntl(*theirs, F_SETFD, FD_CLOEXEC);
    return WG_OK;
}

static enum wg_code open_pipe(int *ours, int *theirs, struct wg_error *err)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return wg__fail_errno(err, errno, "cannot open a pipe for the command's output");
    *ours = ends[0];
    *theirs = ends[1];
    return WG_OK;
}

enum wg_code wg__train_output_open(struct wg_train_output *output, struct wg_error *err)
{
    *output = (struct wg_train_output){
        .child = {.out = -1, .err = -1}, .ours = {-1, -1}, .copy = {STDOUT_FILENO, STDERR_FILENO}};
    int *const theirs[] = {&output->child.out, &output->child.err};
    for (size_t i = 0; i < 2; i++) {
        const enum wg_code code = isatty(output->copy[i])
                                      ? open_pty(output->copy[i], &output->ours[i], theirs[i], err)
                                      : open_pipe(&output->ours[i], theirs[i], err);
        if (code != WG_OK) {
            wg__train_output_close(output);
            return code;
        }
    }
    return WG_OK;
}

static void close_one(int *fd)
{
    if (*fd >= 0)
        (void)close(*fd);
    *fd = -1;
}

enum wg_code wg__train_output_connect(struct wg_train_output *output, struct wg_progress *progress,
                                      struct wg_error *err)
{
    enum wg_code code = WG_OK;
    close_one(&output->child.out);
    close_one(&output->child.err);
    for (size_t i = 0; i < 2 && code == WG_OK; i++) {
        const int fd = output->ours[i];
        output->ours[i] = -1;
        if (fd >= 0)
            code = wg__progress_add_stream(progress, fd, output->copy[i], err);
    }
    return code;
}

void wg__train_output_close(struct wg_train_output *output)
{
    close_one(&output->child.out);
    close_one(&output->child.err);
    close_one(&output->ours[0]);
    close_one(&output->ours[1]);
}
