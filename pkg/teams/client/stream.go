package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strconv"
	"time"

	"cadre/internal/agent/sessionlog"
	core "cadre/internal/team"
	"cadre/pkg/teams"
)

// Events yields the events of a team after the record with that number, 0 for the whole history,
// and then those that happen. It goes on across restarts of the server, and yields each event once.
// The Seq of the last event is where a later call continues.
//
// The sequence ends without an error when the team is removed. Otherwise its last pair has the
// error: that of ctx; [teams.ErrNotFound] for a team that does not exist; a [*ProblemError] with
// the code ahead, if the team has no such record yet, or gone, if the records after it are lost to
// damage.
func (c *Client) Events(ctx context.Context, name string, after int64) iter.Seq2[teams.Event, error] {
	return func(yield func(teams.Event, error) bool) {
		err := c.follow(ctx, name, func(id string) request {
			return team("GET", id, "events").number("after", after)
		}, func(e event) (bool, error) {
			r := &core.Record{}
			switch err := json.Unmarshal(e.data, r); {
			case err != nil:
				return false, fmt.Errorf("read a record: %w", err)
			case r.Seq <= after:
				return true, nil
			case r.Seq != after+1:
				return false, fmt.Errorf("the server sends record %d after record %d", r.Seq, after)
			}
			after = r.Seq
			for _, one := range of[[]teams.Event](r) {
				if !yield(one, nil) {
					return false, nil
				}
				if _, last := one.Fact.(teams.TeamCleanedUp); last {
					return false, nil
				}
			}
			return true, nil
		})
		if err != nil {
			yield(teams.Event{}, err)
		}
	}
}

// Session yields what the sessions of a member showed, as far as the server keeps it, and then what
// they show. After a broken connection, it yields the output of a tool that is still running again;
// see [teams.ShownOutput]. The sequence ends without an error when the member has ended, or its
// team is removed. It ends with the error of ctx, or [teams.ErrInvalid] for a member that runs its
// own session.
func (c *Client) Session(ctx context.Context, name, member string) iter.Seq2[teams.Shown, error] {
	return func(yield func(teams.Shown, error) bool) {
		var after int64
		err := c.follow(ctx, name, func(id string) request {
			return team("GET", id, "members", member, "session").number("after", after)
		}, func(e event) (bool, error) {
			var entry sessionlog.Entry
			if err := json.Unmarshal(e.data, &entry); err != nil {
				return false, fmt.Errorf("read an entry of the session: %w", err)
			}
			if e.id != "" {
				id, err := strconv.ParseInt(e.id, 10, 64)
				if err != nil {
					return false, fmt.Errorf("read the id of an entry: %w", err)
				}
				if id <= after {
					return true, nil
				}
				after = id
			}
			return yield(of[teams.Shown](entry), nil), nil
		})
		if err != nil {
			yield(teams.Shown{}, err)
		}
	}
}

// Watch yields the present state of all teams, with what waits for a person, and then each new
// state. A slow consumer skips states. After a broken connection, it yields the state at that time.
// The last pair has the error of ctx.
func (c *Client) Watch(ctx context.Context) iter.Seq2[Teams, error] {
	return func(yield func(Teams, error) bool) {
		err := c.follow(ctx, "", func(string) request { return get("watch") }, func(e event) (bool, error) {
			var all allTeams
			if err := json.Unmarshal(e.data, &all); err != nil {
				return false, fmt.Errorf("read the teams: %w", err)
			}
			return yield(all.public(), nil), nil
		})
		if err != nil {
			yield(Teams{}, err)
		}
	}
}

// event is a server-sent event.
type event struct {
	id, kind string
	data     []byte
}

// errStopped ends a stream that the consumer has left.
var errStopped = errors.New("the consumer has left")

// follow follows a stream of a team, or of all teams for the name "", over any number of
// connections. It asks next for the request of each connection, with the id of the team, which no
// later team of that name has. It calls see with each event, until see returns false or an error.
func (c *Client) follow(ctx context.Context, name string, next func(id string) request,
	see func(event) (bool, error)) error {
	ctx, cancel := c.bounded(ctx)
	defer cancel()
	id := ""
	if name != "" {
		is, err := c.Status(ctx, name)
		if err != nil {
			return err
		}
		id = is.Team.ID
	}
	again := &patience{ctx: ctx, until: ctx, end: func() {}}
	for {
		err := c.listen(ctx, next(id), func(e event) error {
			switch e.kind {
			case "end":
				return errStopped
			case "problem":
				err := problemOf(e.data, http.StatusOK)
				if p, is := errors.AsType[*ProblemError](err); is && p.Code == "failed" {
					return &brokenError{cause: err} // the next connection shows why
				}
				return err
			}
			again.n = 0
			switch more, err := see(e); {
			case err != nil:
				return err
			case !more:
				return errStopped
			}
			return nil
		})
		if b, is := errors.AsType[*brokenError](err); is {
			if err := again.wait(b); err != nil {
				return context.Cause(ctx)
			}
			continue
		}
		if errors.Is(err, errStopped) || id != "" && errors.Is(err, teams.ErrNotFound) && c.gone(ctx, id) {
			return nil
		}
		return err
	}
}

// gone reports whether a team that there was is removed.
func (c *Client) gone(ctx context.Context, id string) bool {
	_, err := c.Status(ctx, id)
	return errors.Is(err, teams.ErrNotFound)
}

// listen calls see with the events of one connection. It returns the error of see, or why there are
// no more events.
func (c *Client) listen(ctx context.Context, r request, see func(event) error) error {
	if r.err != nil {
		return r.err
	}
	silent := fmt.Errorf("the server was silent for %v", c.options.Silence)
	heard, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	timer := time.AfterFunc(c.options.Silence, func() { cancel(silent) })
	defer timer.Stop()
	broken := func(err error) error {
		if ctx.Err() == nil && heard.Err() != nil {
			return &brokenError{cause: silent}
		}
		return err
	}
	is, err := c.send(heard, r, nil, "")
	if err != nil {
		return broken(err)
	}
	defer is.Body.Close()
	if is.StatusCode != http.StatusOK {
		_, err := c.read(heard, is)
		return broken(err)
	}
	lines := bufio.NewReaderSize(is.Body, 64<<10)
	var e event
	for {
		line, err := readLine(lines)
		if err != nil {
			return broken(c.broken(heard, err))
		}
		timer.Reset(c.options.Silence)
		key, value, _ := bytes.Cut(line, []byte(": "))
		switch string(key) {
		case "id":
			e.id = string(value)
		case "event":
			e.kind = string(value)
		case "data":
			e.data = value
		case "":
			if e.kind != "" { // not after a comment
				if err := see(e); err != nil {
					return err
				}
			}
			e = event{}
		}
	}
}

// maxLine bounds a line of a stream, in bytes.
const maxLine = 256 << 20

// readLine reads a whole line, without its end.
func readLine(r *bufio.Reader) (line []byte, err error) {
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case err == nil:
			return bytes.TrimSuffix(line, []byte("\n")), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err // a line without an end was cut off
		case len(line) > maxLine:
			return nil, fmt.Errorf("a line of the server is longer than %d bytes: %w", maxLine, io.ErrShortBuffer)
		}
	}
}
