package acp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"

	sdk "github.com/coder/acp-go-sdk"
)

// lines are what the agent says, for the connection to read. The connection deals with requests at
// once, and with notifications one after the other, out of a queue that must not be full. So a
// request waits until what was said before it was dealt with, and so does every line after so many:
// an agent that says more than is taken has to wait.
type lines struct {
	from   *bufio.Reader
	now    []byte // the rest of the line that is being read
	held   []byte // the line that waits
	passed int    // lines since the last one that waited
	// closed when the connection is made up: it reads at once, and may not be told anything any
	// more while it does
	ready   chan struct{}
	reached chan struct{} // has something when all that was said before the line that waits was dealt with
}

const (
	// most is how many lines there may be in the queue.
	most = 256
	// longest is how long a line may be for the connection, in bytes.
	longest = 10<<20 - 1
	// markMethod is that of a notification of our own, which is dealt with when all before it was.
	markMethod = "_cadre/mark"
)

func newLines(from io.Reader) *lines {
	return &lines{from: bufio.NewReaderSize(from, 1<<16), ready: make(chan struct{}), reached: make(chan struct{}, 1)}
}

// Read reads on; at the end of a line it waits for the next one.
func (l *lines) Read(p []byte) (int, error) {
	<-l.ready
	if len(l.now) == 0 {
		if err := l.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, l.now)
	l.now = l.now[n:]
	return n, nil
}

// next goes on to the next line, or to the mark before it.
func (l *lines) next() error {
	if l.held != nil {
		<-l.reached
		l.now, l.held = l.held, nil
		return nil
	}
	for {
		line, err := l.from.ReadBytes('\n')
		switch {
		case len(line) == 0:
			return err
		case len(line) > longest && !bytes.HasPrefix(line, []byte("{")):
			continue // it is no message, and would end the connection
		case l.passed < most && !isRequest(line):
			l.now = line
			l.passed++
		default:
			l.now, l.held, l.passed = []byte(`{"jsonrpc":"2.0","method":"`+markMethod+`"}`+"\n"), line, 0
		}
		return nil
	}
}

func isRequest(line []byte) bool {
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method json.RawMessage `json:"method"`
	}
	return json.Unmarshal(line, &m) == nil && m.ID != nil && m.Method != nil
}

// HandleExtensionMethod takes the marks; an agent has nothing to say by methods of its own.
func (c client) HandleExtensionMethod(_ context.Context, method string, _ json.RawMessage) (any, error) {
	if method != markMethod {
		return nil, sdk.NewMethodNotFound(method)
	}
	select {
	case c.lines.reached <- struct{}{}:
	default:
	}
	return nil, nil
}
