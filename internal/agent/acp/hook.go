package acp

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"
)

// hookTimeout bounds what the hook may take: the agent waits for it before every call of its model.
const hookTimeout = 5 * time.Second

// Hook is what runs in the process of the hook BeforeModel of Gemini CLI: it adds the prompts that wait at the socket to the request that in has, and
// writes that to out. Without a session behind the socket it changes nothing.
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
	text, err := ask(ctx, socket)
	if err != nil || text == "" {
		_, err := io.WriteString(out, "{}")
		return err
	}
	if err := json.Unmarshal(data, &event); err != nil {
		return err
	}
	var messages []json.RawMessage
	if err := json.Unmarshal(event.Request["messages"], &messages); err != nil {
		return errors.New("the hook was given no messages")
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

// ask gets what is to be added.
func ask(ctx context.Context, socket string) (string, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", socket)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if deadline, ok := ctx.Deadline(); ok {
		conn.SetDeadline(deadline)
	}
	text, err := io.ReadAll(conn)
	return string(text), err
}

// listen serves the hook, with what next returns each time.
func listen(next func() string) (net.Listener, string, error) {
	folder, err := os.MkdirTemp("", "cadre-") // the path of a socket has 104 bytes at most on macOS
	if err != nil {
		return nil, "", err
	}
	socket := filepath.Join(folder, "hook")
	listener, err := net.Listen("unix", socket)
	if err != nil {
		os.RemoveAll(folder)
		return nil, "", err
	}
	go func() {
		defer os.RemoveAll(folder)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			conn.SetDeadline(time.Now().Add(hookTimeout))
			io.WriteString(conn, next())
			conn.Close()
		}
	}()
	return listener, socket, nil
}
