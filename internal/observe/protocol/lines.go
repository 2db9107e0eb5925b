package protocol

import "bytes"

// MaxLine is the length in bytes from which a line counts as huge.
const MaxLine = 10 << 20

// Splitter splits a stream into lines. It keeps at most Max bytes of a line, so that no stream can
// exhaust the memory. The observer treats such a line as huge.
type Splitter struct {
	Max  int // 0 for [MaxLine]
	part []byte
}

// Write calls each for every line that ends in p. A line is valid until each returns.
func (s *Splitter) Write(p []byte, each func(line []byte)) {
	for len(p) > 0 {
		end := bytes.IndexByte(p, '\n')
		if end < 0 {
			s.hold(p)
			return
		}
		if len(s.part) == 0 {
			each(p[:end])
		} else {
			s.hold(p[:end])
			each(s.part)
			s.part = s.part[:0]
		}
		p = p[end+1:]
	}
}

// End calls each for the last line, if the stream ended without a line break.
func (s *Splitter) End(each func(line []byte)) {
	if len(s.part) > 0 {
		each(s.part)
	}
	s.part = nil
}

func (s *Splitter) hold(p []byte) {
	limit := s.Max
	if limit == 0 {
		limit = MaxLine
	}
	if cap(s.part) > limit/4 && len(s.part) == 0 {
		s.part = nil // release the memory of a huge line
	}
	s.part = append(s.part, p[:min(len(p), limit-len(s.part))]...)
}
