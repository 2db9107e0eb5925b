package notify

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"

	"cadre/internal/inspect/attention"
	"cadre/internal/sys/filelock"
)

// Deadline is how long one channel may take to send one notification.
const Deadline = 10 * time.Second

const (
	// tryLock is the pause between two attempts to lock a channel that another process serves.
	tryLock = 5 * time.Second
	// retry is the pause after a first failure. It doubles with each failure, up to retryMost.
	retry     = time.Minute
	retryMost = time.Hour
	// most is how many facts of one team are sent separately at once.
	most = 3
	// glance is the pause between two checks of whether the person still looks at a fact.
	glance = 15 * time.Second
	// lookedAway is how long a person must not have looked at a fact before it is sent. They may
	// have left the view to answer it.
	lookedAway = 30 * time.Second
)

// Channel is a way to reach a person.
type Channel struct {
	Name string
	To   string // where it sends to, in words
	// Send sends one notification. ctx ends after [Deadline].
	Send func(ctx context.Context, f Fact) error
	// Fleeting marks a channel that reaches only a person who is there now, such as a bell. Facts
	// that hold when the process starts are not sent through it, and nothing is recorded.
	Fleeting bool
	Terminal int64 // the terminal that a fleeting channel reaches; each terminal is notified
}

// Options configure a notifier.
type Options struct {
	Folder   string    // folder of the locks and files of the channels
	Written  time.Time // when the settings were written: earlier facts are not sent
	Channels []Channel
	Follow   *attention.Follower // owned by the notifier, which closes it
	Log      func(string)
	// Looks checks what the person looks at now. What it returns reports whether that shows the
	// fact. nil means that they look at nothing.
	Looks func() (shows func(Fact) bool)
}

// farewell bounds the time to send what is left after ctx ends: one notification that hangs, and
// those after it.
const farewell = Deadline + 2*time.Second

// ErrChanged is the cause that ends a notifier whose settings have changed. It sends nothing more.
var ErrChanged = errors.New("the settings have changed")

// Run notifies until ctx ends. Then it checks once more, sends what is due, and returns nil.
func Run(ctx context.Context, o Options) error {
	defer o.Follow.Close()
	if err := os.MkdirAll(o.Folder, 0o700); err != nil {
		return fmt.Errorf("notify: %w", err)
	}
	sending, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var serving sync.WaitGroup
	defer serving.Wait()
	board := newBoard()
	for _, c := range o.Channels {
		s := &server{Options: o, channel: c, board: board}
		serving.Go(func() { s.serve(sending) })
	}
	err := o.Follow.Watch(ctx, func(teams []attention.Found) bool {
		board.put(Facts(teams))
		return false
	})
	if ctx.Err() == nil {
		cancel()
		return err
	}
	if errors.Is(context.Cause(ctx), ErrChanged) {
		cancel()
		return nil
	}
	last, end := context.WithTimeout(sending, farewell)
	context.AfterFunc(last, cancel)
	defer end()
	if teams, err := o.Follow.Teams(last); err == nil {
		board.put(Facts(teams))
	}
	board.end()
	serving.Wait()
	return nil
}

// board holds the facts that hold now. Each server reads them at its own pace, and skips facts that
// no longer hold.
type board struct {
	mu      sync.Mutex
	facts   []Fact
	seen    bool          // it was written at least once
	ended   bool          // it will not be written again
	changed chan struct{} // closed by the next change
}

func newBoard() *board { return &board{changed: make(chan struct{})} }

func (b *board) put(facts []Fact) { b.change(func() { b.facts, b.seen = facts, true }) }

// end declares that the board will not be written again.
func (b *board) end() { b.change(func() { b.ended = true }) }

func (b *board) change(by func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	by()
	close(b.changed)
	b.changed = make(chan struct{})
}

// news is the content of a board at one moment.
type news struct {
	facts       []Fact
	seen, ended bool
	changed     <-chan struct{}
}

func (b *board) look() news {
	b.mu.Lock()
	defer b.mu.Unlock()
	return news{b.facts, b.seen, b.ended, b.changed}
}

// server serves one channel.
type server struct {
	Options
	channel Channel
	board   *board

	sent     map[string]bool      // by id; nil if nothing was ever recorded
	since    map[string]time.Time // when a fact that must hold for a while began to hold
	seen     map[string]time.Time // when the person last looked at a fact that is not sent
	written  []byte               // what the file holds
	failures int
	again    time.Time // time of the next attempt
}

// serve sends facts while it holds the channel's lock, until the board or ctx ends.
func (s *server) serve(ctx context.Context) {
	for {
		lock, err := filelock.New(s.path(".lock"))
		if err == nil {
			err = s.hold(ctx)
			if unlock := lock.Unlock(); err == nil {
				err = unlock
			}
		}
		if err != nil && !errors.Is(err, filelock.ErrHeld) {
			s.Log(fmt.Sprintf("notifications by %s: %v", s.channel.Name, err))
			return
		}
		// the process that holds the lock sends the rest
		for end := time.Now().Add(tryLock); ; {
			now := s.board.look()
			if now.ended || ctx.Err() != nil {
				return
			}
			left := time.Until(end)
			if left <= 0 {
				break
			}
			pause(ctx, now.changed, left)
		}
	}
}

