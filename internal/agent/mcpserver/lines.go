package mcpserver

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// MaxLine is how many bytes a line may have. A longer one is passed over.
const MaxLine = 16 << 20

// errGone says that nothing more comes.
var errGone = errors.New("the connection is closed")

// lines is the transport with a message a line. The SDK's own ends at the first line that is no
// message.
type lines struct {
	in  io.ReadCloser
	out io.Writer

	messages chan jsonrpc.Message
	closed   chan struct{}
	once     sync.Once
	writing  sync.Mutex // held to write a line
}

// Connect starts to read. It is called once.
func (l *lines) Connect(context.Context) (mcp.Connection, error) {
	l.messages, l.closed = make(chan jsonrpc.Message), make(chan struct{})
	go l.read()
	return l, nil
}

// read passes the messages on until the input ends.
func (l *lines) read() {
	defer close(l.messages)
	r := bufio.NewReaderSize(l.in, 64<<10)
	for {
		line, err := next(r)
		switch message, broken := decoded(line); {
		case errors.Is(err, errLong):
			l.write(refusal(jsonrpc.CodeInvalidRequest, err.Error()))
		case len(bytes.TrimSpace(line)) == 0:
		case broken != nil:
			l.write(broken)
		default:
			select {
			case l.messages <- message:
			case <-l.closed:
				return
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

// decoded is the message of a line, or the answer to a line that has none.
func decoded(line []byte) (message jsonrpc.Message, broken []byte) {
	message, err := jsonrpc.DecodeMessage(line)
	if err != nil {
		return nil, refusal(jsonrpc.CodeParseError, "not a JSON-RPC message: "+err.Error())
	}
	return message, nil
}

func (l *lines) write(line []byte) error {
	l.writing.Lock()
	defer l.writing.Unlock()
	_, err := l.out.Write(append(line, '\n'))
	return err
}

// Read returns the next message.
func (l *lines) Read(ctx context.Context) (jsonrpc.Message, error) {
	select {
	case message, ok := <-l.messages:
		if !ok {
			return nil, io.EOF
		}
		return message, nil
	case <-l.closed:
		return nil, errGone
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Write writes a message.
func (l *lines) Write(_ context.Context, message jsonrpc.Message) error {
	line, err := jsonrpc.EncodeMessage(message)
	if err != nil {
		return err
	}
	return l.write(line)
}

// Close ends the connection, and the input with it.
func (l *lines) Close() (err error) {
	l.once.Do(func() {
		close(l.closed)
		err = l.in.Close()
	})
	return err
}

// SessionID is for transports that have one.
func (l *lines) SessionID() string { return "" }
