/* SPDX-License-Identifier: MIT
 *
 * Our declarations of NVML's binary interface beside the header that NVIDIA publishes: compiles
 * only when every number, size and offset is the same. The script `run` brings that header, and
 * writes ours.h: src/device/nvml_abi.h with its numbers called OURS_..., since some names are both.
 * It also sees to it that none of our numbers and structs is left out here.
 *
 * Threads: none, it is never run.
 */
#include <stddef.h>

#include <nvml.h>

#include "ours.h"

#define SAME_NUMBER(ours, theirs)                                                                  \
    _Static_assert((long long)(ours) == (long long)(theirs), #ours " is not " #theirs)
#define SAME_SIZE(ours, theirs)                                                                    \
    _Static_assert(sizeof(ours) == sizeof(theirs), "the size of " #ours " is not that "            \
                                                   "of " #theirs)
#define SAME_PLACE(ours, our_member, theirs, their_member)                                         \
    _Static_assert(offsetof(ours, our_member) == offsetof(theirs, their_member) &&                 \
                       sizeof((ours *)0)->our_member == sizeof((theirs *)0)->their_member,         \
                   #ours "." #our_member " is not " #theirs "." #their_member)

/* NVML_MIG_DEVICES_MAX and struct nvml_process_r535 are in no header: the first is what GPUs can be
 * split into, the second was shipped by drivers 535.43 to 535.86 and taken back. */

/* -- Codes ------------------------------------------------------------------------------------- */

SAME_NUMBER(OURS_OK, NVML_SUCCESS);
SAME_NUMBER(OURS_E_UNINITIALIZED, NVML_ERROR_UNINITIALIZED);
SAME_NUMBER(OURS_E_INVALID_ARGUMENT, NVML_ERROR_INVALID_ARGUMENT);
SAME_NUMBER(OURS_E_NOT_SUPPORTED, NVML_ERROR_NOT_SUPPORTED);
SAME_NUMBER(OURS_E_NO_PERMISSION, NVML_ERROR_NO_PERMISSION);
SAME_NUMBER(OURS_E_ALREADY_INITIALIZED, NVML_ERROR_ALREADY_INITIALIZED);
SAME_NUMBER(OURS_E_NOT_FOUND, NVML_ERROR_NOT_FOUND);
SAME_NUMBER(OURS_E_INSUFFICIENT_SIZE, NVML_ERROR_INSUFFICIENT_SIZE);
SAME_NUMBER(OURS_E_INSUFFICIENT_POWER, NVML_ERROR_INSUFFICIENT_POWER);
SAME_NUMBER(OURS_E_DRIVER_NOT_LOADED, NVML_ERROR_DRIVER_NOT_LOADED);
SAME_NUMBER(OURS_E_TIMEOUT, NVML_ERROR_TIMEOUT);
SAME_NUMBER(OURS_E_IRQ_ISSUE, NVML_ERROR_IRQ_ISSUE);
SAME_NUMBER(OURS_E_LIBRARY_NOT_FOUND, NVML_ERROR_LIBRARY_NOT_FOUND);
SAME_NUMBER(OURS_E_FUNCTION_NOT_FOUND, NVML_ERROR_FUNCTION_NOT_FOUND);
SAME_NUMBER(OURS_E_CORRUPTED_INFOROM, NVML_ERROR_CORRUPTED_INFOROM);
SAME_NUMBER(OURS_E_GPU_IS_LOST, NVML_ERROR_GPU_IS_LOST);
SAME_NUMBER(OURS_E_RESET_REQUIRED, NVML_ERROR_RESET_REQUIRED);
SAME_NUMBER(OURS_E_OPERATING_SYSTEM, NVML_ERROR_OPERATING_SYSTEM);
SAME_NUMBER(OURS_E_VERSION_MISMATCH, NVML_ERROR_LIB_RM_VERSION_MISMATCH);
SAME_NUMBER(OURS_E_IN_USE, NVML_ERROR_IN_USE);
SAME_NUMBER(OURS_E_MEMORY, NVML_ERROR_MEMORY);
SAME_NUMBER(OURS_E_NO_DATA, NVML_ERROR_NO_DATA);
SAME_NUMBER(OURS_E_VGPU_ECC_NOT_SUPPORTED, NVML_ERROR_VGPU_ECC_NOT_SUPPORTED);
SAME_NUMBER(OURS_E_INSUFFICIENT_RESOURCES, NVML_ERROR_INSUFFICIENT_RESOURCES);
SAME_NUMBER(OURS_E_FREQ_NOT_SUPPORTED, NVML_ERROR_FREQ_NOT_SUPPORTED);
SAME_NUMBER(OURS_E_ARGUMENT_VERSION_MISMATCH, NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
SAME_NUMBER(OURS_E_DEPRECATED, NVML_ERROR_DEPRECATED);
SAME_NUMBER(OURS_E_NOT_READY, NVML_ERROR_NOT_READY);
SAME_NUMBER(OURS_E_GPU_NOT_FOUND, NVML_ERROR_GPU_NOT_FOUND);
SAME_NUMBER(OURS_E_INVALID_STATE, NVML_ERROR_INVALID_STATE);
SAME_NUMBER(OURS_E_UNKNOWN, NVML_ERROR_UNKNOWN);

SAME_NUMBER(OURS_E_RESET_TYPE_NOT_SUPPORTED, NVML_ERROR_RESET_TYPE_NOT_SUPPORTED);

/* -- Numbers ----------------------------------------------------------------------------------- */

SAME_NUMBER(OURS_INIT_NO_GPUS, NVML_INIT_FLAG_NO_GPUS);
SAME_NUMBER(OURS_INIT_NO_ATTACH, NVML_INIT_FLAG_NO_ATTACH);
SAME_NUMBER(OURS_UUID_SIZE, NVML_DEVICE_UUID_V2_BUFFER_SIZE);
SAME_NUMBER(OURS_NAME_SIZE, NVML_DEVICE_NAME_V2_BUFFER_SIZE);
SAME_NUMBER(OURS_VERSION_SIZE, NVML_SYSTEM_DRIVER_VERSION_BUFFER_SIZE);

SAME_NUMBER(OURS_CLK_GRAPHICS, NVML_CLOCK_GRAPHICS);
SAME_NUMBER(OURS_CLK_SM, NVML_CLOCK_SM);
SAME_NUMBER(OURS_CLK_MEMORY, NVML_CLOCK_MEM);
SAME_NUMBER(OURS_CLK_VIDEO, NVML_CLOCK_VIDEO);
SAME_NUMBER(OURS_CLOCK_ID_CURRENT, NVML_CLOCK_ID_CURRENT);
SAME_NUMBER(OURS_CLOCK_ID_BOOST_MAX, NVML_CLOCK_ID_CUSTOMER_BOOST_MAX);
SAME_NUMBER(OURS_THRESHOLD_SHUTDOWN, NVML_TEMPERATURE_THRESHOLD_SHUTDOWN);
SAME_NUMBER(OURS_THRESHOLD_SLOWDOWN, NVML_TEMPERATURE_THRESHOLD_SLOWDOWN);
SAME_NUMBER(OURS_THRESHOLD_GPU_MAX, NVML_TEMPERATURE_THRESHOLD_GPU_MAX);
SAME_NUMBER(OURS_BRAND_TESLA, NVML_BRAND_TESLA);
SAME_NUMBER(OURS_BRAND_GEFORCE, NVML_BRAND_GEFORCE);
SAME_NUMBER(OURS_BRAND_NVIDIA, NVML_BRAND_NVIDIA);
SAME_NUMBER(OURS_BUS_PCIE, NVML_BUS_TYPE_PCIE);
SAME_NUMBER(OURS_SAMPLES_POWER, NVML_TOTAL_POWER_SAMPLES);
SAME_NUMBER(OURS_POLICY_POWER, NVML_PERF_POLICY_POWER);
SAME_NUMBER(OURS_POLICY_THERMAL, NVML_PERF_POLICY_THERMAL);
SAME_NUMBER(OURS_TEMPERATURE_DIE, NVML_TEMPERATURE_GPU);
SAME_NUMBER(OURS_SCOPE_GPU, NVML_POWER_SCOPE_GPU);
SAME_NUMBER(OURS_SCOPE_MODULE, NVML_POWER_SCOPE_MODULE);
SAME_NUMBER(OURS_SCOPE_MEMORY, NVML_POWER_SCOPE_MEMORY);

SAME_NUMBER(OURS_FIELD_THROTTLED_POWER_NS, NVML_FI_DEV_PERF_POLICY_POWER);
SAME_NUMBER(OURS_FIELD_THROTTLED_THERMAL_NS, NVML_FI_DEV_PERF_POLICY_THERMAL);
SAME_NUMBER(OURS_FIELD_MEMORY_TEMPERATURE, NVML_FI_DEV_MEMORY_TEMP);
SAME_NUMBER(OURS_FIELD_ENERGY_MJ, NVML_FI_DEV_TOTAL_ENERGY_CONSUMPTION);
SAME_NUMBER(OURS_FIELD_POWER_AVERAGE_MW, NVML_FI_DEV_POWER_AVERAGE);
SAME_NUMBER(OURS_FIELD_POWER_INSTANT_MW, NVML_FI_DEV_POWER_INSTANT);
SAME_NUMBER(OURS_FIELD_POWER_LIMIT_MIN_MW, NVML_FI_DEV_POWER_MIN_LIMIT);
SAME_NUMBER(OURS_FIELD_POWER_LIMIT_MAX_MW, NVML_FI_DEV_POWER_MAX_LIMIT);
SAME_NUMBER(OURS_FIELD_POWER_LIMIT_DEFAULT_MW, NVML_FI_DEV_POWER_DEFAULT_LIMIT);
SAME_NUMBER(OURS_FIELD_POWER_LIMIT_CURRENT_MW, NVML_FI_DEV_POWER_CURRENT_LIMIT);
SAME_NUMBER(OURS_FIELD_ENERGY_SAME_MJ, NVML_FI_DEV_ENERGY);
SAME_NUMBER(OURS_FIELD_POWER_LIMIT_REQUESTED_MW, NVML_FI_DEV_POWER_REQUESTED_LIMIT);
SAME_NUMBER(OURS_FIELD_THROTTLED_SW_THERMAL_NS, NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN);
SAME_NUMBER(OURS_FIELD_THROTTLED_HW_THERMAL_NS, NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN);
SAME_NUMBER(OURS_FIELD_THROTTLED_POWER_BRAKE_NS,
            NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_POWER_BRAKE_SLOWDOWN);

SAME_NUMBER(OURS_TYPE_DOUBLE, NVML_VALUE_TYPE_DOUBLE);
SAME_NUMBER(OURS_TYPE_UINT, NVML_VALUE_TYPE_UNSIGNED_INT);
SAME_NUMBER(OURS_TYPE_ULONG, NVML_VALUE_TYPE_UNSIGNED_LONG);
SAME_NUMBER(OURS_TYPE_ULONG_LONG, NVML_VALUE_TYPE_UNSIGNED_LONG_LONG);
SAME_NUMBER(OURS_TYPE_LONG_LONG, NVML_VALUE_TYPE_SIGNED_LONG_LONG);
SAME_NUMBER(OURS_TYPE_INT, NVML_VALUE_TYPE_SIGNED_INT);
SAME_NUMBER(OURS_TYPE_USHORT, NVML_VALUE_TYPE_UNSIGNED_SHORT);

SAME_NUMBER(OURS_REASON_IDLE, nvmlClocksEventReasonGpuIdle);
SAME_NUMBER(OURS_REASON_CLOCK_SETTING, nvmlClocksEventReasonApplicationsClocksSetting);
SAME_NUMBER(OURS_REASON_POWER_LIMIT, nvmlClocksEventReasonSwPowerCap);
SAME_NUMBER(OURS_REASON_HW_SLOWDOWN, nvmlClocksThrottleReasonHwSlowdown);
SAME_NUMBER(OURS_REASON_SYNC_BOOST, nvmlClocksEventReasonSyncBoost);
SAME_NUMBER(OURS_REASON_SW_THERMAL, nvmlClocksEventReasonSwThermalSlowdown);
SAME_NUMBER(OURS_REASON_HW_THERMAL, nvmlClocksThrottleReasonHwThermalSlowdown);
SAME_NUMBER(OURS_REASON_POWER_BRAKE, nvmlClocksThrottleReasonHwPowerBrakeSlowdown);
SAME_NUMBER(OURS_REASON_DISPLAY, nvmlClocksEventReasonDisplayClockSetting);

SAME_NUMBER(OURS_ARCH_KEPLER, NVML_DEVICE_ARCH_KEPLER);
SAME_NUMBER(OURS_ARCH_MAXWELL, NVML_DEVICE_ARCH_MAXWELL);
SAME_NUMBER(OURS_ARCH_PASCAL, NVML_DEVICE_ARCH_PASCAL);
SAME_NUMBER(OURS_ARCH_VOLTA, NVML_DEVICE_ARCH_VOLTA);
SAME_NUMBER(OURS_ARCH_TURING, NVML_DEVICE_ARCH_TURING);
SAME_NUMBER(OURS_ARCH_AMPERE, NVML_DEVICE_ARCH_AMPERE);
SAME_NUMBER(OURS_ARCH_ADA, NVML_DEVICE_ARCH_ADA);
SAME_NUMBER(OURS_ARCH_HOPPER, NVML_DEVICE_ARCH_HOPPER);
SAME_NUMBER(OURS_ARCH_BLACKWELL, NVML_DEVICE_ARCH_BLACKWELL);

/* -- Layouts ----------------------------------------------------------------------------------- */

SAME_SIZE(union nvml_value, nvmlValue_t);
SAME_PLACE(union nvml_value, as_double, nvmlValue_t, dVal);
SAME_PLACE(union nvml_value, as_int, nvmlValue_t, siVal);
SAME_PLACE(union nvml_value, as_uint, nvmlValue_t, uiVal);
SAME_PLACE(union nvml_value, as_ulong, nvmlValue_t, ulVal);
SAME_PLACE(union nvml_value, as_ull, nvmlValue_t, ullVal);
SAME_PLACE(union nvml_value, as_ll, nvmlValue_t, sllVal);
SAME_PLACE(union nvml_value, as_ushort, nvmlValue_t, usVal);

SAME_SIZE(struct nvml_field_value, nvmlFieldValue_t);
SAME_PLACE(struct nvml_field_value, field_id, nvmlFieldValue_t, fieldId);
SAME_PLACE(struct nvml_field_value, scope_id, nvmlFieldValue_t, scopeId);
SAME_PLACE(struct nvml_field_value, t_us, nvmlFieldValue_t, timestamp);
SAME_PLACE(struct nvml_field_value, latency_us, nvmlFieldValue_t, latencyUsec);
SAME_PLACE(struct nvml_field_value, value_type, nvmlFieldValue_t, valueType);
SAME_PLACE(struct nvml_field_value, result, nvmlFieldValue_t, nvmlReturn);
SAME_PLACE(struct nvml_field_value, value, nvmlFieldValue_t, value);

SAME_SIZE(struct nvml_pci_info, nvmlPciInfo_t);
SAME_PLACE(struct nvml_pci_info, bus_id_legacy, nvmlPciInfo_t, busIdLegacy);
SAME_PLACE(struct nvml_pci_info, domain, nvmlPciInfo_t, domain);
SAME_PLACE(struct nvml_pci_info, bus, nvmlPciInfo_t, bus);
SAME_PLACE(struct nvml_pci_info, device, nvmlPciInfo_t, device);
SAME_PLACE(struct nvml_pci_info, pci_device_id, nvmlPciInfo_t, pciDeviceId);
SAME_PLACE(struct nvml_pci_info, pci_subsystem_id, nvmlPciInfo_t, pciSubSystemId);
SAME_PLACE(struct nvml_pci_info, bus_id, nvmlPciInfo_t, busId);

SAME_SIZE(struct nvml_utilization, nvmlUtilization_t);
SAME_PLACE(struct nvml_utilization, gpu_percent, nvmlUtilization_t, gpu);
SAME_PLACE(struct nvml_utilization, memory_percent, nvmlUtilization_t, memory);

SAME_SIZE(struct nvml_memory, nvmlMemory_t);
SAME_PLACE(struct nvml_memory, total, nvmlMemory_t, total);
SAME_PLACE(struct nvml_memory, free, nvmlMemory_t, free);
SAME_PLACE(struct nvml_memory, used, nvmlMemory_t, used);

SAME_SIZE(struct nvml_memory_v2, nvmlMemory_v2_t);
SAME_PLACE(struct nvml_memory_v2, version, nvmlMemory_v2_t, version);
SAME_PLACE(struct nvml_memory_v2, total, nvmlMemory_v2_t, total);
SAME_PLACE(struct nvml_memory_v2, reserved, nvmlMemory_v2_t, reserved);
SAME_PLACE(struct nvml_memory_v2, free, nvmlMemory_v2_t, free);
SAME_PLACE(struct nvml_memory_v2, used, nvmlMemory_v2_t, used);
/* Field report 41: the version word is made of the size too. */
SAME_NUMBER(OURS_VERSION_WORD(struct nvml_memory_v2, 2), nvmlMemory_v2);

SAME_SIZE(struct nvml_temperature, nvmlTemperature_t);
SAME_PLACE(struct nvml_temperature, version, nvmlTemperature_t, version);
SAME_PLACE(struct nvml_temperature, sensor, nvmlTemperature_t, sensorType);
SAME_PLACE(struct nvml_temperature, temperature_c, nvmlTemperature_t, temperature);
SAME_NUMBER(OURS_VERSION_WORD(struct nvml_temperature, 1), nvmlTemperature_v1);

SAME_SIZE(struct nvml_margin_temperature, nvmlMarginTemperature_t);
SAME_PLACE(struct nvml_margin_temperature, version, nvmlMarginTemperature_t, version);
SAME_PLACE(struct nvml_margin_temperature, margin_c, nvmlMarginTemperature_t, marginTemperature);

SAME_SIZE(struct nvml_process_v1, nvmlProcessInfo_v1_t);
SAME_PLACE(struct nvml_process_v1, pid, nvmlProcessInfo_v1_t, pid);
SAME_PLACE(struct nvml_process_v1, memory, nvmlProcessInfo_v1_t, usedGpuMemory);

SAME_SIZE(struct nvml_process, nvmlProcessInfo_t);
SAME_SIZE(struct nvml_process, nvmlProcessInfo_v2_t);
SAME_PLACE(struct nvml_process, pid, nvmlProcessInfo_t, pid);
SAME_PLACE(struct nvml_process, memory, nvmlProcessInfo_t, usedGpuMemory);
SAME_PLACE(struct nvml_process, gpu_instance, nvmlProcessInfo_t, gpuInstanceId);
SAME_PLACE(struct nvml_process, compute_instance, nvmlProcessInfo_t, computeInstanceId);

SAME_SIZE(struct nvml_process_sample, nvmlProcessUtilizationSample_t);
SAME_PLACE(struct nvml_process_sample, pid, nvmlProcessUtilizationSample_t, pid);
SAME_PLACE(struct nvml_process_sample, t_us, nvmlProcessUtilizationSample_t, timeStamp);
SAME_PLACE(struct nvml_process_sample, sm_percent, nvmlProcessUtilizationSample_t, smUtil);
SAME_PLACE(struct nvml_process_sample, memory_percent, nvmlProcessUtilizationSample_t, memUtil);
SAME_PLACE(struct nvml_process_sample, encoder_percent, nvmlProcessUtilizationSample_t, encUtil);
SAME_PLACE(struct nvml_process_sample, decoder_percent, nvmlProcessUtilizationSample_t, decUtil);

SAME_SIZE(struct nvml_sample, nvmlSample_t);
SAME_PLACE(struct nvml_sample, t_us, nvmlSample_t, timeStamp);
SAME_PLACE(struct nvml_sample, value, nvmlSample_t, sampleValue);

SAME_SIZE(struct nvml_power_value, nvmlPowerValue_v2_t);
SAME_PLACE(struct nvml_power_value, version, nvmlPowerValue_v2_t, version);
SAME_PLACE(struct nvml_power_value, scope, nvmlPowerValue_v2_t, powerScope);
SAME_PLACE(struct nvml_power_value, power_mw, nvmlPowerValue_v2_t, powerValueMw);
SAME_NUMBER(OURS_VERSION_WORD(struct nvml_power_value, 2), nvmlPowerValue_v2);

SAME_SIZE(struct nvml_violation, nvmlViolationTime_t);
SAME_PLACE(struct nvml_violation, t_us, nvmlViolationTime_t, referenceTime);
SAME_PLACE(struct nvml_violation, throttled_ns, nvmlViolationTime_t, violationTime);
