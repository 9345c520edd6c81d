/* SPDX-License-Identifier: MIT
 *
 * The parts of NVML's binary interface that wattgov uses: numbers and memory layouts, declared by
 * us.
 *
 * NVML is loaded at run time (nvml_library.c) and its header is not needed to build. The layouts
 * are facts of the interface; tests/peers/nvml_abi compares every size, offset and number with the
 * header that NVIDIA publishes. The virtual GPU (vgpu/) answers with the same declarations.
 *
 * A versioned struct begins with its version word: its size, and the version in the top byte.
 */
#ifndef WG_DEVICE_NVML_ABI_H
#define WG_DEVICE_NVML_ABI_H

#include <stdint.h>

typedef struct nvml_device_opaque *nvml_device;

enum nvml_return {
    NVML_OK = 0,
    NVML_E_UNINITIALIZED = 1,
    NVML_E_INVALID_ARGUMENT = 2,
    NVML_E_NOT_SUPPORTED = 3,
    NVML_E_NO_PERMISSION = 4,
    NVML_E_ALREADY_INITIALIZED = 5,
    NVML_E_NOT_FOUND = 6,
    NVML_E_INSUFFICIENT_SIZE = 7,
    NVML_E_INSUFFICIENT_POWER = 8,
    NVML_E_DRIVER_NOT_LOADED = 9,
    NVML_E_TIMEOUT = 10,
    NVML_E_IRQ_ISSUE = 11,
    NVML_E_LIBRARY_NOT_FOUND = 12,
    NVML_E_FUNCTION_NOT_FOUND = 13,
    NVML_E_CORRUPTED_INFOROM = 14,
    NVML_E_GPU_IS_LOST = 15,
    NVML_E_RESET_REQUIRED = 16,
    NVML_E_OPERATING_SYSTEM = 17,
    NVML_E_VERSION_MISMATCH = 18, /* of library and driver */
    NVML_E_IN_USE = 19,
    NVML_E_MEMORY = 20,
    NVML_E_NO_DATA = 21,
    NVML_E_VGPU_ECC_NOT_SUPPORTED = 22,
    NVML_E_INSUFFICIENT_RESOURCES = 23,
    NVML_E_FREQ_NOT_SUPPORTED = 24,
    NVML_E_ARGUMENT_VERSION_MISMATCH = 25,
    NVML_E_DEPRECATED = 26,
    NVML_E_NOT_READY = 27,
    NVML_E_GPU_NOT_FOUND = 28,
    NVML_E_INVALID_STATE = 29,
    NVML_E_RESET_TYPE_NOT_SUPPORTED = 30,
    NVML_E_UNKNOWN = 999,
};

#define NVML_VERSION_WORD(type, version) ((uint32_t)(sizeof(type) | (version) << 24))

enum {
    NVML_INIT_NO_GPUS = 1,
    NVML_INIT_NO_ATTACH = 2,
    NVML_UUID_SIZE = 96,
    NVML_NAME_SIZE = 96,
    NVML_VERSION_SIZE = 80,
    NVML_MIG_DEVICES_MAX = 8,
};

enum nvml_clock { NVML_CLK_GRAPHICS = 0, NVML_CLK_SM = 1, NVML_CLK_MEMORY = 2, NVML_CLK_VIDEO = 3 };
enum { NVML_CLOCK_ID_CURRENT = 0, NVML_CLOCK_ID_BOOST_MAX = 3 };
enum { NVML_TEMPERATURE_DIE = 0 };
enum {
    NVML_THRESHOLD_SHUTDOWN = 0,
    NVML_THRESHOLD_SLOWDOWN = 1,
    NVML_THRESHOLD_GPU_MAX = 3,
};
enum { NVML_BRAND_TESLA = 2, NVML_BRAND_GEFORCE = 5, NVML_BRAND_NVIDIA = 14 };
enum { NVML_BUS_PCIE = 2 };
enum { NVML_SAMPLES_POWER = 0 };
enum { NVML_POLICY_POWER = 0, NVML_POLICY_THERMAL = 1 };
enum nvml_scope { NVML_SCOPE_GPU = 0, NVML_SCOPE_MODULE = 1, NVML_SCOPE_MEMORY = 2 };

enum nvml_field {
    NVML_FIELD_THROTTLED_POWER_NS = 74,
    NVML_FIELD_THROTTLED_THERMAL_NS = 75,
    NVML_FIELD_MEMORY_TEMPERATURE = 82,
    NVML_FIELD_ENERGY_MJ = 83,
    NVML_FIELD_POWER_AVERAGE_MW = 185,
    NVML_FIELD_POWER_INSTANT_MW = 186,
    NVML_FIELD_POWER_LIMIT_MIN_MW = 187,
    NVML_FIELD_POWER_LIMIT_MAX_MW = 188,
    NVML_FIELD_POWER_LIMIT_DEFAULT_MW = 189,
    NVML_FIELD_POWER_LIMIT_CURRENT_MW = 190, /* that holds */
    NVML_FIELD_ENERGY_SAME_MJ = 191,         /* as 83 */
    NVML_FIELD_POWER_LIMIT_REQUESTED_MW = 192,
    NVML_FIELD_THROTTLED_SW_THERMAL_NS = 269,
    NVML_FIELD_THROTTLED_HW_THERMAL_NS = 270,
    NVML_FIELD_THROTTLED_POWER_BRAKE_NS = 271,
};

