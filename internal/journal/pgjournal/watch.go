package pgjournal

import (
	"context"
	"encoding/hex"
	"fmt"
	"sync"
	"time"

	"cadre/internal/journal"
	"cadre/internal/journal/pgjournal/pgwire"
)

const (
	pollHeard   = 2 * time.Second        // how often waiters read the rows, in case a notification was lost
	pollUnheard = 100 * time.Millisecond // the same, if no notifications arrive
	linger      = time.Second            // how long a watch outlives the last waiter, who may wait again
	reconnect   = time.Second            // the pause before the watch connects again
)

// channelPrefix begins the name of the channel for the notifications of a schema.
const channelPrefix = "cadre_"

func (s *Store) channel() string { return channelPrefix + s.opts.Schema }

// news is the newest that a store knows of a team.
type news struct {
	mu      sync.Mutex
	last    int64
	gone    bool
	waiters int
	changed chan struct{} // closed at a change and then replaced
}

func (n *news) tell(last int64, gone bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if last > n.last || gone && !n.gone {
		n.last, n.gone = max(n.last, last), gone || n.gone
		close(n.changed)
		n.changed = make(chan struct{})
	}
}

func (n *news) get() (last int64, gone bool, changed <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.last, n.gone, n.changed
}

// tell tells the handles of this store what is known of a team. A seq of 0 says nothing.
func (s *Store) tell(number, last int64, gone bool) {
	s.mu.Lock()
	one := s.shared[number]
	s.mu.Unlock()
	if one != nil {
		one.news.tell(last, gone)
	}
}

// committed tells everybody that a team has changed. A last of 0 means that it was removed. others
// says that other processes append to it too.
func (s *Store) committed(number, last int64, others bool) {
	s.tell(number, last, last == 0)
	s.notifier.add(number, note{last, others})
}

// Wait implements [journal.Journal]. If the database cannot be reached while it waits, it waits for
// the database too.
func (j *Journal) Wait(ctx context.Context, after int64) error {
	inner, leave, err := j.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()
	j.s.watch.join(&j.shared.news)
	defer j.s.watch.part(&j.shared.news)
	if last, _, _ := j.shared.news.get(); last <= after {
		// What is committed after this read is heard of, or found by the next poll.
		var h head
		err := j.s.ask(inner, func(ctx context.Context, conn *pgwire.Conn) error {
			return scanHead(conn.Query(ctx, j.s.sql.read, j.number), &h)
		})
		if err == nil {
			err = judgeVersion(j.s.opts.Schema, h.version)
		}
		if err != nil {
			return j.explain(ctx, "wait", err)
		}
		j.shared.news.tell(h.last, false)
	}
	for {
		last, gone, changed := j.shared.news.get()
		if gone {
			return j.explain(ctx, "wait", journal.ErrGone)
		}
		if last > after {
			return nil
		}
		select {
		case <-changed:
		case <-inner.Done():
			return j.explain(ctx, "wait", inner.Err())
		}
	}
}

// watch keeps the news of the teams that somebody waits for. It runs while somebody does, and some
// time longer.
type watch struct {
	s *Store

	mu      sync.Mutex
	waiters int
	idle    *time.Timer
	end     context.CancelFunc // of the running goroutines; nil if there are none
	ended   sync.WaitGroup
	stopped bool
}

func (w *watch) start(s *Store) { w.s = s }

func (w *watch) join(n *news) {
	n.mu.Lock()
	n.waiters++
	n.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiters++
	if w.end != nil || w.stopped {
		return
	}
	var ctx context.Context
	ctx, w.end = context.WithCancel(context.Background())
	heard := make(chan bool, 1)
	w.ended.Go(func() { w.listen(ctx, heard) })
	w.ended.Go(func() { w.poll(ctx, heard) })
}

func (w *watch) part(n *news) {
	n.mu.Lock()
	n.waiters--
	n.mu.Unlock()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.waiters--
	if w.waiters > 0 || w.stopped {
		return
	}
	if w.idle == nil {
		w.idle = time.AfterFunc(linger, w.rest)
	} else {
		w.idle.Reset(linger)
	}
}

func (w *watch) rest() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.waiters == 0 && w.end != nil {
		w.end()
		w.end = nil
	}
}

// stop ends the watch for good.
func (w *watch) stop() {
	w.mu.Lock()
	w.stopped = true
	if w.idle != nil {
		w.idle.Stop()
	}
	if w.end != nil {
		w.end()
		w.end = nil
	}
	w.mu.Unlock()
	w.ended.Wait()
}

// listen listens on a connection of its own, and connects again when it breaks.
func (w *watch) listen(ctx context.Context, heard chan bool) {
	for ctx.Err() == nil {
		_ = w.listenOnce(ctx, heard) // until then the poll is faster
		replace(heard, false)
		select {
		case <-time.After(reconnect):
		case <-ctx.Done():
		}
	}
}

// replace puts a value into a channel of capacity 1, in place of the one that is in it.
func replace(into chan bool, value bool) {
	select {
	case <-into:
	default:
	}
	into <- value
}

