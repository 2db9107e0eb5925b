package proc

import (
	"errors"
	"io"
	"os"
	"sync"
	"time"
)

// stream is the host's end of a pipe that a child writes to. A read ends at the end of the pipe.
// After the child's group has ended, it also ends when no data arrived for the time of drain,
// because an escaped process may hold the pipe open. A slow reader never loses data.
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
			s.file.Close() // so that a caller who reads to the end need not close
			return n, io.EOF
		case n > 0 || !errors.Is(err, os.ErrDeadlineExceeded):
			return n, err
		case ended:
			s.file.Close()
			return 0, io.EOF
		}
	}
}

// arm sets the deadline of a read that begins after the group has ended.
func (s *stream) arm() (ended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		s.file.SetReadDeadline(time.Now().Add(s.drain))
	}
	return s.ended
}

// end records that the group has ended, and wakes a pending read.
func (s *stream) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	s.file.SetReadDeadline(time.Unix(1, 0))
}

func (s *stream) Close() error { return s.file.Close() }
