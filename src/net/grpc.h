/* SPDX-License-Identifier: MIT
 *
 * gRPC over HTTP/2: the frame around a message, and how a call ended.
 *
 *     0      1          5
 *     +------+----------+------------------ -        compressed: 0 (we send and take no other)
 *     | 0    | length   | message ...                length: big-endian
 *     +------+----------+------------------ -
 *
 * A unary answer is exactly one frame; the status comes behind it as HTTP trailers, or instead of
 * it as headers. Source: "gRPC over HTTP2" of the gRPC project.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_NET_GRPC_H
#define WG_NET_GRPC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WG_GRPC_PREFIX_SIZE = 5,
    WG_GRPC_OK = 0,
    WG_GRPC_UNKNOWN = 2,
    WG_GRPC_DEADLINE_EXCEEDED = 4,
    WG_GRPC_NOT_FOUND = 5,
    WG_GRPC_RESOURCE_EXHAUSTED = 8,
    WG_GRPC_UNIMPLEMENTED = 12,
    WG_GRPC_UNAVAILABLE = 14,
    WG_GRPC_STATUS_MAX = 16
};

void wg__grpc_prefix(uint8_t out[static WG_GRPC_PREFIX_SIZE], uint32_t length);

/* The message in the body of a unary answer; NULL, or one line of what is wrong with it. */
const char *wg__grpc_message(const char *body, size_t length, const uint8_t **message,
                             size_t *message_length);

/* "UNAVAILABLE"; "an unknown status" where there is none. */
const char *wg__grpc_status_word(int status);

/* grpc-message is percent-encoded UTF-8: decodes it into `out`, cut to fit and ended by a zero
 * byte. A percent sign without two hexadecimal digits stands for itself. */
void wg__grpc_decode(char *out, size_t size, const char *text, size_t length);

/* The value of grpc-timeout for a deadline: at most 8 digits and a unit, "1500m". */
enum { WG_GRPC_TIMEOUT_SIZE = 16 };
void wg__grpc_timeout(char out[static WG_GRPC_TIMEOUT_SIZE], double timeout_s);

#endif
