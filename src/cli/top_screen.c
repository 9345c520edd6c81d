/* SPDX-License-Identifier: MIT
 *
 * The terminal of `wattgov top`; see top_screen.h.
 *
 * Our handlers stand before ncurses starts, so it installs none of its own. Ctrl-Z leaves the
 * terminal as the shell wants it, stops with the default action, and takes it again on SIGCONT.
 */
#include "cli/top_screen.h"

#include <curses.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/clock.h"
#include "cli/table.h"
#include "cli/top_frame.h"
#include "live/child.h"

/* Also read by handlers. */
static volatile sig_atomic_t has_resized, has_stop, end_signal;

static struct termios terminal_before; /* not changed while handlers stand */

static const int handled[] = {SIGINT,  SIGTERM, SIGHUP,  SIGQUIT, SIGUSR1,
                              SIGUSR2, SIGXCPU, SIGALRM, SIGTSTP, SIGWINCH};
enum {
    HANDLED_COUNT = sizeof handled / sizeof *handled,
    LEAVE_S = 1, /* from a signal that asks us to end, when the terminal takes no output */
};

struct wg_top_screen {
    SCREEN *screen;
    bool has_color;
    sigset_t blocked;
    sigset_t before;
    struct sigaction actions[HANDLED_COUNT]; /* of before */
};

static void mark(int number)
{
    if (number == SIGWINCH) {
        has_resized = 1;
    } else if (number == SIGTSTP) {
        has_stop = 1;
    } else if (number == SIGALRM && end_signal != 0) {
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &terminal_before);
        _exit(WG_EXIT_SIGNAL + end_signal);
    } else {
        end_signal = number;
        (void)alarm(LEAVE_S);
    }
}

static void take_signals(struct wg_top_screen *screen)
{
    has_resized = has_stop = end_signal = 0;
    (void)tcgetattr(STDIN_FILENO, &terminal_before);
    (void)sigemptyset(&screen->blocked);
    for (size_t i = 0; i < HANDLED_COUNT; i++) {
        struct sigaction action = {.sa_handler = mark};
        (void)sigaction(handled[i], NULL, &screen->actions[i]);
        if (screen->actions[i].sa_handler == SIG_IGN && handled[i] != SIGWINCH)
            continue; /* nohup, say */
        (void)sigaddset(&screen->blocked, handled[i]);
        (void)sigaction(handled[i], &action, NULL);
    }
    (void)pthread_sigmask(SIG_BLOCK, &screen->blocked, &screen->before);
}

static void give_signals_back(const struct wg_top_screen *screen)
{
    (void)alarm(0);
    for (size_t i = 0; i < HANDLED_COUNT; i++)
        (void)sigaction(handled[i], &screen->actions[i], NULL);
    (void)pthread_sigmask(SIG_SETMASK, &screen->before, NULL);
}

static void start_colors(struct wg_top_screen *screen)
{
    static const struct {
        short style;
        short color;
    } pairs[] = {{WG_TOP_LOW, COLOR_GREEN},
                 {WG_TOP_MIDDLE, COLOR_YELLOW},
                 {WG_TOP_HIGH, COLOR_RED},
                 {WG_TOP_TROUBLE, COLOR_RED}};
    screen->has_color = wg__wants_color(stdout) && start_color() == OK;
    if (!screen->has_color)
        return;
    (void)use_default_colors();
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        (void)init_pair(pairs[i].style, pairs[i].color, -1);
}

enum wg_code wg__top_screen_open(struct wg_top_screen **out, struct wg_error *err)
{
    if (isatty(STDIN_FILENO) == 0 || isatty(STDOUT_FILENO) == 0)
        return wg__fail(err, WG_EINVAL,
                        "standard input and output must be a terminal; "
                        "'wattgov measure' and 'wattgov devices' need none");
    struct wg_top_screen *screen = wg__alloc_zeroed(1, sizeof *screen);
    if (screen == NULL)
        return wg__fail(err, WG_ENOMEM, "out of memory");
    take_signals(screen);
    screen->screen = newterm(NULL, stdout, stdin);
    if (screen->screen == NULL) {
        const char *term = getenv("TERM");
        give_signals_back(screen);
        wg__free(screen);
        return wg__fail(err, WG_EINVAL,
                        "the terminal TERM=%s is not known; install ncurses-term, "
                        "or set TERM to a known one",
                        term != NULL ? term : "");
    }
    (void)cbreak();
    (void)noecho();
    (void)keypad(stdscr, true);
    (void)nodelay(stdscr, true);
    (void)curs_set(0);
    (void)set_escdelay(25); /* a lone escape is no key here: don't wait for the rest of one */
    start_colors(screen);
    *out = screen;
    return WG_OK;
}

void wg__top_screen_close(struct wg_top_screen *screen)
{
    if (screen == NULL)
        return;
    (void)pthread_sigmask(SIG_SETMASK, &screen->before, NULL);
    (void)endwin();
    delscreen(screen->screen);
    give_signals_back(screen);
    wg__free(screen);
}

void wg__top_screen_size(const struct wg_top_screen *screen, unsigned *width, unsigned *height)
{
    (void)screen;
    *width = COLS > 0 ? (unsigned)COLS : 1;
    *height = LINES > 0 ? (unsigned)LINES : 1;
}

