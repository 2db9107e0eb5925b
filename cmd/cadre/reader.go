package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// errReaderGone is the cause when a command that follows ends because its output was closed.
var errReaderGone = errors.New("the reader closed the output")

// whileRead returns a context that also ends when the reader of standard output has closed it.
// Otherwise cadre log --follow | head -1 would wait for one more record. It starts a goroutine that
// ends with ctx.
func (a *app) whileRead(ctx context.Context) context.Context {
	info, err := a.out.file.Stat()
	if err != nil || info.Mode()&(os.ModeNamedPipe|os.ModeSocket) == 0 {
		return ctx
	}
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		defer cancel(nil)
		for ctx.Err() == nil {
			if hungUp(int(a.out.file.Fd()), readerPause) {
				time.Sleep(readerGrace)
				cancel(errReaderGone)
			}
		}
	}()
	return ctx
}

// pausesUnread returns a context for a command that runs a team: when the reader of standard output
// has closed it, the context ends, so that the command pauses the team in order. A SIGPIPE would
// kill the command in the middle of its work. A team that continues in the background needs no
// reader.
func (a *app) pausesUnread(ctx context.Context) context.Context {
	closedIsError()
	if a.leave {
		return ctx
	}
	return a.whileRead(ctx)
}

// closedIsError makes a write to a closed output an error, instead of the end of the process. It
// does so with a handler: the programs that cadre starts would inherit a signal that is ignored.
func closedIsError() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

const (
	readerPause = time.Second            // bounds one look at the reader
	readerGrace = 100 * time.Millisecond // for work in progress, such as marking printed mail as read
)

// hungUp waits, at most for that time, until the other end of a pipe or socket is closed. It
// reports whether it is.
func hungUp(fd int, within time.Duration) bool {
	of := []unix.PollFd{{Fd: int32(fd)}} // without events, an error or a hangup is reported
	n, err := unix.Poll(of, int(within.Milliseconds()))
	if err != nil && !errors.Is(err, unix.EINTR) {
		time.Sleep(within)
		return false
	}
	return n > 0 && of[0].Revents&(unix.POLLERR|unix.POLLHUP|unix.POLLNVAL) != 0
}
