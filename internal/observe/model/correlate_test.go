package model

import (
	"fmt"
	"strings"
	"testing"

	"cadre/internal/observe/protocol"
)

func TestCorrelation(t *testing.T) {
	newCall := func(id string) *call { return &call{ID: id, Tool: "TaskList"} }
	t.Run("a call and its result", func(t *testing.T) {
		c := newCorrelation(TTL)
		if _, ok := c.call(newCall("a"), 0); ok {
			t.Error("there was no result yet")
		}
		if got, ok := c.result(&result{Result: protocol.Result{ID: "a"}}, 5); !ok || got.ID != "a" ||
			len(c.calls) != 0 {
			t.Error(got, ok)
		}
	})
	t.Run("the result comes first", func(t *testing.T) {
		c := newCorrelation(TTL)
		if _, ok := c.result(&result{Result: protocol.Result{ID: "a", R: "text"}}, 0); ok {
			t.Error("there was no call yet")
		}
		if got, ok := c.call(newCall("a"), 5); !ok || got.R != "text" || len(c.early) != 0 {
			t.Error(got, ok)
		}
	})
	t.Run("a call or result that waits too long expires", func(t *testing.T) {
		c := newCorrelation(TTL)
		c.result(&result{Result: protocol.Result{ID: "a"}}, 0)
		c.result(&result{Result: protocol.Result{ID: "b"}}, 20_000)
		if n := c.expire(30_000); n != 0 {
			t.Errorf("%d after exactly 30 s", n)
		}
		if n := c.expire(30_001); n != 1 || c.orphaned != 1 || len(c.early) != 1 {
			t.Errorf("%d dropped: %d results", n, c.orphaned)
		}
		if _, ok := c.call(newCall("a"), 30_002); ok {
			t.Error("a result that was dropped is taken")
		}
		c.call(newCall("c"), 40_000)
		if got, ok := c.result(&result{Result: protocol.Result{ID: "c"}}, 40_000+CallTTL-1); !ok || got.ID != "c" {
			t.Error("a call that a person or a hook held for a day is not answered")
		}
		if n := c.expire(CallTTL + 30_003); n != 2 || c.discarded != 1 || c.orphaned != 2 || len(c.calls) != 0 {
			t.Errorf("%d dropped: %d calls", n, c.discarded)
		}
	})
	t.Run("of two calls with one id the last counts", func(t *testing.T) {
		c := newCorrelation(TTL)
		c.call(newCall("a"), 0)
		c.call(&call{ID: "a", Tool: "TaskGet"}, 1)
		if got, _ := c.result(&result{Result: protocol.Result{ID: "a"}}, 2); got.Tool != "TaskGet" ||
			c.duplicates != 1 {
			t.Error(got.Tool, c.duplicates)
		}
		if _, ok := c.call(newCall("a"), 3); ok || len(c.calls) != 0 {
			t.Error("a call that was answered waits again")
		}
	})
	t.Run("a repeated call expires as well", func(t *testing.T) {
		c := newCorrelation(TTL)
		c.call(newCall("a"), 0)
		c.call(newCall("a"), 20_000)
		if n := c.expire(CallTTL + 1); n != 1 || len(c.calls) != 0 {
			t.Errorf("%d dropped, %d wait", n, len(c.calls))
		}
	})
	t.Run("memory is bounded", func(t *testing.T) {
		c := newCorrelation(TTL)
		for i := range 3 * maxWaiting {
			c.call(newCall(fmt.Sprint("a", i)), 0)
			c.result(&result{Result: protocol.Result{ID: fmt.Sprint("b", i)}}, 0)
		}
		if n := len(c.calls) + len(c.early); n > maxWaiting || c.discarded+c.orphaned != int64(6*maxWaiting-n) {
			t.Errorf("%d wait, %d and %d dropped", n, c.discarded, c.orphaned)
		}
		for i := range 10 * maxWaiting {
			id := fmt.Sprint("c", i)
			c.call(newCall(id), 0)
			if _, ok := c.result(&result{Result: protocol.Result{ID: id}}, 0); !ok {
				t.Fatal("its call is gone")
			}
		}
		if n := len(c.waitingCalls) + len(c.waitingResults); n > 5*maxWaiting {
			t.Errorf("%d pairs are remembered in their order", n)
		}
		c.result(&result{Result: protocol.Result{ID: "big", R: strings.Repeat("x", maxEarly+1)}}, 0)
		if c.early["big"] != nil {
			t.Error("a huge result is kept for an unseen call")
		}
	})
}
