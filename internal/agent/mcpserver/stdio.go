package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"

	"cadre/internal/agent"
)

// MaxLine is the maximum length of a line in bytes. A longer line is skipped.
const MaxLine = 16 << 20

// lastAnswers bounds the time for the last answers at the end, because a client may not read them.
const lastAnswers = 2 * time.Second

// Stdio serves the tools to a client that writes to in and reads from out, a message a line. It
// returns nil when in ends, and otherwise the error of ctx or of out. It closes in.
func Stdio(ctx context.Context, tools agent.Tools, in io.ReadCloser, out io.Writer, o Options) (err error) {
	s, w := newServer(ctx, tools, o), &lines{out: out, failed: make(chan error, 1)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		s.read(in, w.write)
	}()
	select {
	case <-read: // the client has ended
	case err = <-w.failed:
	case <-ctx.Done():
		err = ctx.Err()
	}
	in.Close()
	over := make(chan struct{})
	go func() {
		defer close(over)
		s.end()
		w.close()
	}()
	select {
	case <-over:
	case <-time.After(lastAnswers):
	}
	return err
}

// Introduced waits for the first message of a client. It returns in with that message unread, and
// whether the client initializes the server with it. If in ends first, no client was there. The
// error is that of ctx, or says what the client sent instead.
func Introduced(ctx context.Context, in io.ReadCloser) (_ io.ReadCloser, is bool, _ error) {
	var line []byte
	r, read := bufio.NewReaderSize(in, 64<<10), make(chan struct{})
	go func() {
		defer close(read)
		for err := error(nil); err == nil && len(bytes.TrimSpace(line)) == 0; {
			line, err = next(r)
		}
	}()
	select {
	case <-ctx.Done():
		return in, false, ctx.Err()
	case <-read:
	}
	if len(bytes.TrimSpace(line)) == 0 {
		return in, false, nil
	}
	m, broken := decoded(line)
	if broken != nil || m.Method != "initialize" {
		return in, false, errors.New("the first message on standard input is not the initialize of an MCP client")
	}
	return struct {
		io.Reader
		io.Closer
	}{io.MultiReader(bytes.NewReader(append(line, '\n')), r), in}, true, nil
}

// read handles the messages of in until it ends.
func (s *server) read(in io.Reader, reply func(json.RawMessage)) {
	r := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := next(r)
		switch {
		case errors.Is(err, errLong):
			reply(refusal(nil, invalidRequest, err.Error()))
		case len(bytes.TrimSpace(line)) > 0:
			if m, broken := decoded(line); broken != nil {
				reply(broken)
			} else {
				s.take(m, reply)
			}
		}
		if err != nil && !errors.Is(err, errLong) {
			return
		}
	}
}

var errLong = errors.New("the line is too long")

// next reads a line. It reads a line that is too long to its end, and discards it.
func next(r *bufio.Reader) (line []byte, err error) {
	long := false
	for {
		part, err := r.ReadSlice('\n')
		if long = long || len(line)+len(part) > MaxLine; !long {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case long && err == nil:
			return nil, errLong
		case long:
			return nil, err
		}
		return line, err
	}
}

// lines writes a message a line, until a write fails.
type lines struct {
	mu     sync.Mutex
	out    io.Writer  // nil when nothing more may be written
	failed chan error // the write error, unless it was closed
}

func (l *lines) write(message json.RawMessage) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.out == nil {
		return
	}
	if _, err := l.out.Write(append(message, '\n')); err != nil {
		l.out = nil
		l.failed <- err
	}
}

// close stops all writing, even if a read of the input continues.
func (l *lines) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out = nil
}
