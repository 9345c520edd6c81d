module wattgov/tests/peers/nvml_clients/go_nvml

go 1.20

require github.com/NVIDIA/go-nvml v0.13.4-1
