# SPDX-License-Identifier: MIT
"""nvidia-ml-py, NVIDIA's own Python binding, on an A100, a T4, a GTX 1080 and an H200."""
import unittest

import pynvml as nvml

import virtual_gpu

A100, T4, GTX1080, H200 = range(4)


class Test(unittest.TestCase):
    def setUp(self):
        nvml.nvmlInit()
        self.addCleanup(nvml.nvmlShutdown)
        self.devices = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]

    def test_identities_are_those_of_the_machine(self):
        truth = virtual_gpu.show()
        self.assertEqual(nvml.nvmlSystemGetDriverVersion(), truth["driver"])
        self.assertEqual(nvml.nvmlSystemGetNVMLVersion(), truth["nvml_version"])
        self.assertEqual(nvml.nvmlSystemGetCudaDriverVersion(), 12020)
        self.assertEqual([nvml.nvmlDeviceGetName(device) for device in self.devices],
                         ["NVIDIA A100-SXM4-80GB", "Tesla T4", "NVIDIA GeForce GTX 1080", "NVIDIA H200"])
        self.assertEqual([nvml.nvmlDeviceGetUUID(device) for device in self.devices],
                         [gpu["uuid"] for gpu in truth["gpus"]])
        pci = nvml.nvmlDeviceGetPciInfo(self.devices[H200])
        self.assertEqual((pci.busId, pci.pciDeviceId), (truth["gpus"][H200]["pci"], 0x233510DE))
        again = nvml.nvmlDeviceGetHandleByUUID(truth["gpus"][T4]["uuid"])
        self.assertEqual(nvml.nvmlDeviceGetIndex(again), T4)
        self.assertEqual(nvml.nvmlDeviceGetIndex(nvml.nvmlDeviceGetHandleByPciBusId(pci.busId)), H200)
        self.assertEqual([nvml.nvmlDeviceGetArchitecture(device) for device in self.devices],
                         [nvml.NVML_DEVICE_ARCH_AMPERE, nvml.NVML_DEVICE_ARCH_TURING, nvml.NVML_DEVICE_ARCH_PASCAL,
                          nvml.NVML_DEVICE_ARCH_HOPPER])
        self.assertEqual(nvml.nvmlDeviceGetCudaComputeCapability(self.devices[T4]), (7, 5))
        self.assertEqual(nvml.nvmlDeviceGetMemoryInfo(self.devices[H200]).total, 143771 << 20)

    def test_clocks_are_those_of_the_machine(self):
        device = self.devices[A100]
        memory, = nvml.nvmlDeviceGetSupportedMemoryClocks(device)
        clocks = nvml.nvmlDeviceGetSupportedGraphicsClocks(device, memory)
        self.assertEqual(sorted(clocks), list(range(210, 1411, 15)))
        self.assertEqual(nvml.nvmlDeviceGetMaxClockInfo(device, nvml.NVML_CLOCK_SM), 1410)
        with virtual_gpu.load(A100, "--utilization", 0.5):
            self.assertEqual(nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM), 1410)
            nvml.nvmlDeviceSetGpuLockedClocks(device, 210, 810)
            self.assertEqual(nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM), 810)
            nvml.nvmlDeviceResetGpuLockedClocks(device)
            self.assertEqual(nvml.nvmlDeviceGetClockInfo(device, nvml.NVML_CLOCK_SM), 1410)
        with self.assertRaises(nvml.NVMLError_NotSupported):
            nvml.nvmlDeviceSetGpuLockedClocks(self.devices[GTX1080], 500, 500)

    def test_limits_are_set_read_back_and_bind(self):
        device = self.devices[T4]
        self.assertEqual(nvml.nvmlDeviceGetPowerManagementLimitConstraints(device), [60000, 70000])
        self.assertEqual(nvml.nvmlDeviceGetPowerManagementDefaultLimit(device), 70000)
        nvml.nvmlDeviceSetPowerManagementLimit(device, 65000)
        self.assertEqual(nvml.nvmlDeviceGetPowerManagementLimit(device), 65000)
        self.assertEqual(nvml.nvmlDeviceGetEnforcedPowerLimit(device), 65000)
        with virtual_gpu.load(T4):
            virtual_gpu.wait_for(lambda: nvml.nvmlDeviceGetPowerUsage(device) > 60000, "the power")
            self.assertLessEqual(nvml.nvmlDeviceGetPowerUsage(device), 65000)
            reasons = nvml.nvmlDeviceGetCurrentClocksEventReasons(device)
            self.assertTrue(reasons & nvml.nvmlClocksEventReasonSwPowerCap)
        with self.assertRaises(nvml.NVMLError_InvalidArgument):
            nvml.nvmlDeviceSetPowerManagementLimit(device, 71000)
        nvml.nvmlDeviceSetPowerManagementLimit(device, 70000)

    def test_energy_grows_at_the_right_rate(self):
        device = self.devices[A100]
        with virtual_gpu.load(A100):
            used, least, most = virtual_gpu.energy_while(
                A100, 0.5, lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(device) / 1000)
        tick = 0.1 * 400  # the counter's period at the limit
        self.assertGreater(least, 150)
        self.assertGreaterEqual(used, least - tick)
        self.assertLessEqual(used, most + tick)
        with self.assertRaises(nvml.NVMLError_NotSupported):
            nvml.nvmlDeviceGetTotalEnergyConsumption(self.devices[GTX1080])

    def test_field_values_tell_instant_from_average(self):
        ids = [nvml.NVML_FI_DEV_POWER_INSTANT, nvml.NVML_FI_DEV_POWER_AVERAGE]
        instant, average = nvml.nvmlDeviceGetFieldValues(self.devices[H200], ids)
        self.assertEqual((instant.nvmlReturn, average.nvmlReturn), (0, 0))
        with virtual_gpu.load(H200):
            def has_arrived():
                instant, average = nvml.nvmlDeviceGetFieldValues(self.devices[H200], ids)
                # 25 ms and a second behind the step: the average comes last.
                self.assertLessEqual(average.value.uiVal, instant.value.uiVal + 1)
                return average.value.uiVal > 627000
            virtual_gpu.wait_for(has_arrived, "the average power")
        instant, average = nvml.nvmlDeviceGetFieldValues(self.devices[A100], ids)
        self.assertEqual(instant.nvmlReturn, 0)
        self.assertEqual(average.nvmlReturn, nvml.NVML_ERROR_NOT_SUPPORTED)

    def test_utilisation_and_processes_are_those_of_the_load(self):
        device = self.devices[H200]
        self.assertEqual(nvml.nvmlDeviceGetComputeRunningProcesses(device), [])
        with virtual_gpu.load(H200, "--utilization", 0.5, "--memory", 2048) as process:
            self.assertEqual(nvml.nvmlDeviceGetUtilizationRates(device).gpu, 50)
            running, = nvml.nvmlDeviceGetComputeRunningProcesses(device)
            self.assertEqual((running.pid, running.usedGpuMemory), (process.pid, 2048 << 20))
            memory = nvml.nvmlDeviceGetMemoryInfo(device, version=nvml.nvmlMemory_v2)
            self.assertEqual((memory.total, memory.used), (143771 << 20, 2048 << 20))
            self.assertEqual(memory.total - memory.free, memory.used + memory.reserved)

    def test_faults_come_as_the_errors_of_the_binding(self):
        with virtual_gpu.fault("lost", "--gpu", T4):
            with self.assertRaises(nvml.NVMLError_GpuIsLost):
                nvml.nvmlDeviceGetPowerUsage(self.devices[T4])
        with virtual_gpu.fault("error", "--code", 999, "--function", "nvmlDeviceGetTemperature"):
            with self.assertRaises(nvml.NVMLError_Unknown):
                nvml.nvmlDeviceGetTemperature(self.devices[T4], nvml.NVML_TEMPERATURE_GPU)
        self.assertEqual(nvml.nvmlDeviceGetTemperature(self.devices[T4], nvml.NVML_TEMPERATURE_GPU),
                         int(virtual_gpu.gpus()[T4]["temperature_c"]))


if __name__ == "__main__":
    unittest.main()
