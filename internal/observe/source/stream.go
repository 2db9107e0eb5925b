package source

import (
	"bytes"
	"context"
	"errors"
	"io"

	"cadre/internal/observe/protocol"
)

// Stream is a feed of what a reader gives: an agent's standard output, through a pipe.
type Stream struct {
	Source string
	Reader io.Reader
	// Team and Member say whose stream it is, where its lines do not; "" for a lead's, or for what
	// they say.
	Team, Member string
	// Pass is given everything that is read, unchanged and before it is looked at, in pieces that
	// end with a line break wherever there is one; nil for nobody.
	Pass func(piece []byte) error
	// Rest is called whenever all that could be read at once was given; nil for nobody.
	Rest func() error
}

// Run implements [Feed]. A reader that does not come back when ctx ends is left to itself, and what
// it still brings is not listened to.
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
