package wake

import (
	"context"
	"time"

	"cadre/internal/sys/sleep"
)

// Options configure [Keep].
type Options struct {
	// News returns what waits for the member now.
	News func() News
	// Seq and Wait follow the team, as a replica does.
	Seq  func() int64
	Wait func(ctx context.Context, after int64) error
	// Idle reports whether the session's turn has ended, as far as this is known.
	Idle func() bool
	// Wake starts a turn.
	Wake func(ctx context.Context) error
	Log  func(string)
}

// idlePause is the time between two checks for the end of a turn, while there is news.
const idlePause = time.Second

const (
	// tries is the number of attempts to wake a session for the same news.
	tries = 5
	// firstRetry is the pause after the first failure. Each further pause is retryGrowth times as
	// long.
	firstRetry  = time.Second
	retryGrowth = 4
)

// Keep wakes an idle session when there is news, once for each message. A session that does not
// read its messages is not woken again until there are new ones. It tries [tries] times. New news
// ends the pause, and has attempts of its own. Keep returns when ctx ends, or when the team cannot
// be followed.
func Keep(ctx context.Context, o Options) {
	var told, trying News
	failures, retry := 0, firstRetry
	for {
		seq, news := o.Seq(), o.News()
		if !trying.includes(news) {
			trying, failures, retry = news, 0, firstRetry
		}
		var err error
		switch {
		case told.includes(news):
			err = o.Wait(ctx, seq)
		case !o.Idle():
			err = sleep.For(ctx, idlePause)
		default:
			failed := o.Wake(ctx)
			if failed == nil {
				told = news
				break
			}
			if ctx.Err() == nil {
				o.Log("could not wake the session: " + failed.Error())
			}
			if failures++; failures == tries {
				told = news
				break
			}
			err = o.rest(ctx, retry, trying) // the resource may be in use just now
			retry *= retryGrowth
		}
		if err != nil {
			if ctx.Err() == nil {
				o.Log("stopped trying to wake the session: " + err.Error())
			}
			return
		}
	}
}

// rest returns after the given time, or as soon as there is more news. It returns an error if ctx
// has ended, or if the team cannot be followed.
func (o Options) rest(ctx context.Context, long time.Duration, trying News) error {
	resting, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	for {
		seq := o.Seq()
		if !trying.includes(o.News()) {
			return nil
		}
		if err := o.Wait(resting, seq); resting.Err() != nil {
			return ctx.Err()
		} else if err != nil {
			return err
		}
	}
}
