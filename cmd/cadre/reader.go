package main

import (
	"context"
	"errors"
	"os"
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