enum nvml_value_type {
    NVML_TYPE_DOUBLE = 0,
    NVML_TYPE_UINT = 1,
    NVML_TYPE_ULONG = 2,
    NVML_TYPE_ULONG_LONG = 3,
    NVML_TYPE_LONG_LONG = 4,
    NVML_TYPE_INT = 5,
    NVML_TYPE_USHORT = 6,
};

enum nvml_clock_reason {
    NVML_REASON_IDLE = 0x1,
    NVML_REASON_CLOCK_SETTING = 0x2,
    NVML_REASON_POWER_LIMIT = 0x4,
    NVML_REASON_HW_SLOWDOWN = 0x8,
    NVML_REASON_SYNC_BOOST = 0x10,
    NVML_REASON_SW_THERMAL = 0x20,
    NVML_REASON_HW_THERMAL = 0x40,
    NVML_REASON_POWER_BRAKE = 0x80,
    NVML_REASON_DISPLAY = 0x100,
};

enum nvml_architecture {
    NVML_ARCH_KEPLER = 2,
    NVML_ARCH_MAXWELL = 3,
    NVML_ARCH_PASCAL = 4,
    NVML_ARCH_VOLTA = 5,
    NVML_ARCH_TURING = 6,
    NVML_ARCH_AMPERE = 7,
    NVML_ARCH_ADA = 8,
    NVML_ARCH_HOPPER = 9,
    NVML_ARCH_BLACKWELL = 10,
};

union nvml_value {
    double as_double;
    int as_int;
    unsigned as_uint;
    unsigned long as_ulong;
    unsigned long long as_ull;
    long long as_ll;
    unsigned short as_ushort;
};

struct nvml_field_value {
    unsigned field_id; /* enum nvml_field */
    unsigned scope_id; /* enum nvml_scope, or what the field counts */
    long long t_us;    /* since 1970, wall clock */
    long long latency_us;
    int value_type; /* enum nvml_value_type */
    int result;     /* enum nvml_return of this field alone */
    union nvml_value value;
};

struct nvml_pci_info {
    char bus_id_legacy[16];
    unsigned domain, bus, device;
    unsigned pci_device_id, pci_subsystem_id;
    char bus_id[32]; /* "00000000:1A:00.0" */
};

struct nvml_utilization {
    unsigned gpu_percent, memory_percent;
};

struct nvml_memory {
    unsigned long long total, free, used;
};

struct nvml_memory_v2 {
    unsigned version;
    unsigned long long total, reserved, free, used;
};

struct nvml_temperature {
    unsigned version;
    int sensor;
    int temperature_c;
};

struct nvml_margin_temperature {
    unsigned version;
    int margin_c;
};

struct nvml_process_v1 {
    unsigned pid;
    unsigned long long memory;
};

struct nvml_process { /* of the calls _v2 and _v3 */
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
};

struct nvml_process_r535 { /* of the calls _v3 of drivers 535.43 to 535.86 only */
    unsigned pid;
    unsigned long long memory;
    unsigned gpu_instance, compute_instance;
    unsigned long long protected_memory;
};

struct nvml_process_sample {
    unsigned pid;
    unsigned long long t_us;
    unsigned sm_percent, memory_percent, encoder_percent, decoder_percent;
};

struct nvml_sample {
    unsigned long long t_us;
    union nvml_value value;
};

struct nvml_power_value { /* version 2 */
    unsigned version;
    unsigned char scope; /* enum nvml_scope */
    unsigned power_mw;
};

struct nvml_violation {
    unsigned long long t_us, throttled_ns;
};

_Static_assert(sizeof(struct nvml_field_value) == 40, "layout of NVML");
_Static_assert(sizeof(struct nvml_pci_info) == 68, "layout of NVML");
_Static_assert(sizeof(struct nvml_memory_v2) == 40, "layout of NVML");
_Static_assert(sizeof(struct nvml_process) == 24, "layout of NVML");
_Static_assert(sizeof(struct nvml_process_r535) == 32, "layout of NVML");
_Static_assert(sizeof(struct nvml_process_sample) == 32, "layout of NVML");
_Static_assert(sizeof(struct nvml_power_value) == 12, "layout of NVML");
_Static_assert(NVML_VERSION_WORD(struct nvml_power_value, 2) == 0x200000c, "layout of NVML");

#endif
