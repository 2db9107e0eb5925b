package source

import (
	"context"
)

// Feed is a source of lines.
type Feed interface {
	// Run delivers the present lines to the listener, and later lines as they arrive. It returns
	// nil when there will be no more, and when ctx ends.
	Run(ctx context.Context, to Listener) error
}

// Listener receives the lines of feeds. It may be called from any goroutine, but only from one at a
// time for each source.
type Listener interface {
	// Line receives a line without its line break. The line is only valid until Line returns. place
	// is where the source continues after it, or zero for a source that cannot be read again.
	Line(source string, line []byte, place Place)
	// Introduce tells who writes the lines of the source.
	Introduce(source, ofTeam, member string)
	// Gap reports that part of the source was lost.
	Gap(source, reason string)
	// End reports that the source is a stream that has ended: its writer has exited.
	End(source string)
	// Place returns where the source continues; zero for its beginning.
	Place(source string) Place
	// Member reports whether the observed team has a teammate of that name.
	Member(name string) bool
}
