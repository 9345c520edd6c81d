/* SPDX-License-Identifier: MIT
 *
 * gRPC's frame and status.
 *
 * Threads: pure, any thread.
 */
#include "net/grpc.h"

#include <math.h>
#include <stdio.h>

void wg__grpc_prefix(uint8_t out[static WG_GRPC_PREFIX_SIZE], uint32_t length)
{
    out[0] = 0;
    out[1] = (uint8_t)(length >> 24);
    out[2] = (uint8_t)(length >> 16);
    out[3] = (uint8_t)(length >> 8);
    out[4] = (uint8_t)length;
}

const char *wg__grpc_message(const char *body, size_t length, const uint8_t **message,
                             size_t *message_length)
{
    const uint8_t *bytes = (const uint8_t *)body;
    if (length < WG_GRPC_PREFIX_SIZE)
        return "the answer is shorter than a gRPC frame's prefix";
    if (bytes[0] != 0)
        return "the answer's gRPC frame is compressed or damaged";
    const size_t told =
        (size_t)bytes[1] << 24 | (size_t)bytes[2] << 16 | (size_t)bytes[3] << 8 | (size_t)bytes[4];
    if (told > length - WG_GRPC_PREFIX_SIZE)
        return "the answer's gRPC frame is cut off";
    if (told < length - WG_GRPC_PREFIX_SIZE)
        return "bytes behind the answer's gRPC frame";
    *message = bytes + WG_GRPC_PREFIX_SIZE;
    *message_length = told;
    return NULL;
}

const char *wg__grpc_status_word(int status)
{
    static const char *const words[] = {
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    };
    return status >= 0 && status <= WG_GRPC_STATUS_MAX ? words[status] : "an unknown status";
}

static int hexadecimal(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    if (digit >= 'A' && digit <= 'F')
        return digit - 'A' + 10;
    return -1;
}

void wg__grpc_decode(char *out, size_t size, const char *text, size_t length)
{
    size_t written = 0;
    for (size_t at = 0; at < length && written + 1 < size; at++) {
        char byte = text[at];
        if (byte == '%' && length - at > 2 && hexadecimal(text[at + 1]) >= 0 &&
            hexadecimal(text[at + 2]) >= 0) {
            byte = (char)(hexadecimal(text[at + 1]) * 16 + hexadecimal(text[at + 2]));
            at += 2;
        }
        out[written++] = byte == '\0' ? '?' : byte;
    }
    out[written] = '\0';
}

void wg__grpc_timeout(char out[static WG_GRPC_TIMEOUT_SIZE], double timeout_s)
{
    const double most = 99999999.0;
    const double milliseconds = ceil(timeout_s * 1e3);
    const bool fits = milliseconds <= most;
    const double value = fits ? milliseconds : fmin(ceil(timeout_s), most);
    (void)snprintf(out, WG_GRPC_TIMEOUT_SIZE, "%.0f%c", value, fits ? 'm' : 'S');
}
