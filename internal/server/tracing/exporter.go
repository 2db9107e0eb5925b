package tracing

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"sync"
	"time"

	"cadre/internal/agent/traceparent"
	"cadre/internal/journal"
	"cadre/internal/sys/sleep"
	"cadre/internal/team"
)

// Team is a team whose spans are sent.
type Team struct {
	ID string
	// Follow yields the records after seq after, and then further ones as they come, until ctx
	// ends. It must not wait for its reader with anything that the team needs.
	Follow func(ctx context.Context, after int64) iter.Seq2[*team.Record, error]
}

// Options configure an exporter.
type Options struct {
	Environment func(name string) string // returns the value of a variable, as [os.Getenv] does
	Version     string                   // of cadre
	Folder      string                   // of the cursors, which the exporter makes
	// Teams returns the teams to follow now. It is called again and again, from one goroutine.
	Teams func() []Team
	// Log gets what the person should know, each thing once, from any goroutine.
	Log func(string)
}

// Exporter sends the spans of teams.
type Exporter struct {
	options Options
	config  *Config // nil where the person asked for no traces
	cursors cursors
	sender  *sender
}

// lastTime bounds the requests that are under way when the exporter ends. What it cannot send then,
// the next one sends.
const lastTime = 2 * time.Second

// listEvery is how often the exporter asks for the teams.
const listEvery = 5 * time.Second

// maxBytes is the size from which a batch is sent, however few spans it has.
const maxBytes = 1 << 20

// New returns an exporter. It logs what is wrong with the environment.
func New(o Options) *Exporter {
	config, notes := FromEnvironment(o.Environment, o.Version)
	for _, note := range notes {
		o.Log(note)
	}
	x := &Exporter{options: o, config: config, cursors: cursors(o.Folder)}
	if config != nil {
		x.sender = newSender(config, o.Log)
	}
	return x
}

// Run sends the spans of the teams until ctx ends, and returns when no goroutine of it is left. It
// returns at once where the person asked for no traces.
func (x *Exporter) Run(ctx context.Context) {
	if x.config == nil {
		return
	}
	defer x.sender.client.CloseIdleConnections()
	var under sync.WaitGroup
	defer under.Wait()
	following, ends := map[string]context.CancelFunc{}, make(chan string)
	follow := func(t Team) {
		its, cancel := context.WithCancel(ctx)
		following[t.ID] = cancel
		under.Go(func() {
			defer cancel()
			x.keep(its, t)
			select {
			case ends <- t.ID:
			case <-ctx.Done():
			}
		})
	}
	every := time.NewTicker(listEvery)
	defer every.Stop()
	x.list(following, follow)
	for {
		select {
		case <-ctx.Done():
			return
		case <-every.C:
			x.list(following, follow)
		case id := <-ends:
			delete(following, id)
		}
	}
}

// list follows the teams that there are now, and ends following the others.
func (x *Exporter) list(following map[string]context.CancelFunc, follow func(Team)) {
	listed := map[string]bool{}
	for _, t := range x.options.Teams() {
		if listed[t.ID] = true; following[t.ID] == nil {
			follow(t)
		}
	}
	for id, cancel := range following {
		if !listed[id] {
			cancel() // the entry stays until its goroutine has ended, so that no second one starts
		}
	}
}

// keep follows a team until ctx ends or its history does. Then the history may be followed again,
// from its start.
func (x *Exporter) keep(ctx context.Context, t Team) {
	err := x.follow(ctx, t)
	if errors.Is(err, journal.ErrGone) || ctx.Err() != nil {
		return
	}
	if err != nil {
		x.sender.once(fmt.Sprintf("traces pause: %v", err))
	}
	_ = sleep.For(ctx, longestPause)
}

// batch holds spans that have ended and were not sent.
type batch struct {
	spans   [][]byte
	bytes   int
	through int64 // the record up to which it has all spans
}

// sending is a team on its way to the collector.
type sending struct {
	*Exporter
	team    Team
	history *History
	done    cursor // up to where spans were sent
	batch   batch
}

