package proc

import (
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"cadre/internal/sys/filelock"
)

const (
	// starterMode makes the test binary write its starter to a file. Its arguments are this word
	// and the file.
	starterMode = "proc-test-starter"
	// programMode makes it a program that writes its pid to the file "program" and runs a command
	// through a shell. Its arguments are this word, the file, and the command.
	programMode = "proc-test-program"
)

func runStarter(args []string) error {
	if args[0] == programMode {
		if err := os.WriteFile(args[1], fmt.Append(nil, os.Getpid()), 0o600); err != nil {
			return err
		}
		return exec.Command("sh", "-c", args[2]).Run()
	}
	pid, ok := Starter()
	return os.WriteFile(args[1], fmt.Append(nil, pid, " ", ok), 0o600)
}

// TestStarter checks that shells which only run a command are skipped, and that any other program
// is a starter.
func TestStarter(t *testing.T) {
	self := os.Args[0]
	for name, c := range map[string]struct {
		command func(asks, program string) []string
		program bool // the starter is the program in between, otherwise this test
	}{
		"a child": {func(asks, _ string) []string { return strings.Fields(asks) }, false},
		"of a shell": {func(asks, _ string) []string {
			return []string{"sh", "-c", asks + "; true"}
		}, false},
		"of shells": {func(asks, _ string) []string {
			return []string{"sh", "-c", "sh -c '" + asks + "; true'; true"}
		}, false},
		"of a script": {func(asks, program string) []string {
			script := filepath.Join(filepath.Dir(program), "script")
			if err := os.WriteFile(script, []byte("#!/bin/sh\n"+asks+"\ntrue\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			return []string{script}
		}, false},
		"of another program": {func(asks, program string) []string {
			return []string{self, programMode, program, asks}
		}, true},
		"of another program, by shells": {func(asks, program string) []string {
			return []string{"sh", "-c", fmt.Sprintf("%s %s %s '%s; true'; true", self, programMode, program, asks)}
		}, true},
		"of a shell that reads what is typed": {func(asks, program string) []string {
			return []string{"sh", "-c", fmt.Sprintf("echo 'echo $$ >%s; %s; true' | sh -s; true", program, asks)}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			told, program := filepath.Join(t.TempDir(), "told"), filepath.Join(t.TempDir(), "program")
			args := c.command(self+" "+starterMode+" "+told, program)
			if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
				t.Fatalf("%q: %v: %s", args, err, out)
			}
			want := fmt.Append(nil, os.Getpid())
			if c.program {
				var err error
				if want, err = os.ReadFile(program); err != nil {
					t.Fatal(err)
				}
			}
			got, err := os.ReadFile(told)
			if err != nil || string(got) != strings.TrimSpace(string(want))+" true" {
				t.Errorf("got %q, want %q true (this is %d); %v", got, want, os.Getpid(), err)
			}
		})
	}
	if pid, ok := StarterOf(1); ok {
		t.Errorf("process 1 was started by %d", pid)
	}
	if pid, ok := StarterOf(1 << 30); ok {
		t.Errorf("a process that does not exist was started by %d", pid)
	}
}

// TestArguments checks that Arguments returns the command line of a process unchanged, whatever it
// contains.
func TestArguments(t *testing.T) {
	c := exec.Command("sh", "-c", "echo; read end", "a b", "é'\"")
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	out.Read(make([]byte, 1)) // by then it runs its program
	if args, err := Arguments(c.Process.Pid); err != nil || !slices.Equal(args, c.Args) {
		t.Errorf("got %q, %v", args, err)
	}
	in.Close()
	c.Wait()
	if args, err := Arguments(c.Process.Pid); err == nil {
		t.Errorf("a process that is gone has %q", args)
	}
}

// TestSplitArguments parses macOS' process arguments, complete and truncated at any point.
func TestSplitArguments(t *testing.T) {
	raw := binary.NativeEndian.AppendUint32(nil, 3)
	raw = append(raw, "/bin/sh\x00\x00\x00\x00\x00sh\x00-c\x00a b\x00HOME=/x\x00"...)
	want := []string{"sh", "-c", "a b"}
	if got := splitArguments(raw); !slices.Equal(got, want) {
		t.Errorf("got %q", got)
	}
	for n := range raw {
		if got := splitArguments(raw[:n]); len(got) > len(want) {
			t.Errorf("of %d bytes: %q", n, got)
		}
	}
	for _, count := range []int32{-1, 0} {
		binary.NativeEndian.PutUint32(raw, uint32(count))
		if got := splitArguments(raw); got != nil {
			t.Errorf("of %d: %q", count, got)
		}
	}
}

// TestHolderOf checks that HolderOf names a process only while it is running, holds the lock and
// has signed it.
func TestHolderOf(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	is := func(when string, want bool) {
		t.Helper()
		h, ok, err := HolderOf(path)
		if err != nil || ok != want || ok && h.Pid != os.Getpid() || !ok && h != (Holder{}) {
			t.Errorf("%s: %+v, %t, %v", when, h, ok, err)
		}
	}
	is("before there is one", false)
	lock, err := filelock.New(path)
	if err != nil {
		t.Fatal(err)
	}
	is("before it is signed", false)
	if err := Sign(lock); err != nil {
		t.Fatal(err)
	}
	is("signed", true)
	if h, _, _ := HolderOf(path); !Alive(h.Pid, h.Start) {
		t.Errorf("%+v does not live", h)
	}
	// These signatures are from another PID namespace or machine.
	for _, other := range []string{fmt.Sprintf("%d another-boot:1", os.Getpid()),
		fmt.Sprintf("%d 1", 1<<30), "x", "7"} {
		if err := os.WriteFile(path, []byte(other+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		is("signed with "+other, false)
	}
	if err := Sign(lock); err != nil {
		t.Fatal(err)
	}
	is("signed again", true)
	lock.Unlock()
	is("released", false)
	if err := Sign(lock); err == nil {
		t.Error("a lock that was released can be signed")
	}

	host, out := startHost(t, "orphans", t.TempDir(), newMark())
	var watchdog, child int
	if _, err := fmt.Fscan(out, &watchdog, &child); err != nil {
		t.Fatal(err)
	}
	alive := filepath.Join(host.Args[1], AliveFile)
	if h, ok, err := HolderOf(alive); err != nil || !ok || h.Pid != host.Process.Pid {
		t.Errorf("a host: %+v, %t, %v", h, ok, err)
	}
	host.Process.Kill()
	host.Wait()
	if h, ok, err := HolderOf(alive); err != nil || ok {
		t.Errorf("a host that was killed: %+v, %v", h, err)
	}

	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if h, ok, err := HolderOf(pipe); err == nil || ok {
		t.Errorf("a pipe: %+v", h)
	}
}
