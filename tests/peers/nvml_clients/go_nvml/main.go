// SPDX-License-Identifier: MIT

// Command go_nvml prints what NVIDIA's Go binding sees as one line of JSON a GPU; with "set I MILLIWATTS" it
// sets a power limit first and prints the code.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

type gpu struct {
	Name          string   `json:"name"`
	UUID          string   `json:"uuid"`
	PCI           string   `json:"pci"`
	LimitMW       uint32   `json:"limit_mw"`
	LimitMinMW    uint32   `json:"limit_min_mw"`
	LimitMaxMW    uint32   `json:"limit_max_mw"`
	PowerMW       uint32   `json:"power_mw"`
	MemoryTotal   uint64   `json:"memory_total"`
	SMClockMHz    uint32   `json:"sm_clock_mhz"`
	EnergyMJ      uint64   `json:"energy_mj"`
	EnergyReturn  int32    `json:"energy_return"`
	InstantReturn uint32   `json:"instant_return"`
	Architecture  uint32   `json:"architecture"`
	Clocks        int      `json:"clocks"`
	MemoryClocks  int      `json:"memory_clocks"`
	Unsupported   string   `json:"unsupported"`
	Processes     []uint32 `json:"processes"`
}

func must(ret nvml.Return, what string) {
	if ret != nvml.SUCCESS {
		fmt.Fprintf(os.Stderr, "%s: %s\n", what, nvml.ErrorString(ret))
		os.Exit(1)
	}
}

func read(device nvml.Device) gpu {
	var one gpu
	var ret nvml.Return
	one.Name, ret = device.GetName()
	must(ret, "name")
	one.UUID, ret = device.GetUUID()
	must(ret, "uuid")
	pci, ret := device.GetPciInfo()
	must(ret, "pci")
	for _, char := range pci.BusId {
		if char != 0 {
			one.PCI += string(rune(char))
		}
	}
	one.LimitMW, ret = device.GetPowerManagementLimit()
	must(ret, "limit")
	one.LimitMinMW, one.LimitMaxMW, ret = device.GetPowerManagementLimitConstraints()
	must(ret, "constraints")
	one.PowerMW, ret = device.GetPowerUsage()
	must(ret, "power")
	memory, ret := device.GetMemoryInfo()
	must(ret, "memory")
	one.MemoryTotal = memory.Total
	one.SMClockMHz, ret = device.GetClockInfo(nvml.CLOCK_SM)
	must(ret, "clock")
	one.EnergyMJ, ret = device.GetTotalEnergyConsumption()
	one.EnergyReturn = int32(ret)
	fields := []nvml.FieldValue{{FieldId: nvml.FI_DEV_POWER_INSTANT}}
	must(device.GetFieldValues(fields), "fields")
	one.InstantReturn = fields[0].NvmlReturn
	architecture, ret := device.GetArchitecture()
	must(ret, "architecture")
	one.Architecture = uint32(architecture)
	one.MemoryClocks, one.Clocks = supportedClocks(device)
	_, ret = device.GetFanSpeed()
	one.Unsupported = nvml.ErrorString(ret)
	processes, ret := device.GetComputeRunningProcesses()
	must(ret, "processes")
	one.Processes = []uint32{}
	for _, process := range processes {
		one.Processes = append(one.Processes, process.Pid)
	}
	return one
}

// The binding asks with room for no clock, and hands on how many there are.
func supportedClocks(device nvml.Device) (int, int) {
	memories, _, ret := device.GetSupportedMemoryClocks()
	if ret != nvml.ERROR_INSUFFICIENT_SIZE {
		must(ret, "memory clocks")
	}
	memory, ret := device.GetMaxClockInfo(nvml.CLOCK_MEM)
	must(ret, "largest memory clock")
	clocks, _, ret := device.GetSupportedGraphicsClocks(int(memory))
	if ret != nvml.ERROR_INSUFFICIENT_SIZE {
		must(ret, "clocks")
	}
	return memories, clocks
}

func main() {
	must(nvml.Init(), "init")
	if len(os.Args) == 4 && os.Args[1] == "set" {
		index, _ := strconv.Atoi(os.Args[2])
		limit, _ := strconv.Atoi(os.Args[3])
		device, ret := nvml.DeviceGetHandleByIndex(index)
		must(ret, "handle")
		fmt.Printf("{\"set_return\": %d}\n", device.SetPowerManagementLimit(uint32(limit)))
	}
	count, ret := nvml.DeviceGetCount()
	must(ret, "count")
	for i := 0; i < count; i++ {
		device, ret := nvml.DeviceGetHandleByIndex(i)
		must(ret, "handle")
		line, err := json.Marshal(read(device))
		if err != nil {
			panic(err)
		}
		fmt.Println(string(line))
	}
	must(nvml.Shutdown(), "shutdown")
}
