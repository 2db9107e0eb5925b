package sdkrelay

import (
	"encoding/binary"
	"os"
)

// spill is a first-in-first-out queue of messages in a file. The file has no name, so it cannot be
// left behind.
type spill struct {
	limit int64 // in bytes; 0 for no file

	file       *os.File // created when it is needed
	begin, end int64
	next       int64 // length of the message at begin, if there is one
}

const spillHead = 9 // header of each message: its length, and whether it is binary

func (s *spill) empty() bool { return s.begin == s.end }

// head returns the length of the first message.
func (s *spill) head() int64 { return s.next }

// push adds a message. It returns false if there is no room in the file or on the disk.
func (s *spill) push(m message) bool {
	size := int64(spillHead + len(m.data))
	if s.end+size > s.limit { // removed messages keep their space until the file is empty
		return false
	}
	if s.file == nil && s.create() != nil {
		return false
	}
	head := binary.BigEndian.AppendUint64(make([]byte, 0, spillHead), uint64(len(m.data)))
	if m.binary {
		head = append(head, 1)
	} else {
		head = append(head, 0)
	}
	if _, err := s.file.WriteAt(head, s.end); err != nil {
		return false
	}
	if _, err := s.file.WriteAt(m.data, s.end+spillHead); err != nil {
		return false
	}
	if s.empty() {
		s.next = int64(len(m.data))
	}
	s.end += size
	return true
}

func (s *spill) create() error {
	file, err := os.CreateTemp("", "cadre-relay-")
	if err != nil {
		return err
	}
	if err := os.Remove(file.Name()); err != nil {
		file.Close()
		return err
	}
	s.file = file
	return nil
}

// pop removes the first message. It truncates the file when it becomes empty.
func (s *spill) pop() (m message, err error) {
	var head [spillHead]byte
	if _, err := s.file.ReadAt(head[:], s.begin); err != nil {
		return m, err
	}
	m = message{data: make([]byte, s.next), binary: head[8] == 1}
	if _, err := s.file.ReadAt(m.data, s.begin+spillHead); err != nil {
		return m, err
	}
	s.begin += spillHead + s.next
	if s.empty() {
		s.begin, s.end = 0, 0
		return m, s.file.Truncate(0)
	}
	if _, err := s.file.ReadAt(head[:8], s.begin); err != nil {
		return m, err
	}
	s.next = int64(binary.BigEndian.Uint64(head[:8]))
	return m, nil
}

func (s *spill) close() {
	if s.file != nil {
		s.file.Close()
		s.file = nil
	}
	s.begin, s.end = 0, 0
}
