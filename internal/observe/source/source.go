package source

import (
	"context"
)

// Feed is a place from which lines come.
type Feed interface {
	// Run gives what there is to the listener, and what comes later as it comes. It returns nil
	// when there will be no more, and when ctx ends.
	Run(ctx context.Context, to Listener) error
}

// Listener takes what feeds bring. It may be called from any goroutine, and of one source from one
// at a time.
type Listener interface {
	// Line takes a line of the source, without its line break. The line is only valid until Line
	// returns. place is where the source goes on behind it; zero for a source that cannot be read
	// again.
	Line(source string, line []byte, place Place)
	// Introduce says whose lines the source has.
	Introduce(source, ofTeam, member string)
	// Gap says that something of the source was lost.
	Gap(source, reason string)
	// End says that the source is a stream that has ended: whoever wrote it is gone.
	End(source string)
	// Place is where the source goes on; zero for its beginning.
	Place(source string) Place
	// Member reports whether the observed team has a teammate of that name.
	Member(name string) bool
}
