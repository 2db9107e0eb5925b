package acp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	sdk "github.com/coder/acp-go-sdk"
)

// hookTimeout bounds the hook: the agent waits for it before every call of its model.
const hookTimeout = 5 * time.Second

// Hook runs in the process of Gemini CLI's BeforeModel hook. It reads a request from in, and writes
// it to out with the prompts that wait at the session behind the socket. It also sends the session
// a digest of the request's history. The request of another session is unchanged: a gemini that the
// member started in its shell has the same hook.
//
// The program's history never contains what a hook adds. So a prompt is the newest message of one
// call. Each later call of the turn has it after the message that started the turn, marked as seen.
// It cannot be where the model first saw it. The program matches the hook's messages with its own
// by position, so a message in the middle would replace another one.
func Hook(ctx context.Context, socket string, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, hookTimeout)
	defer cancel()
	var event struct {
		Session sdk.SessionId              `json:"session_id"`
		Request map[string]json.RawMessage `json:"llm_request"`
	}
	data, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(data, &event); err != nil {
		return err
	}
	var messages []json.RawMessage
	if err := json.Unmarshal(event.Request["messages"], &messages); err != nil {
		return errors.New("the hook was given no messages")
	}
	add, err := ask(ctx, socket, coming{Session: event.Session, Began: digest(messages)})
	if err != nil || add == (handout{}) {
		_, err := io.WriteString(out, "{}")
		return err
	}
	if event.Request["messages"], err = json.Marshal(add.to(messages)); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(map[string]any{"hookSpecificOutput": map[string]any{
		"hookEventName": "BeforeModel", "llm_request": event.Request}})
}

// llmMessage is a message of a request, as the program shows it to a hook: all texts of a turn of
// the user or the model, joined.
type llmMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

// seenBefore precedes prompts that an earlier call of the turn had.
const seenBefore = "(The messages below reached you while you worked on the above. You have seen them already; they " +
	"are not new.)\n"

// to returns the messages with the additions. If the message that started the turn is missing,
// because the program shortened its history, the prompts seen before come at the end as well.
func (h handout) to(messages []json.RawMessage) []any {
	all := make([]any, len(messages), len(messages)+2)
	behind := -1
	for i, raw := range messages {
		all[i] = raw
		var m llmMessage
		if h.After != "" && json.Unmarshal(raw, &m) == nil && m.Role == "user" && strings.Contains(m.Content, h.After) {
			behind = i
		}
	}
	switch again := seenBefore + h.Again; {
	case h.Again == "":
	case behind < 0:
		all = append(all, llmMessage{"user", again})
	default:
		var m llmMessage
		json.Unmarshal(messages[behind], &m)
		m.Content += "\n\n" + again
		all[behind] = m
	}
	if h.New != "" {
		all = append(all, llmMessage{"user", h.New})
	}
	return all
}

// digest identifies the beginning of a history.
func digest(messages []json.RawMessage) string {
	if len(messages) == 0 {
		return ""
	}
	sum := sha256.Sum256(messages[0])
	return hex.EncodeToString(sum[:8])
}

// coming is a call of the model that is about to be made.
type coming struct {
	Session sdk.SessionId `json:"session"`
	Began   string        `json:"began"` // a digest of the beginning of its history
}

// ask gets the additions from the session.
func ask(ctx context.Context, socket string, call coming) (add handout, err error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return add, err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		conn.SetDeadline(deadline)
	}
	if err := json.NewEncoder(conn).Encode(call); err != nil {
		return add, err
	}
	return add, json.NewDecoder(conn).Decode(&add)
}

// listen serves the hook on that socket with the result of next. admit can refuse a connection
// because of its peer.
func listen(socket string, admit func(syscall.Conn) error, next func(coming) handout) (net.Listener, error) {
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return nil, err
	}
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.SetDeadline(time.Now().Add(hookTimeout))
			if admit(conn.(*net.UnixConn)) != nil { // the mail belongs to another session
				conn.Close()
				continue
			}
			var call coming
			if json.NewDecoder(io.LimitReader(conn, 4096)).Decode(&call) == nil {
				json.NewEncoder(conn).Encode(next(call))
			}
			conn.Close()
		}
	}()
	return listener, nil
}
