/* SPDX-License-Identifier: MIT
 *
 * libwattgov: what a program costs in joules and seconds. This header includes the others.
 */
#ifndef WATTGOV_WATTGOV_H
#define WATTGOV_WATTGOV_H

#include "wattgov/device.h"  // IWYU pragma: export
#include "wattgov/error.h"   // IWYU pragma: export
#include "wattgov/version.h" // IWYU pragma: export
#include "wattgov/window.h"  // IWYU pragma: export

#endif
