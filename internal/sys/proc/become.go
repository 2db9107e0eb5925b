package proc

import (
	"fmt"
	"syscall"
)

// Become replaces this process by a program, as exec(3) does. It returns only if that fails.
func Become(args, env []string) error {
	program, err := Find(args[0])
	if err != nil {
		return err
	}
	return fmt.Errorf("%s: %w", program, syscall.Exec(program, args, env))
}
