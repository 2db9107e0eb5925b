package relay

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	"cadre/internal/journal"
	"cadre/internal/journal/store"
)

// Rights decide what one caller may do. Each method returns the refusal, or nil.
type Rights interface {
	Append(data []byte) error // add a record with that data
	Save() error              // save a snapshot or a keyframe, from which others start
	Acquire(lease string) error
	Change(key string) error // set or delete the value
}

// Served is what a server gives to its clients.
type Served struct {
	ID      string // of the journal
	Journal journal.Journal
	Team    store.Team
	// Rights returns the rights of the process at the other end of a connection, or why it has
	// none.
	Rights func(syscall.Conn) (Rights, error)
}

// frameTime bounds the wait for a client that sends its request or reads what is sent to it.
const frameTime = 10 * time.Second

// askTime bounds the wait for a client that was asked to decide: others are excluded meanwhile.
const askTime = 5 * time.Second

// Serve answers connections until ctx ends. Then it closes the listener, and waits for the calls in
// progress, which end too.
func Serve(ctx context.Context, l *net.UnixListener, s Served) {
	var calls sync.WaitGroup
	defer calls.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(ctx, func() { l.Close() })()
	for {
		conn, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // such as too many open files
			select {
			case <-time.After(50 * time.Millisecond):
				continue
			case <-ctx.Done():
				return
			}
		}
		calls.Go(func() { s.answer(ctx, conn) })
	}
}

// session is one call at the server.
type session struct {
	Served
	conn   net.Conn
	rights Rights
	frames chan frame // from the client; closed when it has gone
	out    sync.Mutex
}

type frame struct {
	kind    kind
	content []byte
}

// answer does one call.
func (s Served) answer(ctx context.Context, conn *net.UnixConn) {
	ctx, cancel := context.WithCancel(ctx)
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetReadDeadline(time.Unix(1, 0)) })()
	rights, err := s.Rights(conn)
	c := &session{Served: s, conn: conn, rights: rights, frames: make(chan frame)}
	var reading sync.WaitGroup
	reading.Go(func() { c.read(ctx, cancel) })
	defer reading.Wait()
	defer conn.Close() // ends the reading
	defer cancel()
	late := time.NewTimer(frameTime)
	defer late.Stop()
	var first frame
	var ok bool
	select {
	case first, ok = <-c.frames:
	case <-late.C:
	case <-ctx.Done():
	}
	if !ok {
		return
	}
	var r request
	if err == nil {
		err = json.Unmarshal(first.content, &r)
	}
	if err == nil && first.kind == isRequest {
		err = c.do(ctx, r)
	}
	if err != nil && ctx.Err() != nil {
		err = errEnding
	}
	if err != nil {
		_ = c.send(isError, failureOf(err))
	}
}

// errEnding reports that a server ends, before it has done what was asked.
var errEnding = errors.New("the host of the team is ending")

// read reads the client's frames until it has gone, and then cancels its call.
func (c *session) read(ctx context.Context, cancel context.CancelFunc) {
	defer close(c.frames)
	defer cancel()
	r := bufio.NewReader(c.conn)
	for {
		k, content, err := readFrame(r)
		if err != nil {
			return
		}
		select {
		case c.frames <- frame{k, content}:
		case <-ctx.Done():
			return
		}
	}
}

// send sends a frame with a JSON value.
func (c *session) send(k kind, v any) error {
	c.out.Lock()
	defer c.out.Unlock()
	c.conn.SetWriteDeadline(time.Now().Add(frameTime))
	return writeJSON(c.conn, k, v)
}

// sendData sends a frame with bytes.
func (c *session) sendData(k kind, parts ...[]byte) error {
	c.out.Lock()
	defer c.out.Unlock()
	c.conn.SetWriteDeadline(time.Now().Add(frameTime))
	return writeFrame(c.conn, k, parts...)
}

