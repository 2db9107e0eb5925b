package proc

import (
	"encoding/binary"

	"golang.org/x/sys/unix"
)

// kernelLoad reads struct loadavg of sys/resource.h: three numbers of 32 bits, and after padding
// the scale of these numbers in 64 bits.
func kernelLoad() float64 {
	data, err := unix.SysctlRaw("vm.loadavg")
	if err != nil || len(data) < 24 {
		return 0
	}
	scale := binary.LittleEndian.Uint64(data[16:])
	if scale == 0 {
		return 0
	}
	return float64(binary.LittleEndian.Uint32(data)) / float64(scale)
}
