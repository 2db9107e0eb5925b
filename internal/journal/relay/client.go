package relay

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"os"
	"sync"
	"time"

	"cadre/internal/journal"
	"cadre/internal/sys/unixsocket"
)

// Open opens the journal that a server gives on its socket.
func Open(ctx context.Context, socket string) (*Journal, error) {
	ctx, cancel := context.WithTimeout(ctx, frameTime)
	defer cancel()
	j := &Journal{client: client{socket}}
	j.closing, j.end = context.WithCancelCause(context.Background())
	var is opened
	if err := j.ask(ctx, request{Call: callOpen}, &is); err != nil {
		return nil, err
	}
	j.id = is.ID
	return j, nil
}

// client makes calls.
type client struct{ socket string }

// exchange is one call at the client.
type exchange struct {
	conn net.Conn
	r    *bufio.Reader
	stop func() bool // no longer ends the call with its context
}

// begin makes a call. The end of ctx ends it, up to the call of stop.
func (c client) begin(ctx context.Context, r request) (*exchange, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	conn, err := unixsocket.Dial(ctx, c.socket)
	if err != nil { // as text: that there is no socket does not mean that there is no value
		return nil, fmt.Errorf("the host of the team does not answer: %v", err)
	}
	x := &exchange{conn: conn, r: bufio.NewReader(conn)}
	x.stop = context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	if err := writeJSON(conn, isRequest, r); err != nil {
		x.close()
		return nil, because(ctx, err)
	}
	return x, nil
}

func (x *exchange) close() {
	x.stop()
	x.conn.Close()
}

// because returns the error of a call, or that of its context if it has ended.
func because(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("the host of the team has ended: %w", err)
	}
	return err
}

// next reads a frame. The error of the server is an error.
func (x *exchange) next() (kind, []byte, error) {
	k, content, err := readFrame(x.r)
	if err != nil || k != isError {
		return k, content, err
	}
	var f failure
	if err := json.Unmarshal(content, &f); err != nil {
		return k, nil, err
	}
	return k, nil, f.err()
}

// ask makes a call whose result is a JSON value.
func (c client) ask(ctx context.Context, r request, result any) error {
	x, err := c.begin(ctx, r)
	if err != nil {
		return err
	}
	defer x.close()
	k, content, err := x.next()
	if err == nil && k != isValue {
		err = unexpected(k)
	}
	if err != nil {
		return because(ctx, err)
	}
	return json.Unmarshal(content, result)
}

// data makes a call whose result is data.
func (c client) data(ctx context.Context, r request) ([]byte, error) {
	x, err := c.begin(ctx, r)
	if err != nil {
		return nil, err
	}
	defer x.close()
	k, content, err := x.next()
	if err == nil && k != isData {
		err = unexpected(k)
	}
	return content, because(ctx, err)
}

func unexpected(k kind) error {
	return fmt.Errorf("the host of the team answered with a frame of kind %c", k)
}

// Journal is a team's journal at a server. It implements [journal.Journal].
type Journal struct {
	client
	id      string
	closing context.Context // ends with Close
	end     context.CancelCauseFunc

	mu    sync.Mutex
	calls sync.WaitGroup
}

var _ journal.Journal = (*Journal)(nil)

// ID returns the id of the journal.
func (j *Journal) ID() string { return j.id }

// Close implements [journal.Journal].
func (j *Journal) Close() error {
	j.mu.Lock()
	j.end(os.ErrClosed)
	j.mu.Unlock()
	return nil
}

// enter begins a call. Close ends its context.
func (j *Journal) enter(ctx context.Context) (inner context.Context, leave func()) {
	inner, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(j.closing, func() { cancel(os.ErrClosed) })
	return inner, func() { stop(); cancel(nil) }
}

// explain returns the error of a call, as the contract says.
func (j *Journal) explain(ctx context.Context, err error) error {
	if err != nil && j.closing.Err() != nil {
		return fmt.Errorf("the journal of %s: %w", j.id, os.ErrClosed)
	}
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	return err
}

// asked is [client.ask] for the journal.
func (j *Journal) asked(ctx context.Context, r request, result any) error {
	inner, leave := j.enter(ctx)
	defer leave()
	return j.explain(ctx, j.ask(inner, r, result))
}

