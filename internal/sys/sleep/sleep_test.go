package sleep

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestFor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		if err := For(t.Context(), 0); err != nil {
			t.Errorf("no time: %v", err)
		}
		if err := For(t.Context(), time.Minute); err != nil || time.Since(began) != time.Minute {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
		ended := errors.New("it was ended")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, ended)
		defer cancel()
		began = time.Now()
		if err := For(ctx, time.Minute); !errors.Is(err, ended) || time.Since(began) != time.Second {
			t.Errorf("with a context that ends, after %v: %v", time.Since(began), err)
		}
		for range 20 {
			if err := For(ctx, 0); !errors.Is(err, ended) {
				t.Fatalf("no time, with a context that has ended: %v", err)
			}
		}
	})
}
