package sdkrelay

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/coder/websocket"
	"go.uber.org/goleak"

	"cadre/internal/sys/proc"
)

// roleVariable selects the role of the test binary as a child: a program that connects, or a host
// that relays one.
const roleVariable = "CADRE_TEST_RELAY_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "program":
		beProgram()
	case "host":
		beHost()
	default:
		goleak.VerifyTestMain(m)
	}
}

// beProgram connects to the last argument, sends its pid, and echoes every message. It ignores
// SIGTERM.
func beProgram() {
	signal.Ignore(syscall.SIGTERM)
	ctx := context.Background()
	header := http.Header{"Authorization": {"Bearer " + os.Getenv(TokenVariable)}}
	conn, _, err := websocket.Dial(ctx, os.Args[len(os.Args)-1], &websocket.DialOptions{HTTPHeader: header})
	if err != nil {
		fmt.Fprintln(os.Stderr, "the program cannot connect:", err)
		os.Exit(3)
	}
	conn.Write(ctx, websocket.MessageText, fmt.Appendf(nil, "{\"type\":\"system\",\"pid\":%d}\n", os.Getpid()))
	for {
		kind, data, err := conn.Read(ctx)
		if err != nil {
			select {} // as if it did not notice
		}
		conn.Write(ctx, kind, data)
	}
}

// beHost relays a program between its standard input and output.
func beHost() {
	procs, err := proc.Open("")
	if err == nil {
		var r *Relay
		if r, err = Listen(Options{Command: again("program"), Procs: procs, In: bufio.NewReader(os.Stdin),
			Out: os.Stdout, Stderr: os.Stderr}); err == nil {
			_, err = r.Run(context.Background())
		}
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// again returns a command that runs the test binary in a role.
func again(role string) []string {
	self, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return []string{"/usr/bin/env", roleVariable + "=" + role, self}
}
