package acp

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"

	sdk "github.com/coder/acp-go-sdk"
)

// lines are the agent's messages, for the connection to read. The connection handles requests at
// once, and notifications one after the other, from a queue that must not overflow. So a request
// waits until everything before it was handled, and so does a line after a number of lines. An
// agent that sends too much has to wait.
type lines struct {
	from   *bufio.Reader
	now    []byte // the rest of the current line
	held   []byte // the waiting line
	passed int    // lines since the last one that waited
	// closed when the connection is set up: it reads at once, and must not be changed while it
	// reads
	ready   chan struct{}
	reached chan struct{} // signals that everything before the waiting line was handled
}

const (
	// most bounds the lines in the queue.
	most = 256
	// longest is the connection's longest line, in bytes.
	longest = 10<<20 - 1
	// markMethod is a notification of our own. It is handled after everything before it.
	markMethod = "_cadre/mark"
)

func newLines(from io.Reader) *lines {
	return &lines{from: bufio.NewReaderSize(from, 1<<16), ready: make(chan struct{}), reached: make(chan struct{}, 1)}
}

// Read reads the current line; at its end it waits for the next one.
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

// next moves on to the next line, or to the mark before it.
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
			continue // it is not a message, and would end the connection
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

// HandleExtensionMethod handles the marks. Agents have no methods of their own here.
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
