package wake

import (
	"context"
	"fmt"
	"os"
	"strings"

	"cadre/internal/sys/proc"
	"cadre/internal/sys/regularfile"
)

// parent is the command line of the process that started this one; nil where it cannot be told.
func parent(context.Context, *proc.Register) []string {
	line, err := regularfile.Read(fmt.Sprintf("/proc/%d/cmdline", os.Getppid()), 1<<20)
	if err != nil {
		return nil
	}
	return strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")
}