// Append implements [journal.Journal].
func (j *Journal) Append(ctx context.Context, after int64, catchUp func(journal.Record) error,
	decide func() ([]byte, error)) (int64, error) {
	inner, leave := j.enter(ctx)
	defer leave()
	x, err := j.begin(inner, request{Call: callAppend, Seq: after})
	if err != nil {
		return 0, j.explain(ctx, err)
	}
	defer x.close() // whatever decide does, others can write then
	sent := false
	for {
		k, content, err := x.next()
		if _, answered := errors.AsType[*servedError](err); err != nil && sent && !answered {
			return 0, fmt.Errorf("%w: %w", journal.ErrUncertain, err)
		}
		if err != nil {
			return 0, j.explain(ctx, because(inner, err))
		}
		switch k {
		case isRecord:
			seq, data, err := cutSeq(content)
			if err == nil && seq > after {
				err = catchUp(journal.Record{Seq: seq, Data: data})
			}
			if err != nil {
				return 0, err
			}
		case isAsk:
			data, err := decide()
			if err != nil {
				return 0, err
			}
			x.stop() // the end of the context does not interrupt what is decided
			if sent, err = x.answer(data); err != nil {
				return 0, fmt.Errorf("%w: %w", journal.ErrUncertain, err)
			}
		case isValue:
			var seq int64
			return seq, json.Unmarshal(content, &seq)
		default:
			return 0, unexpected(k)
		}
	}
}

// answer sends what was decided, with a limit for the rest of the call.
func (x *exchange) answer(data []byte) (sent bool, err error) {
	const longest = 2 * time.Minute // longer than any append looks for its record
	if err := x.conn.SetDeadline(time.Now().Add(longest)); err != nil {
		return false, err
	}
	if len(data) == 0 {
		return false, writeFrame(x.conn, isNothing)
	}
	return true, writeFrame(x.conn, isData, data)
}

// Read implements [journal.Journal].
func (j *Journal) Read(ctx context.Context, after int64) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		inner, leave := j.enter(ctx)
		defer leave()
		x, err := j.begin(inner, request{Call: callRead, Seq: after})
		if err != nil {
			yield(journal.Record{}, j.explain(ctx, err))
			return
		}
		defer x.close()
		for {
			k, content, err := x.next()
			var r journal.Record
			if err == nil && k == isRecord {
				r.Seq, r.Data, err = cutSeq(content)
			}
			if err == nil && inner.Err() != nil { // frames that came before
				err = inner.Err()
			}
			switch {
			case err != nil:
				yield(journal.Record{}, j.explain(ctx, because(inner, err)))
				return
			case k == isValue:
				return
			case k != isRecord:
				yield(journal.Record{}, unexpected(k))
				return
			case !yield(r, nil):
				return
			}
		}
	}
}

// Wait implements [journal.Journal].
func (j *Journal) Wait(ctx context.Context, after int64) error {
	return j.asked(ctx, request{Call: callWait, Seq: after}, &struct{}{})
}

// Snapshot implements [journal.Journal].
func (j *Journal) Snapshot(ctx context.Context) (journal.Snapshot, error) {
	return j.loaded(ctx, request{Call: callSnapshot})
}

// Keyframe implements [journal.Journal].
func (j *Journal) Keyframe(ctx context.Context, seq int64) (journal.Snapshot, error) {
	return j.loaded(ctx, request{Call: callKeyframe, Seq: seq})
}

func (j *Journal) loaded(ctx context.Context, r request) (s journal.Snapshot, err error) {
	inner, leave := j.enter(ctx)
	defer leave()
	content, err := j.data(inner, r)
	if err != nil {
		return s, j.explain(ctx, err)
	}
	seq, data, err := cutSeq(content)
	return journal.Snapshot{Seq: seq, Data: string(data)}, err
}

// dueTime bounds [Journal.SnapshotDue], which has no context.
const dueTime = 10 * time.Second

// SnapshotDue implements [journal.Journal].
func (j *Journal) SnapshotDue(size int) (due bool) {
	ctx, cancel := context.WithTimeout(context.Background(), dueTime)
	defer cancel()
	return j.asked(ctx, request{Call: callDue, Size: size}, &due) == nil && due
}

// SaveSnapshot implements [journal.Journal].
func (j *Journal) SaveSnapshot(ctx context.Context, take func() (seq int64, data []byte)) error {
	inner, leave := j.enter(ctx)
	defer leave()
	x, err := j.begin(inner, request{Call: callSaveSnapshot})
	if err != nil {
		return j.explain(ctx, err)
	}
	defer x.close()
	for {
		k, _, err := x.next()
		if err == nil && k == isAsk {
			seq, data := take()
			err = writeFrame(x.conn, isData, withSeq(seq), data)
		} else if err == nil && k != isValue {
			err = unexpected(k)
		}
		if err != nil || k == isValue {
			return j.explain(ctx, because(inner, err))
		}
	}
}

// Keyframes implements [journal.Journal].
func (j *Journal) Keyframes(ctx context.Context) (seqs []int64, err error) {
	err = j.asked(ctx, request{Call: callKeyframes}, &seqs)
	return seqs, err
}

// SaveKeyframe implements [journal.Journal].
func (j *Journal) SaveKeyframe(ctx context.Context, s journal.Snapshot) error {
	return j.asked(ctx, request{Call: callSaveKeyframe, Seq: s.Seq, Data: []byte(s.Data)}, &struct{}{})
}
