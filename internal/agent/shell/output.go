package shell

import (
	"context"
	"sync"
	"time"

	"cadre/internal/agent"
	"cadre/internal/sys/proc"
)

// Viewers see a command's output as it comes: at most this many bytes of its end, this often.
const (
	shownAtOnce = 8 << 10
	shownEvery  = 100 * time.Millisecond
)

// output captures what a command prints, and has its end for viewers. A command never waits for a
// viewer. Several goroutines may write at once.
type output struct {
	proc.Capture

	mu      sync.Mutex
	unshown []byte        // the end of what was not taken yet
	missed  int64         // bytes before it that were not taken either
	more    chan struct{} // holds one wake-up
}

func newOutput(keep int) *output {
	return &output{Capture: proc.Capture{Head: keep, Tail: keep}, more: make(chan struct{}, 1)}
}

func (o *output) Write(p []byte) (int, error) {
	n, err := o.Capture.Write(p)
	last := p[max(0, len(p)-shownAtOnce):]
	o.mu.Lock()
	o.missed += int64(len(p) - len(last))
	if over := len(o.unshown) + len(last) - shownAtOnce; over > 0 {
		o.missed += int64(over)
		o.unshown = append(o.unshown[:0], o.unshown[over:]...)
	}
	o.unshown = append(o.unshown, last...)
	o.mu.Unlock()
	select {
	case o.more <- struct{}{}:
	default:
	}
	return n, err
}

// take returns the output since the last call.
func (o *output) take() (text string, missed int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	text, missed = string(o.unshown), o.missed
	o.unshown, o.missed = o.unshown[:0], 0
	return text, missed
}

// showing starts to show what the command of the use prints. hide ends that, and waits for its end.
func (s session) showing(ctx context.Context, use string, o *output) (hide func()) {
	ctx, end := context.WithCancel(ctx)
	var shows sync.WaitGroup
	shows.Go(func() { s.show(ctx, use, o) })
	return func() {
		end()
		shows.Wait()
	}
}

// show sends what the command of the use prints, until ctx ends.
func (s session) show(ctx context.Context, use string, o *output) {
	pace := time.NewTimer(0)
	defer pace.Stop()
	for {
		select {
		case <-o.more:
		case <-ctx.Done():
			return
		}
		select {
		case <-pace.C:
		case <-ctx.Done():
			return
		}
		text, missed := o.take()
		s.Say(ctx, agent.ToolOutput{ID: use, Text: text, Missed: missed})
		pace.Reset(shownEvery)
	}
}
