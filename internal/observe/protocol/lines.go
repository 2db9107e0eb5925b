package protocol

import "bytes"

// MaxLine is the length in bytes from which a line is huge.
const MaxLine = 10 << 20

// Splitter cuts what is read from a stream into lines. Of a line that is longer than Max it holds
// Max bytes, so that no stream can fill the memory; the observer sees such a line as a huge one.
type Splitter struct {
	Max  int // 0 for [MaxLine]
	part []byte
}

// Write gives every line that ends in p to each. A line is valid until each returns.
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

// End gives the last line to each, if the stream ended without a line break.
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
		s.part = nil // what one huge line took is given back
	}
	s.part = append(s.part, p[:min(len(p), limit-len(s.part))]...)
}
