//go:build !linux

package wake

import (
	"context"
	"os"
	"strconv"
	"strings"

	"cadre/internal/sys/proc"
)

// parent is the command line of the process that started this one; nil where it cannot be told. An
// argument with a space in it is several.
func parent(ctx context.Context, children *proc.Register) []string {
	said := &proc.Capture{Head: 1 << 16, Tail: 1}
	if exit, err := children.Run(ctx, proc.Cmd{Args: []string{"ps", "-o", "args=", "-p", strconv.Itoa(os.Getppid())},
		Stdout: said}, proc.Ladder{Term: -1}); err != nil || exit.Code != 0 {
		return nil
	}
	return strings.Fields(said.String())
}