// ask asks the client to decide.
func (c *session) ask(ctx context.Context) (content []byte, err error) {
	if err := c.sendData(isAsk); err != nil {
		return nil, err
	}
	late := time.NewTimer(askTime)
	defer late.Stop()
	select {
	case f, ok := <-c.frames:
		switch {
		case !ok:
			return nil, io.ErrUnexpectedEOF
		case f.kind == isNothing:
			return nil, nil
		case f.kind == isData:
			return f.content, nil
		}
		return nil, fmt.Errorf("a frame of kind %c where data was expected", f.kind)
	case <-late.C:
		return nil, fmt.Errorf("the process did not decide within %s", askTime)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// do does the call, and sends its result.
func (c *session) do(ctx context.Context, r request) error {
	switch r.Call {
	case callOpen:
		return c.send(isValue, opened{c.ID})
	case callAppend:
		return c.append(ctx, r)
	case callRead:
		return c.readRecords(ctx, r)
	case callWait:
		return c.done(c.Journal.Wait(ctx, r.Seq))
	case callSnapshot:
		return c.snapshot(c.Journal.Snapshot(ctx))
	case callDue:
		return c.send(isValue, c.Journal.SnapshotDue(r.Size))
	case callSaveSnapshot:
		return c.save(ctx)
	case callKeyframes:
		seqs, err := c.Journal.Keyframes(ctx)
		return c.result(seqs, err)
	case callKeyframe:
		return c.snapshot(c.Journal.Keyframe(ctx, r.Seq))
	case callSaveKeyframe:
		if c.rights.Save() != nil { // it is no loss
			return c.done(nil)
		}
		return c.done(c.Journal.SaveKeyframe(ctx, journal.Snapshot{Seq: r.Seq, Data: string(r.Data)}))
	case callAcquire, callHeld, callHolder, callAllHeld:
		return c.lease(ctx, r)
	}
	return c.value(ctx, r)
}

// result sends the value, or returns the error.
func (c *session) result(v any, err error) error {
	if err != nil {
		return err
	}
	return c.send(isValue, v)
}

// done sends the end of a call without a result, or returns its error.
func (c *session) done(err error) error { return c.result(struct{}{}, err) }

func (c *session) append(ctx context.Context, r request) error {
	// Once the client has decided, the end of its connection does not interrupt the append.
	seq, err := c.Journal.Append(ctx, r.Seq, func(r journal.Record) error {
		return c.sendData(isRecord, withSeq(r.Seq), r.Data)
	}, func() ([]byte, error) {
		data, err := c.ask(ctx)
		if err == nil && data != nil {
			err = c.rights.Append(data)
		}
		return data, err
	})
	return c.result(seq, err)
}

func (c *session) readRecords(ctx context.Context, r request) error {
	for record, err := range c.Journal.Read(ctx, r.Seq) {
		if err == nil {
			err = c.sendData(isRecord, withSeq(record.Seq), record.Data)
		}
		if err != nil {
			return err
		}
	}
	return c.done(nil)
}

func (c *session) snapshot(s journal.Snapshot, err error) error {
	if err != nil {
		return err
	}
	return c.sendData(isData, withSeq(s.Seq), []byte(s.Data))
}

// save saves a snapshot. For a caller without the right to that it does nothing, as while another
// process saves one.
func (c *session) save(ctx context.Context) error {
	if c.rights.Save() != nil {
		return c.done(nil)
	}
	var asked error
	err := c.Journal.SaveSnapshot(ctx, func() (seq int64, data []byte) {
		content, err := c.ask(ctx)
		if err == nil {
			seq, data, err = cutSeq(content)
		}
		asked = err
		return seq, data
	})
	return c.done(errors.Join(asked, err))
}

// lease does a call about a lease. One that is acquired lasts as long as the connection.
func (c *session) lease(ctx context.Context, r request) error {
	switch r.Call {
	case callHeld:
		return c.send(isValue, held{Is: c.Team.Held(ctx, r.Name)})
	case callHolder:
		h, is, err := c.Team.Holder(ctx, r.Name)
		return c.result(held{Is: is, Machine: h.Machine, Pid: h.Pid}, err)
	case callAllHeld:
		names, err := c.Team.AllHeld(ctx, r.Name)
		return c.result(held{Names: names}, err)
	}
	if err := c.rights.Acquire(r.Name); err != nil {
		return err
	}
	lease, err := c.Team.Acquire(ctx, r.Name)
	if err != nil {
		return err
	}
	defer lease.Release()
	if err := c.send(isValue, held{Is: true, Fence: lease.Fence(), Until: nanoseconds(lease.Until())}); err != nil {
		return nil
	}
	c.hold(ctx, lease)
	return nil
}

// untilEvery is how often the client of a lease is told until when the lease is held.
const untilEvery = 500 * time.Millisecond

// hold keeps a lease until the client has gone, or the lease is lost.
func (c *session) hold(ctx context.Context, lease store.Lease) {
	tick := time.NewTicker(untilEvery)
	defer tick.Stop()
	last := lease.Until()
	for {
		select {
		case <-c.frames: // the client releases it, or has gone
			return
		case <-lease.Lost():
			return
		case <-ctx.Done():
			return
		case <-tick.C:
			if now := lease.Until(); !now.Equal(last) {
				last = now
				if c.send(isUntil, nanoseconds(now)) != nil {
					return
				}
			}
		}
	}
}

func nanoseconds(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixNano()
}

// value does a call about a value.
func (c *session) value(ctx context.Context, r request) error {
	switch r.Call {
	case callGet:
		data, err := c.Team.Get(ctx, r.Name)
		if err != nil {
			return err
		}
		return c.sendData(isData, data)
	case callHas:
		has, err := c.Team.Has(ctx, r.Name)
		return c.result(has, err)
	case callAll:
		all, err := c.Team.All(ctx, r.Name)
		values := []value{}
		for _, v := range all {
			one := value{Key: v.Key, Data: v.Data}
			if v.Err != nil {
				one.Err = v.Err.Error()
			}
			values = append(values, one)
		}
		return c.result(values, err)
	case callAwait:
		return c.done(c.Team.Await(ctx, r.Name))
	}
	return c.change(ctx, r)
}

// change sets or deletes values.
func (c *session) change(ctx context.Context, r request) error {
	keys := []string{r.Name}
	values := make([]store.Value, 0, len(r.Values))
	if r.Call == callReplace {
		keys = nil
		for _, v := range r.Values {
			keys, values = append(keys, v.Key), append(values, store.Value{Key: v.Key, Data: v.Data})
		}
	}
	for _, key := range keys {
		if err := c.rights.Change(key); err != nil {
			return err
		}
	}
	switch r.Call {
	case callPut:
		return c.done(c.Team.Put(ctx, r.Name, r.Data))
	case callPutOnce:
		data, err := c.Team.PutOnce(ctx, r.Name, r.Data)
		if err != nil {
			return err
		}
		return c.sendData(isData, data)
	case callReplace:
		return c.done(c.Team.Replace(ctx, values...))
	case callDelete:
		return c.done(c.Team.Delete(ctx, r.Name))
	}
	return fmt.Errorf("this version of cadre does not know the call %q", r.Call)
}
