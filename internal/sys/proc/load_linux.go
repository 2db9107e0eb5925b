package proc

import (
	"os"
	"strconv"
	"strings"
)

// kernelLoad reads the first number of proc(5)'s loadavg.
func kernelLoad() float64 {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return 0
	}
	first, _, _ := strings.Cut(string(data), " ")
	load, err := strconv.ParseFloat(first, 64)
	if err != nil {
		return 0
	}
	return load
}
