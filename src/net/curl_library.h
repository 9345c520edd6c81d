/* SPDX-License-Identifier: MIT
 *
 * libcurl, loaded by who makes a request.
 *
 * It brings some thirty libraries along (TLS, Kerberos, LDAP, ..), and mapping them took 4 ms of
 * processor time of every command, most of which make no request: `wattgov --version` took 10. Its
 * soname has been the same since 2006.
 *
 * Owns: nothing; what is loaded stays for the life of the process.    Threads: any.
 */
#ifndef WG_NET_CURL_LIBRARY_H
#define WG_NET_CURL_LIBRARY_H

#include <curl/curl.h>

#include "base/error.h"

#define WG_CURL_LIBRARY "libcurl.so.4"

/* The calls that we make, without "curl_". */
#define WG_CURL_CALLS(X)                                                                           \
    X(easy_cleanup)                                                                                \
    X(easy_getinfo)                                                                                \
    X(easy_init)                                                                                   \
    X(easy_setopt)                                                                                 \
    X(easy_strerror)                                                                               \
    X(global_cleanup)                                                                              \
    X(global_init)                                                                                 \
    X(multi_add_handle)                                                                            \
    X(multi_assign)                                                                                \
    X(multi_cleanup)                                                                               \
    X(multi_info_read)                                                                             \
    X(multi_init)                                                                                  \
    X(multi_remove_handle)                                                                         \
    X(multi_setopt)                                                                                \
    X(multi_socket_action)

struct wg_curl {
#define X(name) __typeof__(curl_##name) *name;
    WG_CURL_CALLS(X)
#undef X
};

/* `library`: WG_CURL_LIBRARY, but for tests. WG_EUNSUPPORTED: it, or a call, is not there. */
enum wg_code wg__curl_load(struct wg_curl *out, const char *library, struct wg_error *err);

#endif