// hold sends the facts of the board until the board or ctx ends.
func (s *server) hold(ctx context.Context) error {
	if err := s.load(); err != nil {
		return err
	}
	for {
		now, wait := s.board.look(), time.Hour
		if now.seen {
			var err error
			if wait, err = s.step(ctx, now.facts); err != nil {
				return err
			}
		}
		if now.ended || ctx.Err() != nil {
			return nil
		}
		pause(ctx, now.changed, wait)
	}
}

// pause returns when ctx ends, the board changes, or the time is over.
func pause(ctx context.Context, changed <-chan struct{}, most time.Duration) {
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-changed:
	case <-timer.C:
	}
}

// step sends the facts that are due, and returns when the next one is due.
func (s *server) step(ctx context.Context, facts []Fact) (wait time.Duration, err error) {
	now := time.Now()
	if s.sent == nil {
		if err := s.begin(facts); err != nil {
			return 0, err
		}
	}
	due, wait := s.due(facts, now)
	due, wait = s.unseen(due, wait, now)
	s.forget(facts)
	if err := s.save(); err != nil {
		return 0, err
	}
	if len(due) == 0 {
		return wait, nil
	}
	if pause := s.again.Sub(now); pause > 0 {
		return min(wait, pause), nil
	}
	for _, some := range grouped(due) {
		sending, cancel := context.WithTimeout(ctx, Deadline)
		err := s.channel.Send(sending, digest(some).sent())
		cancel()
		if ctx.Err() != nil {
			return 0, nil
		}
		if err != nil {
			s.failed(err)
			return min(wait, time.Until(s.again)), nil
		}
		s.failures = 0
		s.mark(some)
		if err := s.save(); err != nil {
			return 0, err
		}
	}
	return wait, nil
}

// unseen returns the facts that the person does not look at, and when to check the others again. A
// fact that they look at waits until they have looked away. The end of a team waits for nobody: it
// is not sent if they look at it.
func (s *server) unseen(due []Fact, wait time.Duration, now time.Time) ([]Fact, time.Duration) {
	if s.Looks == nil || len(due) == 0 {
		return due, wait
	}
	shows := s.Looks()
	return slices.DeleteFunc(due, func(f Fact) bool {
		seen := shows(f)
		if seen && f.end() {
			s.mark([]Fact{f})
			return true
		}
		if seen {
			s.seen[f.ID] = now
		}
		ago := now.Sub(s.seen[f.ID])
		if ago >= lookedAway || ago < 0 { // less than 0 if the clock was set back
			return false
		}
		wait = min(wait, glance, lookedAway-ago)
		return true
	}), wait
}

// failed reports the first of a series of failures, and delays the next attempt.
func (s *server) failed(err error) {
	if s.failures == 0 {
		s.Log(fmt.Sprintf("A notification by %s failed: %v. Try it with: cadre notify --test", s.channel.Name, err))
	}
	pause := min(retry<<min(s.failures, 10), retryMost)
	s.failures++
	s.again = time.Now().Add(pause)
}

// begin marks facts as sent that held before the settings were written. For a fleeting channel, it
// marks all facts that hold now.
func (s *server) begin(facts []Fact) error {
	s.sent = map[string]bool{}
	for _, f := range facts {
		if s.channel.Fleeting || f.Since == 0 || time.UnixMilli(int64(f.Since)).Before(s.Written) {
			s.sent[f.ID] = true
		}
	}
	return s.save()
}

// due returns the facts to send now, and when the next one may be due.
func (s *server) due(facts []Fact, now time.Time) (due []Fact, wait time.Duration) {
	wait = time.Hour
	for _, f := range facts {
		if s.sent[f.ID] {
			continue
		}
		if f.lasting() {
			if s.since[f.ID].IsZero() {
				s.since[f.ID] = now
			}
			if left := settle - now.Sub(s.since[f.ID]); left > 0 {
				wait = min(wait, left)
				continue
			}
		}
		due = append(due, f)
	}
	return due, wait
}

// forget drops the states of facts that no longer hold.
func (s *server) forget(facts []Fact) {
	stands := make(map[string]bool, len(facts))
	for _, f := range facts {
		stands[f.ID] = true
	}
	maps.DeleteFunc(s.sent, func(id string, _ bool) bool { return !stands[id] })
	maps.DeleteFunc(s.since, func(id string, _ time.Time) bool { return !stands[id] })
	maps.DeleteFunc(s.seen, func(id string, _ time.Time) bool { return !stands[id] })
}

func (s *server) mark(facts []Fact) {
	for _, f := range facts {
		s.sent[f.ID] = true
		delete(s.seen, f.ID)
	}
}

// grouped returns the facts in the groups that are sent together. It joins many facts of one team.
func grouped(facts []Fact) (groups [][]Fact) {
	for len(facts) > 0 {
		n := 1
		for n < len(facts) && facts[n].Team == facts[0].Team {
			n++
		}
		if n > most {
			groups = append(groups, facts[:n])
		} else {
			for i := range n {
				groups = append(groups, facts[i:i+1])
			}
		}
		facts = facts[n:]
	}
	return groups
}
