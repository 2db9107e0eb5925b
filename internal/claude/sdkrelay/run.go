package sdkrelay

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync"
	"time"

	"cadre/internal/sys/proc"
)

// closeWait is how long to wait for the end of the program's connection after the program has
// ended.
const closeWait = 2 * time.Second

// closeTimeout is how long a consumer may take to close its connection once it has everything.
const closeTimeout = time.Second

// Run starts the program and relays until the program ends. If ctx ends first, Run stops the
// program and everything it started, as the ladder says. Before Run returns, it delivers all
// messages to the consumers, as fast as they read; after ctx has ended it waits at most for the
// grace period.
//
// A pending Read of In or Write to Out is then ended by its deadline, if the reader or writer has
// deadlines, as files do. Otherwise it outlives Run.
func (r *Relay) Run(ctx context.Context) (proc.Exit, error) {
	life, end := context.WithCancel(context.WithoutCancel(ctx)) // the program may send messages while it stops
	defer end()
	r.program.take = func(m message) { r.forwardOutput(life, m) }
	if r.consumer != nil {
		r.consumer.take = func(m message) { r.forwardInput(life, m) }
	}
	var all sync.WaitGroup
	defer all.Wait()
	defer end()
	all.Go(func() { r.accept(life, &all) })
	defer r.listener.Close()
	for _, q := range r.outs {
		defer q.discard()
	}
	defer r.program.out.discard()

	defer r.lines.interrupt()
	r.lines.life = life
	exit, err := r.runProgram(ctx)
	for _, q := range r.outs {
		q.close()
	}
	return exit, errors.Join(err, r.flush(ctx))
}

// accept admits connections until the listener is closed. Its goroutines are in all.
func (r *Relay) accept(life context.Context, all *sync.WaitGroup) {
	for {
		c, err := r.listener.Accept()
		switch {
		case err == nil:
			all.Go(func() { r.admit(life, c) })
		case errors.Is(err, net.ErrClosed):
			return
		default: // for example too many open files
			select {
			case <-time.After(50 * time.Millisecond):
			case <-life.Done():
				return
			}
		}
	}
}

// runProgram runs the program from its start to its end, and to the end of its connection.
func (r *Relay) runProgram(ctx context.Context) (proc.Exit, error) {
	var stderr proc.Capture
	var child *proc.Child
	var ended <-chan struct{}
	if len(r.o.Command) > 0 {
		var err error
		if child, err = r.start(&stderr); err != nil {
			return proc.Exit{}, err
		}
		ended = child.Done()
	}
	r.lines.begin()
	why := r.await(ctx, ended)
	exit, err := r.stop(ctx, child)
	if errors.Is(why, errNeverConnected) {
		return exit, died(exit, stderr.String())
	}
	if child != nil {
		select {
		case <-r.program.present():
		case <-time.After(closeWait):
		}
	}
	return exit, errors.Join(why, err)
}

// errNeverConnected reports that the program ended before it connected.
var errNeverConnected = errors.New("it never connected")

// await waits while there is something to relay. It returns when the program has ended, has nothing
// more to send or does not connect in time, or when ctx ends. ended is nil if this relay does not
// start the program.
func (r *Relay) await(ctx context.Context, ended <-chan struct{}) error {
	var late <-chan time.Time
	if ended != nil {
		late = time.After(r.o.Connect)
	}
	for there := r.connectedOnce; ; {
		select {
		case <-there:
			there, late = nil, nil
		case <-ended:
			select {
			case <-r.connectedOnce:
				return nil
			default:
				return errNeverConnected
			}
		case <-late:
			return fmt.Errorf("the program did not connect within %v; it must be Claude Code, or another that "+
				"connects to the address in its arguments", r.o.Connect)
		case err := <-r.failed:
			return err
		case <-r.quiet.timer.C:
			if r.consumer == nil && r.program.out.idle() { // otherwise the consumer may still send something
				return nil
			}
		case <-ctx.Done():
			return nil
		}
	}
}

