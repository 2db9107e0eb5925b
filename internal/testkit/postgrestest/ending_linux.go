package postgrestest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// endWithUs lets the server end when the thread that started it does.
func endWithUs(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGQUIT }

// children returns the processes of a server. Each is in a session of its own, so that the process
// group of the server does not have them.
func children(pid int) (pids []int) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil
	}
	for word := range strings.FieldsSeq(string(text)) {
		if child, err := strconv.Atoi(word); err == nil {
			pids = append(pids, child)
		}
	}
	return pids
}
