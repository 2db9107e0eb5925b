package wake

import (
	"context"
	"time"
)

// Options of [Keep].
type Options struct {
	// News is the number of the newest message that is worth a turn and was not given yet; 0 for none.
	News func() int64
	// Seq and Wait follow the team, as a desk does.
	Seq  func() int64
	Wait func(ctx context.Context, after int64) error
	// Idle reports whether the session's turn has come to its end, so far as that can be told.
	Idle func() bool
	// Wake begins a turn.
	Wake func(ctx context.Context) error
	Log  func(string)
}

// idlePause is the time between two looks whether a turn has ended, while there is news.
const idlePause = time.Second

// Keep wakes an idle session when there is news, once for each: a session that does not look at its messages is not asked again before there are others. It returns
// when ctx ends, or when the team cannot be followed.
func Keep(ctx context.Context, o Options) {
	var told int64
	for {
		seq, news := o.Seq(), o.News()
		var err error
		switch {
		case news <= told:
			err = o.Wait(ctx, seq)
		case !o.Idle():
			waiting, cancel := context.WithTimeout(ctx, idlePause)
			<-waiting.Done()
			cancel()
			err = ctx.Err()
		default:
			told = news
			if failed := o.Wake(ctx); failed != nil && ctx.Err() == nil {
				o.Log("the session could not be woken: " + failed.Error())
			}
		}
		if err != nil {
			if ctx.Err() == nil {
				o.Log("the session is not woken any more: " + err.Error())
			}
			return
		}
	}
}