// stop stops the program if this relay started it.
func (r *Relay) stop(ctx context.Context, child *proc.Child) (proc.Exit, error) {
	if child == nil {
		return proc.Exit{}, nil
	}
	err := child.Stop(context.WithoutCancel(ctx), r.o.Ladder)
	if errors.Is(err, proc.ErrLeft) {
		return proc.Exit{Code: -1}, err
	}
	return child.Wait(context.WithoutCancel(ctx))
}

func (r *Relay) start(stderr *proc.Capture) (*proc.Child, error) {
	env := r.o.Env
	if env == nil {
		env = os.Environ()
	}
	var errs io.Writer = stderr
	if r.o.Stderr != nil {
		errs = io.MultiWriter(stderr, r.o.Stderr)
	}
	return r.o.Procs.Start(proc.Cmd{Args: r.argv(), Dir: r.o.Dir, Env: append(env[:len(env):len(env)],
		TokenVariable+"="+r.o.Token), Stdout: errs, Stderr: errs})
}

// flush waits until the consumers have all messages. A consumer that is not connected gets the
// grace period, and so does every consumer once ctx has ended.
func (r *Relay) flush(ctx context.Context) error {
	var late <-chan time.Time
	hurry := func() {
		if late == nil {
			late = time.After(r.o.Grace)
		}
	}
	done := ctx.Done()
	for _, q := range r.outs {
		var gone <-chan struct{}
		if r.consumer != nil && q == r.consumer.out {
			gone = r.consumer.present()
		}
		for changed := q.changes(); !q.idle(); changed = q.changes() {
			select {
			case <-changed:
			case <-gone:
				gone = nil
				hurry()
			case <-done:
				done = nil
				hurry()
			case <-late:
				return fmt.Errorf("a consumer did not read the rest of the program's output within %v", r.o.Grace)
			case err := <-r.failed:
				return err
			}
		}
		if r.consumer != nil && q == r.consumer.out { // let it receive the close
			select {
			case <-r.consumer.present():
			case <-time.After(closeTimeout):
			}
		}
	}
	return nil
}

// lines is the consumer at In and Out.
type lines struct {
	r    *Relay
	life context.Context
	out  *queue // nil if there is no such consumer
}

func (l *lines) begin() {
	if l.out != nil {
		go l.write() // Run cannot wait for either; see there
		go l.read()
	}
}

// read forwards the consumer's lines, one per frame.
func (l *lines) read() {
	defer l.r.quiet.end()
	in := bufio.NewReaderSize(l.r.o.In, 1<<16)
	for {
		line, long, err := readLine(in)
		switch {
		case long:
			l.r.o.Warn(fmt.Sprintf("a line of more than %d bytes was not passed on", maxMessage))
		case len(line) > 0:
			if l.r.forwardInput(l.life, message{data: line}) != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// readLine reads a line with its line break. It adds one to the last line, because the program
// waits for it.
func readLine(in *bufio.Reader) (line []byte, long bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > maxMessage {
			long = true
			line = nil
		}
		if !long {
			line = append(line, part...)
		}
		if errors.Is(err, bufio.ErrBufferFull) {
			continue
		}
		if err != nil && len(line) > 0 {
			line = append(line, '\n')
		}
		return line, long, err
	}
}

// write writes the program's messages to the consumer.
func (l *lines) write() {
	for at := int64(0); ; at++ {
		m, _, err := l.out.next(l.life, at)
		if err != nil {
			return
		}
		if n := len(m.data); n > 0 && m.data[n-1] != '\n' {
			m.data = append(m.data[:n:n], '\n')
		}
		if _, err := l.r.o.Out.Write(m.data); err != nil {
			l.out.discard()
			if l.life.Err() == nil {
				l.r.fail(fmt.Errorf("the consumer stopped reading: %w", err))
			}
			return
		}
		if err := l.out.ack(at + 1); err != nil {
			l.r.fail(err)
			return
		}
	}
}

// interrupt ends a pending read from In and a pending write to Out, if they support deadlines.
func (l *lines) interrupt() {
	if in, ok := l.r.o.In.(interface{ SetReadDeadline(time.Time) error }); ok {
		in.SetReadDeadline(past)
	}
	if out, ok := l.r.o.Out.(interface{ SetWriteDeadline(time.Time) error }); ok {
		out.SetWriteDeadline(past)
	}
}

var past = time.Unix(1, 0)
