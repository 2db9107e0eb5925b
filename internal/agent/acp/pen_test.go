package acp

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
)

// TestPenKeepsTheOrder checks that prompts reach the agent in the order in which they were queued,
// whichever goroutine runs first, and that none waits for one that was never written.
func TestPenKeepsTheOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 1))
		var told bytes.Buffer
		p := newPen(&told)
		var want string
		var sends []func()
		for n := range 8 {
			wait, done := p.queue()
			message := fmt.Sprintf("{\"method\":\"session/prompt\",\"id\":%d}\n", n)
			switch n % 4 {
			case 1:
				message = fmt.Sprintf("{\"method\":\"session/cancel\",\"id\":%d}\n", n)
			case 2: // it could not be sent
				message = ""
			}
			want += message
			sends = append(sends, func() {
				wait(context.Background())
				if message != "" {
					p.Write([]byte(message))
				}
				if n%4 != 0 { // else the writing of the prompt is enough: its answer takes as long as the turn
					done()
				}
			})
		}
		r.Shuffle(len(sends), func(i, j int) { sends[i], sends[j] = sends[j], sends[i] })
		var all sync.WaitGroup
		for _, send := range sends {
			all.Go(send)
		}
		all.Wait()
		if told.String() != want {
			t.Fatalf("seed %d: the agent was told\n%s\nand not\n%s", seed, &told, want)
		}
	}
}
