package source

import (
	"bytes"
	"context"
	"errors"
	"io"

	"cadre/internal/observe/protocol"
)

// Stream is a feed of the lines of a reader: an agent's standard output, through a pipe.
type Stream struct {
	Source string
	Reader io.Reader
	// Team and Member tell whose stream it is. They are "" for a lead's stream, or if the lines
	// name their writer.
	Team, Member string
	// Pass receives all input, unchanged and before it is interpreted, in pieces that end with a
	// line break if possible; may be nil.
	Pass func(piece []byte) error
	// Rest is called whenever all available input was delivered; may be nil.
	Rest func() error
}

// Run implements [Feed]. If the reader does not return when ctx ends, it is abandoned, and the
// listener ignores its later lines.
func (s *Stream) Run(ctx context.Context, to Listener) error {
	if s.Member != "" {
		to.Introduce(s.Source, s.Team, s.Member)
	}
	ended := make(chan error, 1)
	go func() { ended <- s.read(to) }()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}

func (s *Stream) read(to Listener) error {
	var lines protocol.Splitter
	each := func(line []byte) { to.Line(s.Source, line, Place{}) }
	buffer := make([]byte, 256<<10)
	for {
		n, err := s.Reader.Read(buffer)
		for p := buffer[:n]; len(p) > 0; {
			end := bytes.IndexByte(p, '\n') + 1
			if end == 0 {
				end = len(p)
			}
			if s.Pass != nil {
				if err := s.Pass(p[:end]); err != nil {
					return err
				}
			}
			lines.Write(p[:end], each)
			p = p[end:]
		}
		if n > 0 && s.Rest != nil {
			if err := s.Rest(); err != nil {
				return err
			}
		}
		if err != nil {
			lines.End(each)
			if errors.Is(err, io.EOF) {
				to.End(s.Source)
				return nil
			}
			return err
		}
	}
}