// follow sends the spans of one team until ctx ends or its history does.
func (x *Exporter) follow(ctx context.Context, t Team) error {
	ctx, cancel := context.WithCancel(ctx)
	grace, over := later(ctx)
	defer over()
	records, ended := make(chan *team.Record), make(chan error, 1)
	var reading sync.WaitGroup
	defer reading.Wait()
	defer cancel()
	reading.Go(func() { ended <- pass(ctx, t, records) })
	s := &sending{Exporter: x, team: t, history: NewHistory()}
	timer := time.NewTimer(x.config.Delay)
	timer.Stop()
	for {
		select {
		case r := <-records:
			waited := len(s.batch.spans) > 0
			s.add(r)
			switch {
			case s.full():
				timer.Stop()
				s.flush(ctx, grace)
			case !waited && len(s.batch.spans) > 0:
				timer.Reset(x.config.Delay)
			}
		case <-timer.C:
			s.flush(ctx, grace)
		case <-ctx.Done():
			s.flush(ctx, grace)
			return nil
		case err := <-ended:
			if err == nil || ctx.Err() != nil {
				s.flush(ctx, grace)
				return nil
			}
			return s.fail(ctx, err)
		}
	}
}

// fail sends what is left after the history could not be read further, and returns the error. A
// history that is gone has no cursor.
func (s *sending) fail(ctx context.Context, err error) error {
	last, cancel := context.WithTimeout(ctx, lastTime)
	defer cancel()
	s.flush(last, last)
	if errors.Is(err, journal.ErrGone) {
		if failure := s.cursors.remove(s.team.ID); failure != nil {
			s.sender.once(failure.Error())
		}
		return err
	}
	_, name := s.history.Trace()
	return fmt.Errorf("the history of team %s cannot be read: %w", clean(name), err)
}

// later returns a context that ends lastTime after ctx.
func later(ctx context.Context) (context.Context, context.CancelFunc) {
	grace, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(lastTime, cancel) })
	return grace, func() {
		stop()
		cancel()
	}
}

// pass sends the records to the channel until ctx ends.
func pass(ctx context.Context, t Team, records chan<- *team.Record) error {
	for r, err := range t.Follow(ctx, 0) {
		if err != nil {
			return err
		}
		select {
		case records <- r:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// where returns the cursor in the history.
func (s *sending) where() cursor {
	done, err := s.cursors.read(s.team.ID)
	if err != nil {
		s.sender.once(fmt.Sprintf("the cursor of the traces of a team cannot be read: %v", err))
	}
	if done.History != s.history.Version() { // another history, of which nothing was sent
		done = cursor{History: s.history.Version()}
	}
	return done
}

// add adds the spans that end with the record to the batch, unless they were sent before.
func (s *sending) add(r *team.Record) {
	first := s.history.state.Seq() == 0
	spans := s.history.Add(r)
	if first {
		s.done = s.where()
	}
	if r.Seq <= s.done.Seq {
		return
	}
	b := &s.batch
	b.through = r.Seq
	trace, _ := s.history.Trace()
	for i := range spans {
		data := spans[i].encode(s.config.JSON, trace)
		b.spans, b.bytes = append(b.spans, data), b.bytes+len(data)
	}
}

// full reports whether the batch is sent without waiting for more.
func (s *sending) full() bool {
	return len(s.batch.spans) >= s.config.Batch || s.batch.bytes >= maxBytes
}

func (s *Span) encode(asJSON bool, trace traceparent.TraceID) []byte {
	if asJSON {
		return s.json(trace)
	}
	return s.proto(trace)
}

// flush sends the batch and saves the cursor. Once ctx has ended it tries once, as long as grace
// lasts.
func (s *sending) flush(ctx, grace context.Context) {
	if len(s.batch.spans) == 0 {
		return
	}
	_, name := s.history.Trace()
	resource := append(s.config.Resource[:len(s.config.Resource):len(s.config.Resource)],
		Attribute{teamAttribute, clean(name)})
	request := protoRequest
	if s.config.JSON {
		request = jsonRequestOf
	}
	if !s.sender.send(ctx, grace, request(resource, s.options.Version, s.batch.spans)) {
		return
	}
	s.done.Seq = s.batch.through
	s.batch = batch{}
	if err := s.cursors.write(s.team.ID, s.done); err != nil {
		s.sender.once(fmt.Sprintf("it cannot be saved which traces were sent, so some may be sent again: %v", err))
	}
}
