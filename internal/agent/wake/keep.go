package wake

import (
	"context"
	"time"
)

// Options of [Keep].
type Options struct {
	// News is the number of the newest message that is worth a turn and was not given yet; 0 for
	// none.
	News func() int64
	// Seq and Wait follow the team, as a replica does.
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

const (
	// tries is how often it is tried to wake a session for one message.
	tries = 5
	// firstRetry is the pause after the first try that failed. Each one after that is retryGrowth
	// times as long.
	firstRetry  = time.Second
	retryGrowth = 4
)

// Keep wakes an idle session when there is news, once for each: a session that does not look at its
// messages is not asked again before there are others. A session that could not be woken is tried
// again a few times. It returns when ctx ends, or when the team cannot be followed.
func Keep(ctx context.Context, o Options) {
	var told int64
	failures, retry := 0, firstRetry
	for {
		seq, news := o.Seq(), o.News()
		var err error
		switch {
		case news <= told:
			failures, retry = 0, firstRetry
			err = o.Wait(ctx, seq)
		case !o.Idle():
			err = pause(ctx, idlePause)
		default:
			failed := o.Wake(ctx)
			if failed != nil && ctx.Err() == nil {
				o.Log("the session could not be woken: " + failed.Error())
			}
			if failures++; failed != nil && failures < tries { // what failed may be in use just now
				err = pause(ctx, retry)
				retry *= retryGrowth
			} else {
				told = news
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

// pause returns after so long, or with the error of ctx when that ends first.
func pause(ctx context.Context, long time.Duration) error {
	waiting, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	<-waiting.Done()
	return ctx.Err()
}
