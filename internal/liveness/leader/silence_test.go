package leader_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"cadre/internal/journal/memjournal"
	"cadre/internal/journal/store/filestore"
	"cadre/internal/liveness/heartbeat"
	"cadre/internal/liveness/leader"
	"cadre/internal/replica"
	"cadre/internal/team"
)

const (
	stale = time.Minute
	beat  = 20 * time.Millisecond
)

// led returns a team that session L1 leads on the given machine, and a folder for its heartbeats.
func led(t *testing.T, machine string) (*replica.Replica, heartbeat.Beats, leader.Options) {
	t.Helper()
	rep, err := replica.Open(t.Context(), memjournal.New("demo").Open(), replica.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rep.Close() })
	for _, body := range []team.Body{
		&team.CreateTeam{TeamID: "demo-1", Name: "demo", Dir: "/d", LeadAgent: team.External,
			Timing: team.Timing{Beat: beat, LeadLost: 2 * stale, Stale: stale}},
		&team.AttachLead{Session: "L1", Machine: machine},
	} {
		if _, err := rep.Do(t.Context(), team.Command{Actor: team.User, Body: body}); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	return rep, heartbeat.In(filestore.Team(dir)), leader.Options{Replica: rep, Shared: filestore.Team(dir), Session: "L2",
		Log: func(text string) { t.Log(text) }}
}

func write(t *testing.T, beats heartbeat.Beats, b heartbeat.Beat) {
	t.Helper()
	b.Member, b.Session = "lead", "L1"
	if err := beats.Write(t.Context(), b); err != nil {
		t.Error(err)
	}
}

func take(t *testing.T, o leader.Options) error {
	t.Helper()
	l, err := leader.Take(t.Context(), o)
	if err == nil {
		l.Close()
	}
	return err
}

// TestWhereTheSessionWas checks that the holder of the lock knows that a session of its own machine
// is dead, wherever the host ran that wrote its heartbeats. It knows nothing about sessions of
// other machines.
func TestWhereTheSessionWas(t *testing.T) {
	here := here(t)
	for name, c := range map[string]struct {
		machine string
		seen    *heartbeat.Beat
		gone    bool
	}{
		"killed before its first heartbeat": {here, nil, true},
		"with a host elsewhere":             {here, &heartbeat.Beat{Host: "h1", Machine: "elsewhere"}, true},
		"elsewhere":                         {"elsewhere", nil, false},
		"elsewhere, with a host here":       {"elsewhere", &heartbeat.Beat{Host: "h1", Machine: here}, false},
		"an unknown place":                  {"", nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rep, beats, o := led(t, c.machine)
				if c.seen != nil {
					c.seen.At = time.Now().UnixMilli()
					write(t, beats, *c.seen)
				}
				err := take(t, o)
				if leads := rep.Team().LeadSession == "L2"; leads != c.gone ||
					(team.CodeOf(err) == team.Conflict) == c.gone {
					t.Errorf("taken: %t, %v", leads, err)
				}
			})
		})
	}
}

// TestSilence checks that a session is not silent while heartbeats arrive, however old they seem.
func TestSilence(t *testing.T) {
	for name, lives := range map[string]bool{"no heartbeat comes": false, "its clock is behind": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rep, beats, o := led(t, "elsewhere")
				began := time.Now()
				sign := func(count int64) {
					write(t, beats, heartbeat.Beat{Machine: "elsewhere", Count: count,
						At: time.Now().Add(-2 * stale).UnixMilli()})
				}
				sign(1)
				beating, stop := context.WithCancel(t.Context())
				done := make(chan struct{})
				go func() {
					defer close(done)
					for count := int64(2); lives; count++ {
						select {
						case <-time.After(beat):
							sign(count)
						case <-beating.Done():
							return
						}
					}
				}()
				err := take(t, o)
				stop()
				<-done
				if leads := rep.Team().LeadSession == "L2"; leads == lives ||
					(team.CodeOf(err) == team.Conflict) != lives {
					t.Errorf("taken: %t, %v", leads, err)
				}
				if waited := time.Since(began); waited > 5*beat {
					t.Errorf("it took %s", waited)
				}
			})
		})
	}
}
