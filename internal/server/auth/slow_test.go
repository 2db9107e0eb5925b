package auth

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestSlowdown checks that refusals take longer the more wrong tokens there are, at most two
// seconds, and that a quiet minute ends that.
func TestSlowdown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s slowdown
		takes := func() time.Duration {
			begin := time.Now()
			if _, waited := s.failed(t.Context()); !waited {
				t.Error("it did not wait")
			}
			return time.Since(begin)
		}
		for i, want := range []time.Duration{0, 0, 0, 0, 0, 50, 100, 200, 400, 800, 1600, 2000, 2000, 2000} {
			if got := takes(); got != want*time.Millisecond {
				t.Errorf("refusal %d took %s, want %d ms", i+1, got, want)
			}
		}
		for range 2000 { // the shift stays within its bounds
			if got := takes(); got != longestWait {
				t.Fatalf("a late refusal took %s", got)
			}
		}
		time.Sleep(forgetting + 1)
		if got := takes(); got != 0 {
			t.Errorf("after a quiet minute it took %s", got)
		}
	})
}

// TestSlowdownIsBounded checks that only so many refusals wait, and that one whose client has left
// does not.
func TestSlowdownIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s slowdown
		for range freeFailures + 10 {
			s.failed(t.Context())
		}
		ctx, leave := context.WithCancel(t.Context())
		for range mostWaiting {
			go s.failed(ctx)
		}
		synctest.Wait()
		begin := time.Now()
		if _, waited := s.failed(t.Context()); waited || time.Since(begin) != 0 {
			t.Errorf("one too many waited: %t, %s", waited, time.Since(begin))
		}
		leave()
		synctest.Wait()
		if s.waiting != 0 || time.Since(begin) != 0 {
			t.Errorf("%d wait after their clients left, %s", s.waiting, time.Since(begin))
		}
	})
}
