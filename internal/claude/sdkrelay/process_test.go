package sdkrelay

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"cadre/internal/sys/proc"
)

// pid returns the pid that the test program sent.
func (s *scene) pid() (pid int) {
	s.t.Helper()
	line := s.hear()
	if _, err := fmt.Sscanf(line, "{\"type\":\"system\",\"pid\":%d}", &pid); err != nil {
		s.t.Fatal(line, err)
	}
	return pid
}

func (s *scene) gone(pid int) {
	s.t.Helper()
	s.await("the program is gone", func() bool { _, err := proc.StartTime(pid); return err != nil })
}

// TestShutdown checks that the program is ended by its deadline when the relay stops, even if it
// ignores signals, and that its output until then is not lost.
func TestShutdown(t *testing.T) {
	s := play(t, Options{Command: append(again("program"), "--sdk-url", URLWord),
		Ladder: proc.Ladder{Term: 100 * time.Millisecond}})
	pid := s.pid()
	s.say("echo\n")
	s.await("the echo is on its way", func() bool { return len(s.notes(&s.seen)) == 2 })
	s.stop()
	if exit, err := s.end(); err != nil || exit.Signal.String() != "killed" {
		t.Errorf("%v, %v", exit, err)
	}
	s.gone(pid)
	if got := s.hear(); got != "echo\n" {
		t.Error(got)
	}
}

func TestProgramIsKilled(t *testing.T) {
	s := play(t, Options{Command: append(again("program"), "--sdk-url", URLWord)})
	process, err := os.FindProcess(s.pid())
	if err != nil {
		t.Fatal(err)
	}
	s.say("last\n")
	if got := s.hear(); got != "last\n" {
		t.Error(got)
	}
	process.Kill()
	if exit, err := s.end(); err != nil || exit.Signal.String() != "killed" {
		t.Errorf("%v, %v", exit, err)
	}
}

// TestHostIsKilled checks that the program of a host killed with SIGKILL does not outlive it.
func TestHostIsKilled(t *testing.T) {
	procs, err := proc.Open("")
	if err != nil {
		t.Fatal(err)
	}
	defer procs.Close(context.Background())
	host, err := procs.Start(proc.Cmd{Args: again("host"), StdinPipe: true, StdoutPipe: true, Stderr: os.Stderr})
	if err != nil {
		t.Fatal(err)
	}
	defer host.Kill()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	stop := context.AfterFunc(ctx, func() { host.Stdout.Close() })
	defer stop()
	out := bufio.NewReader(host.Stdout)
	line, err := out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	var pid int
	if _, err := fmt.Sscanf(line, "{\"type\":\"system\",\"pid\":%d}", &pid); err != nil {
		t.Fatal(line, err)
	}
	s := &scene{t: t, ctx: ctx}
	process, _ := os.FindProcess(host.Pid())
	process.Kill()
	s.gone(pid)
}

func TestConsumerIsGone(t *testing.T) {
	s := play(t, Options{Command: append(again("program"), "--sdk-url", URLWord), Ladder: proc.Ladder{Term: -1}})
	pid := s.pid()
	s.pipes[2].Close()
	s.say("echo\n")
	if _, err := s.end(); err == nil || !strings.Contains(err.Error(), "the consumer stopped reading") {
		t.Error(err)
	}
	s.gone(pid)
}

// TestEndOfInput checks that the end of the input ends the program, after the requested turn is
// over.
func TestEndOfInput(t *testing.T) {
	s := play(t, Options{Command: append(again("program"), "--sdk-url", URLWord), Ladder: proc.Ladder{Term: -1},
		Quiet: 50 * time.Millisecond})
	pid := s.pid()
	s.say("{\"type\":\"user\"}\n") // the program echoes it, so a turn is running
	s.hear()
	s.say("{\"type\":\"result\"}\n")
	if got := s.hear(); got != "{\"type\":\"result\"}\n" {
		t.Error(got)
	}
	s.in.Close()
	if _, err := s.end(); err != nil {
		t.Error(err)
	}
	s.gone(pid)
}

func TestNotAProgramThatConnects(t *testing.T) {
	for command, words := range map[string]string{
		"echo what is this >&2; exit 7":                      "ended before it connected: exit status 7: what is this",
		"echo 'Error: --sdk-url rejected: host' >&2; exit 1": "2.1.47 accepts any",
		"sleep 60": "did not connect within 100ms",
	} {
		s := play(t, Options{Command: []string{"/bin/sh", "-c", command}, Connect: 100 * time.Millisecond})
		if command != "sleep 60" {
			s.stop()
			<-s.done
			s = play(t, Options{Command: []string{"/bin/sh", "-c", command}})
		}
		if _, err := s.end(); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", command, err)
		}
	}
}

func TestOptions(t *testing.T) {
	for words, o := range map[string]Options{
		"no consumer": {}, "both In and Out": {In: &bytes.Buffer{}}, "Procs is nil": {Consumer: true,
			Command: []string{"x"}}, "not an address": {Consumer: true, Listen: "localhost"},
		"of the program has 15": {Consumer: true, Token: "fifteen-letters"}, "of the consumer has 1 ": {Consumer: true,
			ConsumerToken: "x"},
	} {
		if _, err := Listen(o); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", words, err)
		}
	}
	// the last one is not an address of this machine
	for _, address := range []string{"0.0.0.0:0", "[::]:0", "192.0.2.1:0"} {
		_, err := Listen(Options{Consumer: true, Listen: address})
		if _, exposed := errors.AsType[*ExposedError](err); !exposed {
			t.Errorf("%s: %v", address, err)
		}
	}
	for address, insecure := range map[string]bool{"127.0.0.1:0": false, "localhost:0": false, "0.0.0.0:0": true} {
		r, err := Listen(Options{Consumer: true, Listen: address, Insecure: insecure, Token: "sixteen-letters-"})
		if err != nil {
			t.Errorf("%s: %v", address, err)
			continue
		}
		r.Close()
	}
	r, err := Listen(Options{Consumer: true, Listen: ":0", Command: []string{"claude", "--x"}, Procs: &proc.Register{}})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if !strings.HasPrefix(r.URL(), "ws://127.0.0.1:") {
		t.Errorf("without a host it listens at %s", r.URL())
	}
	if got := strings.Join(r.argv(), " "); got != "claude --x --sdk-url "+r.URL() {
		t.Error(got)
	}
}
