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

// MaxLine is how many bytes a line may have. A longer one is passed over.
const MaxLine = 16 << 20

// lastAnswers is how long the answers to what is under way may take in the end. A client that does
// not read them is not waited for.
const lastAnswers = 2 * time.Second

// Stdio serves the tools to whoever writes to in and reads from out, a message a line. It returns
// nil when in ends, and the error of ctx when that ends, or of out. It closes in.
func Stdio(ctx context.Context, tools agent.Tools, in io.ReadCloser, out io.Writer, o Options) (err error) {
	s, w := newServer(ctx, tools, o), &lines{out: out, failed: make(chan error, 1)}
	read := make(chan struct{})
	go func() {
		defer close(read)
		s.read(in, w.write)
	}()
	select {
	case <-read: // the client has gone
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

// read takes the messages of in until it ends.
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

// next reads a line; of one that is too long it reads to the end and keeps nothing.
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

// lines writes a message a line, until one could not be written.
type lines struct {
	mu     sync.Mutex
	out    io.Writer  // nil when no more is to be written
	failed chan error // why, unless it was closed
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

// close has nothing more written: a read of the input may still be under way.
func (l *lines) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.out = nil
}
