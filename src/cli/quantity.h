/* SPDX-License-Identifier: MIT
 *
 * A device's numbers for people: "412.3 W", "1980 MHz", "63.2 GiB", "98 %".
 *
 * Programs get SI units and 17 digits (JSON, CSV); people get the unit they know and the digits
 * that a sensor has.
 *
 * Threads: pure, any thread.
 */
#ifndef WG_CLI_QUANTITY_H
#define WG_CLI_QUANTITY_H

#include "wattgov/device.h"

enum { WG_QUANTITY_TEXT_SIZE = 48 };

/* A metric's value; "n/a" for NAN. */
void wg__metric_text(char out[static WG_QUANTITY_TEXT_SIZE], enum wg_metric metric, double value);

/* The metric's smallest step, in the unit that its values are shown in: "0.001 W"; "" when it is
 * unknown. */
void wg__metric_step_text(char out[static WG_QUANTITY_TEXT_SIZE], enum wg_metric metric,
                          double step);

/* A knob's value, as above. */
void wg__knob_text(char out[static WG_QUANTITY_TEXT_SIZE], enum wg_knob knob, double value);

/* Bytes; joules, of which there can be many: "850.0 J", "12.35 kJ", "4.301 MJ". */
void wg__bytes_text(char out[static WG_QUANTITY_TEXT_SIZE], double bytes);
void wg__joules_text(char out[static WG_QUANTITY_TEXT_SIZE], double energy_j);

#endif
