// Package sleep waits for a time that a context can end.
//
// # Authority
//
// A loop that tries again must wait between two attempts, and stop at once when its caller does.
// This package has that one wait. The caller decides how long, and whether to try again.
//
// # Guarantees
//
//   - It returns as soon as the context ends, with the context's cause.
//   - It leaves no timer and no goroutine behind.
package sleep

import (
	"context"
	"time"
)

// For waits for d. If ctx ends first, For returns the cause at once.
func For(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return context.Cause(ctx)
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
