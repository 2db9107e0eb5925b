//go:build !linux

package postgrestest

import "syscall"

// endWithUs does nothing: a server whose test process was killed goes on.
func endWithUs(*syscall.SysProcAttr) {}

// children returns nothing: the processes of a server end by themselves when it is killed.
func children(int) []int { return nil }
