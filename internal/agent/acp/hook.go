package acp

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net"
	"syscall"
	"time"
)

// hookTimeout bounds what the hook may take: the agent waits for it before every call of its model.
const hookTimeout = 5 * time.Second

// Hook is what runs in the process of the hook BeforeModel of Gemini CLI: it tells the session behind the socket what the request that in has begins with, adds the
// prompts that wait there, and writes that to out. Without a session it changes nothing.
func Hook(ctx context.Context, socket string, in io.Reader, out io.Writer) error {
	ctx, cancel := context.WithTimeout(ctx, hookTimeout)
	defer cancel()
	var event struct {
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
	text, err := ask(ctx, socket, digest(messages))
	if err != nil || text == "" {
		_, err := io.WriteString(out, "{}")
		return err
	}
	added, err := json.Marshal(map[string]string{"role": "user", "content": text})
	if err != nil {
		return err
	}
	if event.Request["messages"], err = json.Marshal(append(messages, added)); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(map[string]any{"hookSpecificOutput": map[string]any{"hookEventName": "BeforeModel", "llm_request": event.Request}})
}

// digest stands for what a history begins with.
func digest(messages []json.RawMessage) string {
	if len(messages) == 0 {
		return ""
	}
	sum := sha256.Sum256(messages[0])
	return hex.EncodeToString(sum[:8])
}

// ask gets what is to be added.
func ask(ctx context.Context, socket, began string) (string, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		conn.SetDeadline(deadline)
	}
	if _, err := io.WriteString(conn, began+"\n"); err != nil {
		return "", err
	}
	text, err := io.ReadAll(conn)
	return string(text), err
}

// listen serves the hook on that socket, with what next returns each time. admit refuses a connection by who is at its other end.
func listen(socket string, admit func(syscall.Conn) error, next func(began string) string) (net.Listener, error) {
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
			if admit(conn.(*net.UnixConn)) != nil { // the mail is another session's
				conn.Close()
				continue
			}
			if began, err := bufio.NewReader(conn).ReadString('\n'); err == nil {
				io.WriteString(conn, next(began[:len(began)-1]))
			}
			conn.Close()
		}
	}()
	return listener, nil
}
