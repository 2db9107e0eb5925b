package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
	"golang.org/x/term"

	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// slowTerminal is a terminal that answers after a while, as over a slow line.
type slowTerminal struct {
	t            testing.TB
	ours, theirs *os.File
	noInput      bool // the program's standard input is no terminal

	mu      sync.Mutex
	out     bytes.Buffer
	mark    string // see expect; "" for none
	arrived chan time.Time
}

func newSlowTerminal(t testing.TB, width, height uint16) *slowTerminal {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skip("needs a terminal: ", err)
	}
	p := &slowTerminal{t: t, ours: ours}
	t.Cleanup(func() { ours.Close() })
	fd := int(ours.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		p.theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err == nil {
		_, err = term.MakeRaw(int(p.theirs.Fd())) // so that what is left can be counted
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.theirs.Close() })
	p.resize(width, height)
	return p
}

func (p *slowTerminal) resize(width, height uint16) {
	p.t.Helper()
	if err := unix.IoctlSetWinsize(int(p.ours.Fd()), unix.TIOCSWINSZ,
		&unix.Winsize{Row: height, Col: width}); err != nil {
		p.t.Fatal(err)
	}
}

// answers reads what is written, and answers the questions about modes after the delay.
func (p *slowTerminal) answers(delay time.Duration) {
	buf := make([]byte, 64<<10)
	for {
		n, err := p.ours.Read(buf)
		if err != nil {
			return
		}
		at := time.Now()
		p.mu.Lock()
		p.out.Write(buf[:n])
		if p.mark != "" && bytes.Contains(buf[:n], []byte(p.mark)) {
			p.mark = ""
			p.arrived <- at
		}
		p.mu.Unlock()
		for _, mode := range []string{"2026", "2027"} {
			if bytes.Contains(buf[:n], []byte("\x1b[?"+mode+"$p")) {
				time.AfterFunc(delay, func() { p.ours.WriteString("\x1b[?" + mode + ";2$y") })
			}
		}
	}
}

func (p *slowTerminal) written() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

// expect returns a channel that gets the time at which mark, a single byte, is written next.
func (p *slowTerminal) expect(mark string) <-chan time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.mark, p.arrived = mark, make(chan time.Time, 1)
	return p.arrived
}

// start starts the program on the terminal.
func (p *slowTerminal) start(w *world, env []string, args ...string) *exec.Cmd {
	p.t.Helper()
	c := exec.Command(cadre, args...)
	c.Dir = w.dir
	c.Env = append(without(append(w.env, "TERM=xterm-256color"), "SSH_TTY", "TERM_PROGRAM", "TMUX", "CI"), env...)
	c.Stdin, c.Stdout, c.Stderr = p.theirs, p.theirs, p.theirs
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true, Ctty: 1}
	if p.noInput {
		c.Stdin = nil
	}
	if err := c.Start(); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(func() { c.Process.Kill() })
	return c
}

func without(env []string, names ...string) (rest []string) {
	for _, v := range env {
		keep := true
		for _, name := range names {
			keep = keep && !bytes.HasPrefix([]byte(v), []byte(name+"="))
		}
		if keep {
			rest = append(rest, v)
		}
	}
	return rest
}

// ends waits for the end of the program.
func (p *slowTerminal) ends(c *exec.Cmd) error {
	p.t.Helper()
	done := make(chan error, 1)
	go func() { done <- c.Wait() }()
	select {
	case err := <-done:
		return err
	case <-time.After(patience):
		c.Process.Kill()
		p.t.Fatalf("the screen does not end:\n%q", p.written())
	}
	return nil
}

