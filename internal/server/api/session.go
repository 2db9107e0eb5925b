package api

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"reflect"
	"strconv"

	"cadre/internal/agent/sessionlog"
	"cadre/internal/engine"
)

var sessionEntry = reflect.TypeFor[sessionlog.Entry]()

// sessionAhead is how many entries of a session are read before the client has read the ones
// before.
const sessionAhead = 64

// errMemberEnded ends the stream of a session.
var errMemberEnded = errors.New("the member has ended")

// followSession answers with the entries of a member's sessions, at the pace of the client: the log
// is read as far as the client has read.
func (c *call) followSession() (any, error) {
	t, err := c.look()
	if err != nil {
		return nil, err
	}
	name := c.PathValue("member")
	ctx, cancel := context.WithCancel(c.Context())
	defer cancel()
	entries, err := t.Session(ctx, name, engine.Follow)
	if err != nil {
		return nil, err
	}
	last, err := lastEntry(t, name)
	if err != nil {
		return nil, err
	}
	after, err := c.cursor(last, "the session of "+name, "entry")
	if err != nil {
		return nil, err
	}
	ahead, ended := readAhead(ctx, entries)
	defer func() {
		cancel()
		<-ended
	}()
	s := c.stream()
	if s.flush() != nil {
		return nil, answered
	}
	for {
		some, err := s.nextEntries(ahead)
		for _, e := range some {
			s.entry(e, after)
		}
		switch {
		case errors.Is(err, errMemberEnded) && c.Context().Err() == nil:
			s.add("", "end", []byte("{}"))
			s.flush()
			return nil, answered
		case err != nil:
			c.server.ends(s, err)
			return nil, answered
		case s.buf.Len() > 0 && s.flush() != nil:
			return nil, answered
		}
	}
}

// readEntry is an entry of a session, or the error that ends them.
type readEntry struct {
	sessionlog.Entry
	err error
}

// readAhead reads the entries while the client reads earlier ones. It closes ended once nothing
// reads any more, which is soon after ctx ends.
func readAhead(ctx context.Context, entries iter.Seq2[sessionlog.Entry, error]) (ahead <-chan readEntry,
	ended <-chan struct{}) {
	read, end := make(chan readEntry, sessionAhead), make(chan struct{})
	go func() {
		defer close(end)
		defer close(read)
		for e, err := range entries {
			select {
			case read <- readEntry{e, err}:
			case <-ctx.Done():
				return
			}
		}
	}()
	return read, end
}

// nextEntries waits for an entry, and returns it with those that were read ahead. It returns
// entries together with an error if the error comes after them, and errMemberEnded if no entry
// follows.
func (s *stream) nextEntries(ahead <-chan readEntry) (some []sessionlog.Entry, err error) {
	err = s.waiting(func(ctx context.Context) error {
		select {
		case one, more := <-ahead:
			if !more {
				return errMemberEnded
			}
			if one.err == nil {
				some = append(some, one.Entry)
			}
			return one.err
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	})
	if err != nil {
		return nil, err
	}
	for range len(ahead) {
		one := <-ahead
		if one.err != nil {
			return some, one.err
		}
		some = append(some, one.Entry)
	}
	return some, nil
}

// lastEntry returns the number of the last entry that the member's sessions showed until now.
func lastEntry(t *engine.Team, member string) (last int64, err error) {
	v := t.SessionLog(member)
	if v == nil {
		return 0, nil
	}
	defer v.Close()
	for {
		some, err := v.Read()
		if len(some) == 0 || err != nil {
			return last, err
		}
		last = some[len(some)-1].Seq
	}
}

// entry adds an entry that comes after the one with the number after. A part of a running output
// has no number of its own.
func (s *stream) entry(e sessionlog.Entry, after int64) {
	id := strconv.FormatInt(e.Seq, 10)
	switch e.Kind {
	case sessionlog.Output:
		id = ""
	case sessionlog.Lost: // entries that the client had are not lost to it
		through := e.Seq + e.Count - 1
		e.Seq = max(e.Seq, after+1)
		if e.Count = through - e.Seq + 1; e.Count <= 0 {
			return
		}
		id = strconv.FormatInt(through, 10)
	default:
		if e.Seq <= after {
			return
		}
	}
	data, err := json.Marshal(e)
	if err != nil {
		panic(err) // an entry was read from the log, and can be written again
	}
	s.add(id, "entry", data)
}