func (w *watch) listenOnce(ctx context.Context, heard chan bool) error {
	conn, err := w.s.config.Connect(ctx)
	if err != nil {
		return err
	}
	defer w.s.hangUp(conn)
	if _, err := conn.Exec(ctx, "LISTEN "+quote(w.s.channel())); err != nil {
		return err
	}
	// The first notification is our own. It comes back only if notifications arrive at all.
	probe := "probe " + hex.EncodeToString(w.s.newID())
	if err := w.s.notify(ctx, []string{probe}); err != nil {
		return err
	}
	for {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		if n.Payload == probe {
			replace(heard, true)
			continue
		}
		var number, last int64
		if _, err := fmt.Sscanf(n.Payload, "%d %d", &number, &last); err == nil {
			w.s.tell(number, last, last == 0)
		}
	}
}

// poll reads the ends of the histories that somebody waits for: now and then, at once when
// notifications begin to arrive, and often while none do.
func (w *watch) poll(ctx context.Context, heard chan bool) {
	every := pollUnheard
	for {
		select {
		case <-time.After(every):
		case hears := <-heard:
			every = pollUnheard
			if hears {
				every = pollHeard
			}
		case <-ctx.Done():
			return
		}
		w.look(ctx)
	}
}

func (w *watch) look(ctx context.Context) {
	var numbers []int64
	w.s.mu.Lock()
	for number, one := range w.s.shared {
		one.news.mu.Lock()
		if one.news.waiters > 0 {
			numbers = append(numbers, number)
		}
		one.news.mu.Unlock()
	}
	w.s.mu.Unlock()
	if len(numbers) == 0 {
		return
	}
	lasts := map[int64]int64{}
	err := w.s.ask(ctx, func(ctx context.Context, conn *pgwire.Conn) error {
		return conn.Query(ctx, w.s.sql.lasts, numbers).Each(func(r pgwire.Row) error {
			var number, last int64
			if err := r.Scan(&number, &last); err != nil {
				return err
			}
			lasts[number] = last
			return nil
		})
	})
	if err != nil {
		return // the waiters wait for the database too
	}
	for _, number := range numbers {
		last, there := lasts[number]
		w.s.tell(number, last, !there)
	}
}

// notify sends notifications, in a transaction of its own.
func (s *Store) notify(ctx context.Context, payloads []string) error {
	return s.ask(ctx, func(ctx context.Context, conn *pgwire.Conn) error {
		_, err := conn.Exec(ctx, "SELECT pg_notify($1, p) FROM unnest($2::text[]) p", s.channel(), payloads)
		return err
	})
}

// notifyUnlessLater sends those notifications of a record that is still the last one. Whoever
// appended a later one sends one too.
func (s *Store) notifyUnlessLater(ctx context.Context, numbers, lasts []int64) error {
	return s.ask(ctx, func(ctx context.Context, conn *pgwire.Conn) error {
		_, err := conn.Exec(ctx, s.sql.notify, s.channel(), numbers, lasts)
		return err
	})
}

const (
	// gather is how long the notifier waits for later records when other processes append too.
	gather = 5 * time.Millisecond
	// maxOmitted is how many notifications of a team a store leaves to others, before it sends one.
	maxOmitted = 8
)

// note is a notification to send.
type note struct {
	last   int64
	others bool // other processes append too
}

// notifier sends notifications beside the appends: those that come while one is under way go into
// the next one. Where many processes append to a team, most of them leave it to the others. It runs
// only while there is something to send.
type notifier struct {
	s        *Store
	stopping chan struct{}

	mu      sync.Mutex
	pending map[int64]note // by the number of the team
	omitted map[int64]int  // notifications in a row that others may have sent instead
	running bool
	stopped bool
	ended   sync.WaitGroup
}

func (n *notifier) start(s *Store) {
	n.s, n.stopping = s, make(chan struct{})
	n.pending, n.omitted = map[int64]note{}, map[int64]int{}
}

func (n *notifier) add(number int64, what note) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopped {
		return
	}
	n.pending[number] = what
	if !n.running {
		n.running = true
		n.ended.Go(n.run)
	}
}

// crowded reports whether other processes append to each team of which there is something to send.
func (n *notifier) crowded() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, what := range n.pending {
		if !what.others {
			return false
		}
	}
	return true
}

// take returns what to send now: the payloads of notifications, and the teams with their last
// records for which others may send them.
func (n *notifier) take() (payloads []string, numbers, lasts []int64, more bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for number, what := range n.pending {
		if what.others && n.omitted[number] < maxOmitted {
			n.omitted[number]++
			numbers, lasts = append(numbers, number), append(lasts, what.last)
			continue
		}
		delete(n.omitted, number)
		payloads = append(payloads, fmt.Sprint(number, " ", what.last))
	}
	more = len(n.pending) > 0
	clear(n.pending)
	n.running = more
	return payloads, numbers, lasts, more
}

func (n *notifier) run() {
	for {
		if n.crowded() {
			select {
			case <-time.After(gather):
			case <-n.stopping:
			}
		}
		payloads, numbers, lasts, more := n.take()
		if !more {
			return
		}
		ctx, stop := context.WithTimeout(context.Background(), 2*time.Second)
		if len(payloads) > 0 {
			_ = n.s.notify(ctx, payloads) // a notification is a hint
		}
		if len(numbers) > 0 {
			_ = n.s.notifyUnlessLater(ctx, numbers, lasts)
		}
		stop()
	}
}

// stop sends what is left.
func (n *notifier) stop() {
	n.mu.Lock()
	if !n.stopped {
		close(n.stopping)
	}
	n.stopped = true
	n.mu.Unlock()
	n.ended.Wait()
}