// TestWatchQuits checks that a user who quits at once finds no answers of the terminal on the
// prompt. The screen asks the terminal nothing where synchronized output is off.
func TestWatchQuits(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo")
	for _, c := range []struct {
		env  string
		asks bool
	}{{"CADRE_SYNC_OUTPUT=on", true}, {"CADRE_SYNC_OUTPUT=off", false}} {
		p := newSlowTerminal(t, 80, 24)
		go p.answers(30 * time.Millisecond)
		cmd := p.start(w, []string{c.env}, "watch", "demo")
		p.ours.WriteString("q")
		if err := p.ends(cmd); err != nil {
			t.Errorf("%s: %v", c.env, err)
		}
		time.Sleep(100 * time.Millisecond) // a late answer would come now
		if left, err := unix.IoctlGetInt(int(p.theirs.Fd()), unix.TIOCINQ); err != nil || left > 0 {
			t.Errorf("%s: %d bytes are left for the shell: %v", c.env, left, err)
		}
		if asked := bytes.Contains([]byte(p.written()), []byte("\x1b[?2026$p")); asked != c.asks {
			t.Errorf("%s: the terminal was asked: %v", c.env, asked)
		}
	}
}

// TestWatchSize checks that a terminal without a size is waited for, and that one that changes its
// size is drawn again. A lost terminal ends the screen.
func TestWatchSize(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.must("create", "demo", "--goal", "Port the parser")
	p := newSlowTerminal(t, 0, 0)
	go p.answers(0)
	cmd := p.start(w, nil, "watch")
	time.Sleep(500 * time.Millisecond)
	if out := p.written(); out != "" {
		t.Errorf("it wrote to a terminal without a size: %q", out)
	}
	p.resize(80, 24)
	shows := func(text string) {
		t.Helper()
		eventually(t, "the screen shows "+text,
			func() bool { return bytes.Contains([]byte(p.written()), []byte(text)) })
	}
	shows("Working")
	p.resize(0, 0)
	cmd.Process.Signal(syscall.SIGWINCH)
	time.Sleep(200 * time.Millisecond)
	before := len(p.written())
	time.Sleep(700 * time.Millisecond)
	if grown := len(p.written()) - before; grown > 2000 {
		t.Errorf("without a size it wrote %d bytes", grown)
	}
	p.resize(60, 20)
	cmd.Process.Signal(syscall.SIGWINCH)
	cmd.Process.Signal(syscall.SIGHUP)
	if err := p.ends(cmd); err == nil {
		t.Error("a screen whose terminal was lost ended with status 0; want an error")
	}
	eventually(t, "the terminal is restored", func() bool {
		return bytes.Contains([]byte(p.written()), []byte("\x1b[?1049l"))
	})
}

// openScreen creates a team with 8 members, m0 to m7, and the history that further commands make.
// It opens the team's screen in a terminal. close ends the screen.
func openScreen(b *testing.B, agent string, began team.Time, further ...team.Command) (h layout.Home, cmd *exec.Cmd,
	p *slowTerminal, close func()) {
	root, err := os.MkdirTemp("/dev/shm", "cadre") // in memory: no write waits for a disk
	if err != nil {
		root = b.TempDir()
	}
	b.Cleanup(func() { os.RemoveAll(root) })
	h = layout.Home{Root: root, Claude: b.TempDir()}
	commands := []team.Command{{ID: replica.NewID(), Actor: team.User, At: began,
		Body: &team.CreateTeam{TeamID: replica.NewID(), Name: "watched", Dir: "/"}}}
	for i := range 8 {
		commands = append(commands, team.Command{ID: replica.NewID(), Actor: team.User, At: began,
			Body: &team.SpawnMember{Name: fmt.Sprintf("m%d", i), Agent: agent}})
	}
	if err := h.Create("watched", append(commands, further...)); err != nil {
		b.Fatal(err)
	}
	p = newSlowTerminal(b, 120, 40)
	go p.answers(0)
	cmd = exec.Command(cadre, "watch", "watched")
	cmd.Env = append(os.Environ(), "CADRE_HOME="+h.Root, "CLAUDE_CONFIG_DIR="+h.Claude, "HOME="+b.TempDir(),
		"TERM=xterm-256color")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = p.theirs, p.theirs, p.theirs
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		b.Fatal(err)
	}
	return h, cmd, p, func() {
		if _, err := p.ours.WriteString("q"); err != nil {
			b.Fatal(err)
		}
		if err := cmd.Wait(); err != nil || !strings.Contains(p.written(), "MEMBER") {
			b.Fatalf("the screen ended with %v:\n%s", err, p.written())
		}
	}
}

