package proc

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// stream is our end of a pipe that a child writes to. It ends at the pipe's end. Once the child's
// group has ended, it also ends when nothing has come for the time of drain, because the pipe may
// be held open by a process that got away. What is in the pipe is never lost to a slow reader.
type stream struct {
	file  *os.File
	drain time.Duration

	mu    sync.Mutex
	ended bool
}

func (s *stream) Read(p []byte) (int, error) {
	for {
		ended := s.arm()
		n, err := s.file.Read(p)
		switch {
		case errors.Is(err, io.EOF):
			s.file.Close() // the descriptor need not wait for a caller that does not close what it read to its end
			return n, io.EOF
		case n > 0 || !errors.Is(err, os.ErrDeadlineExceeded):
			return n, err
		case ended:
			s.file.Close()
			return 0, io.EOF
		}
	}
}

// arm gives a read that begins after the end of the group its own time.
func (s *stream) arm() (ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		s.file.SetReadDeadline(time.Now().Add(s.drain))
	}
	return s.ended
}

// end says that the group has ended. It wakes a read that began before.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.file.SetReadDeadline(time.Unix(1, 0))
}

func (s *stream) Close() error { return s.file.Close() }