static attr_t attributes(const struct wg_top_screen *screen, enum wg_top_style style)
{
    static const attr_t plain[WG_TOP_STYLE_COUNT] = {
        [WG_TOP_STRONG] = A_BOLD, [WG_TOP_FAINT] = A_DIM,    [WG_TOP_HEADER] = A_REVERSE,
        [WG_TOP_HIGH] = A_BOLD,   [WG_TOP_TROUBLE] = A_BOLD,
    };
    attr_t attribute = plain[style];
    if (screen->has_color && style >= WG_TOP_LOW)
        attribute |= (attr_t)COLOR_PAIR(style);
    return attribute;
}

void wg__top_screen_draw(struct wg_top_screen *screen, const struct wg_top_frame *frame)
{
    (void)erase();
    for (unsigned row = 0; row < frame->height; row++) {
        (void)move((int)row, 0);
        for (unsigned column = 0; column < frame->width; column++) {
            const struct wg_top_cell *cell = &frame->cells[(size_t)row * frame->width + column];
            (void)addch((chtype)(unsigned char)cell->character |
                        (chtype)attributes(screen, (enum wg_top_style)cell->style));
        }
    }
    (void)pthread_sigmask(SIG_SETMASK, &screen->before, NULL);
    (void)refresh();
    (void)pthread_sigmask(SIG_BLOCK, &screen->blocked, NULL);
}

/* Leaves the terminal, stops as Ctrl-Z means it, and takes it again when we are continued. */
static void stop_and_go_on(const struct wg_top_screen *screen)
{
    const struct sigaction usual = {.sa_handler = SIG_DFL}, ours = {.sa_handler = mark};
    sigset_t stop;
    (void)endwin();
    (void)sigaction(SIGTSTP, &usual, NULL);
    (void)sigemptyset(&stop);
    (void)sigaddset(&stop, SIGTSTP);
    (void)pthread_kill(pthread_self(), SIGTSTP);
    (void)pthread_sigmask(SIG_UNBLOCK, &stop, NULL); /* stops here */
    (void)pthread_sigmask(SIG_BLOCK, &screen->blocked, NULL);
    (void)sigaction(SIGTSTP, &ours, NULL);
    has_resized = 1; /* who knows what was done to the window meanwhile */
    (void)clearok(stdscr, true);
    (void)refresh();
}

static void resize(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_row > 0 && size.ws_col > 0)
        (void)resizeterm(size.ws_row, size.ws_col);
}

static enum wg_top_key key_of(int code)
{
    static const struct {
        int code;
        enum wg_top_key key;
    } keys[] = {
        {'q', WG_TOP_KEY_QUIT},          {'Q', WG_TOP_KEY_QUIT},
        {'p', WG_TOP_KEY_PROCESSES},     {'r', WG_TOP_KEY_RESET},
        {'?', WG_TOP_KEY_HELP},          {'h', WG_TOP_KEY_HELP},
        {KEY_UP, WG_TOP_KEY_UP},         {KEY_DOWN, WG_TOP_KEY_DOWN},
        {KEY_PPAGE, WG_TOP_KEY_PAGE_UP}, {KEY_NPAGE, WG_TOP_KEY_PAGE_DOWN},
        {KEY_HOME, WG_TOP_KEY_HOME},     {KEY_END, WG_TOP_KEY_END},
        {KEY_RESIZE, WG_TOP_KEY_REDRAW}, {'\f', WG_TOP_KEY_REDRAW},
    };
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (keys[i].code == code)
            return keys[i].key;
    return WG_TOP_KEY_OTHER;
}

/* What the signals have left. */
static enum wg_top_key take_marks(const struct wg_top_screen *screen)
{
    if (end_signal != 0)
        return WG_TOP_KEY_QUIT;
    if (has_stop != 0) {
        has_stop = 0;
        stop_and_go_on(screen);
    }
    if (has_resized != 0) {
        has_resized = 0;
        resize();
        return WG_TOP_KEY_REDRAW;
    }
    return WG_TOP_KEY_NONE;
}

enum wg_top_key wg__top_screen_wait(struct wg_top_screen *screen, uint64_t deadline_ns)
{
    static const uint64_t ns_per_s = 1000000000;
    for (;;) {
        const int code = getch(); /* of what was read ahead, or is there */
        if (code != ERR)
            return key_of(code);
        const uint64_t now_ns = wg__clock_ns();
        const uint64_t left_ns = deadline_ns > now_ns ? deadline_ns - now_ns : 0;
        const struct timespec left = {.tv_sec = (time_t)(left_ns / ns_per_s),
                                      .tv_nsec = (long)(left_ns % ns_per_s)};
        struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
        const int ready = ppoll(&input, 1, &left, &screen->before);
        if (ready > 0) { /* then ppoll lets no signal through */
            (void)pthread_sigmask(SIG_SETMASK, &screen->before, NULL);
            (void)pthread_sigmask(SIG_BLOCK, &screen->blocked, NULL);
        }
        const enum wg_top_key key = take_marks(screen);
        if (key != WG_TOP_KEY_NONE)
            return key;
        if (ready > 0 && (input.revents & (POLLERR | POLLHUP | POLLNVAL)) != 0) {
            end_signal = SIGHUP; /* the terminal has gone */
            return WG_TOP_KEY_QUIT;
        }
        if (ready == 0 || left_ns == 0)
            return WG_TOP_KEY_NONE;
    }
}

int wg__top_screen_signal(const struct wg_top_screen *screen)
{
    (void)screen;
    return end_signal == SIGINT ? 0 : end_signal; /* Ctrl-C is how one leaves a live view */
}