// BenchmarkIdleScreen runs cadre watch in a terminal for some seconds, on a team with 8 silent
// members. It reports the processor time as a percentage of one core. It subtracts two runs of
// different length, so that the start does not count.
func BenchmarkIdleScreen(b *testing.B) {
	used := func(stand time.Duration) time.Duration {
		_, cmd, _, end := openScreen(b, team.External, replica.Now())
		time.Sleep(stand)
		end()
		return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	}
	const brief, long = 4 * time.Second, 14 * time.Second
	var share float64
	for range b.N {
		share += 100 * (used(long) - used(brief)).Seconds() / (long - brief).Seconds()
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(share/float64(b.N), "%-of-a-core")
}

// BenchmarkScreenMemory runs cadre watch in a terminal, on a team in which 8 members work for 12
// hours: a turn every two minutes, for which the mail is delivered, and a completed task every ten.
// It reports the memory of the process after the first hour and after the last one, when the
// process has released what only the busy time needed.
func BenchmarkScreenMemory(b *testing.B) {
	const hours = 12
	for range b.N {
		at := replica.Now() - hours*3_600_000
		h, cmd, _, end := openScreen(b, team.Claude, at)
		j, _, err := h.Open("watched", nil)
		if err != nil {
			b.Fatal(err)
		}
		rep, err := replica.Open(b.Context(), j, replica.Options{Now: func() team.Time { return at }})
		if err != nil {
			b.Fatal(err)
		}
		do := func(actor string, body team.Body) {
			if _, err := rep.Do(b.Context(), team.Command{Actor: actor, Body: body}); err != nil {
				b.Fatal(err)
			}
		}
		host := team.Host("h")
		for i := range 8 {
			name := fmt.Sprint("m", i)
			do(host, &team.AttachMember{Member: name})
			do(host, &team.ReportStarted{Member: name, Session: name})
		}
		var used []float64
		task := 0
		for minute := range hours * 60 {
			at += 60_000
			for i := minute % 2; i < 8; i += 2 {
				name := fmt.Sprint("m", i)
				do(host, &team.ReceiveMessages{Member: name})
				do(host, &team.ReportStatus{Member: name, Status: team.Active})
				if minute%10 == i {
					task++
					do(team.User, &team.CreateTask{Subject: "Look at another module", Owner: name})
					do(name, &team.ClaimTask{Task: fmt.Sprint(task)})
					do(name, &team.CompleteTask{Task: fmt.Sprint(task), Fence: 1, Result: "It is done."})
				}
				do(host, &team.ReportUsage{Member: name, Usage: team.Usage{InputTokens: 9_000, OutputTokens: 400}})
				do(host, &team.ReportStatus{Member: name, Status: team.Idle})
				do("lead", &team.ReceiveMessages{})
			}
			if minute%60 == 59 {
				time.Sleep(time.Second) // the screen takes what is new
				if minute == 59 || minute == hours*60-1 {
					time.Sleep(9 * time.Second) // it releases what only the busy time needed
				}
				used = append(used, resident(b, cmd.Process.Pid))
			}
		}
		rep.Close()
		end()

		b.Logf("MB after each hour: %.1f", used)
		b.ReportMetric(used[0], "MB-first-hour")
		b.ReportMetric(used[hours-1], "MB-last-hour")
		b.ReportMetric(used[hours-1]/used[0], "x-first-hour")
	}
	b.ReportMetric(0, "ns/op")
}

// busy returns the processor time that a process has used.
func busy(b *testing.B, pid int) time.Duration {
	b.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, after, _ := strings.Cut(string(stat), ") ") // the name may contain spaces
	fields := strings.Fields(after)
	var ticks time.Duration
	for _, f := range fields[11:13] { // of a hundredth of a second, in user mode and in the kernel
		var n time.Duration
		if _, err := fmt.Sscan(f, &n); err != nil {
			b.Fatal(err)
		}
		ticks += n
	}
	return ticks * 10 * time.Millisecond
}

// resident returns the memory that a process has touched, in MB.
func resident(b *testing.B, pid int) float64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		b.Fatal(err)
	}
	_, after, _ := strings.Cut(string(status), "VmRSS:")
	var kb float64
	if _, err := fmt.Sscan(after, &kb); err != nil {
		b.Fatal(err)
	}
	return kb / 1024
}
