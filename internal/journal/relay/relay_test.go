package relay_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"cadre/internal/journal"
	"cadre/internal/journal/journaltest"
	"cadre/internal/journal/relay"
	"cadre/internal/journal/store"
	"cadre/internal/journal/store/memstore"
	"cadre/internal/journal/store/storetest"
	"cadre/internal/sys/unixsocket"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// anything is the rights of a caller that may do everything.
type anything struct{}

func (anything) Append([]byte) error  { return nil }
func (anything) Save() error          { return nil }
func (anything) Acquire(string) error { return nil }
func (anything) Change(string) error  { return nil }

// lasting has leases that last until their processes end.
func lasting(of store.Team) store.Team { return of }

// expiring has leases that can be lost, as those of a database.
func expiring(of store.Team) store.Team { return &storetest.Losing{Team: of, Lasts: time.Hour} }

// office is a server of a team in memory.
type office struct {
	t      testing.TB
	teams  *memstore.Teams
	served relay.Served
	path   string
	stop   func()
}

func serve(t testing.TB, rights relay.Rights, shared func(store.Team) store.Team) *office {
	t.Helper()
	o := &office{t: t, teams: &memstore.Teams{}, path: filepath.Join(t.TempDir(), "s")}
	if err := o.teams.Create(t.Context(), store.Entry{ID: "id", Name: "demo"}, nil); err != nil {
		t.Fatal(err)
	}
	is, err := o.teams.Open(t.Context(), "id")
	if err != nil {
		t.Fatal(err)
	}
	l, err := unixsocket.Listen(o.path)
	if err != nil {
		t.Fatal(err)
	}
	o.served = relay.Served{ID: "id", Journal: is.Journal, Team: shared(is.Shared),
		Rights: func(syscall.Conn) (relay.Rights, error) { return rights, nil }}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); relay.Serve(ctx, l, o.served) }()
	o.stop = func() { cancel(); <-ended }
	t.Cleanup(func() { o.stop(); is.Journal.Close() })
	return o
}

func (o *office) open() *relay.Journal {
	o.t.Helper()
	j, err := relay.Open(context.Background(), o.path)
	if err != nil {
		o.t.Fatal(err)
	}
	o.t.Cleanup(func() { j.Close() })
	return j
}

// TestContract checks journals and what processes share, through a server, against their contracts.
func TestContract(t *testing.T) {
	storetest.Run(t, func(t testing.TB) func() storetest.Handle {
		o := serve(t, anything{}, lasting)
		return func() storetest.Handle {
			j := o.open()
			return storetest.Handle{Journal: j, Team: j.Shared()}
		}
	})
}

// only are the rights of a caller that may write one record, take one lease and set one value.
type only struct{}

func refuse(is bool) error {
	if is {
		return nil
	}
	return &relay.RefusedError{Code: "denied", Text: "that is another's"}
}

func (only) Save() error               { return refuse(false) }
func (only) Append(data []byte) error  { return refuse(string(data) == `"mine"`) }
func (only) Acquire(name string) error { return refuse(name == "mine") }
func (only) Change(key string) error   { return refuse(key == "mine") }

// TestRights checks that a caller without the right writes nothing, and can read everything.
func TestRights(t *testing.T) {
	o := serve(t, only{}, expiring)
	j := o.open()
	team := j.Shared()
	denied := func(what string, err error) {
		t.Helper()
		if refused, is := errors.AsType[*relay.RefusedError](err); !is || refused.Code != "denied" ||
			!strings.Contains(err.Error(), "that is another's") {
			t.Errorf("%s: %v", what, err)
		}
	}
	_, err := journaltest.Add(t.Context(), j, 0, `"other"`)
	denied("a record", err)
	if seq, err := journaltest.Add(t.Context(), j, 0, `"mine"`); seq != 1 || err != nil {
		t.Errorf("its own record: %d, %v", seq, err)
	}
	_, err = team.Acquire(t.Context(), "other")
	denied("a lease", err)
	for _, key := range []string{"other", "mine"} {
		put := team.Put(t.Context(), key, []byte("x"))
		_, once := team.PutOnce(t.Context(), key, []byte("x"))
		replaced := team.Replace(t.Context(), store.Value{Key: "mine"}, store.Value{Key: key})
		deleted := team.Delete(t.Context(), key)
		for what, err := range map[string]error{"put": put, "once": once, "replaced": replaced, "deleted": deleted} {
			if key == "other" {
				denied(what, err)
			} else if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
	}
	if got := journaltest.All(t, j, 0); len(got) != 1 {
		t.Errorf("the records are %q", got)
	}
	forged := journal.Snapshot{Seq: 1, Data: "forged"}
	if err := errors.Join(j.SaveSnapshot(t.Context(), forged.Taken), j.SaveKeyframe(t.Context(), forged)); err != nil {
		t.Error(err)
	}
	if s, err := j.Snapshot(t.Context()); s.Seq != 0 || err != nil {
		t.Errorf("there is the snapshot %+v, %v", s, err)
	}
}

// TestSilentClients checks that clients which send nothing, or do not read, do not keep a server
// from its work and its end.
func TestSilentClients(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits as long as a server does")
	}
	t.Parallel()
	o := serve(t, anything{}, expiring)
	j := o.open()
	for i := range 50 {
		if _, err := journaltest.Add(t.Context(), j, int64(i), fmt.Sprintf("%q", strings.Repeat("x", 100_000))); err != nil {
			t.Fatal(err)
		}
	}
	idle, err := unixsocket.Dial(t.Context(), o.path)
	if err != nil {
		t.Fatal(err)
	}
	defer idle.Close()
	deaf, err := unixsocket.Dial(t.Context(), o.path)
	if err != nil {
		t.Fatal(err)
	}
	defer deaf.Close()
	request := `{"call":"append","seq":0}`
	if _, err := deaf.Write(append(binary.BigEndian.AppendUint32(nil, uint32(len(request))), "q"+request...)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := journaltest.Add(ctx, j, 50, "1"); err != nil {
		t.Errorf("beside a client that does not read: %v", err)
	}
	ended := make(chan struct{})
	go func() { o.stop(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(time.Minute):
		t.Error("the server does not end")
	}
	var value []byte
	if value, err = j.Shared().Get(t.Context(), "key"); err == nil || errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a server the value is %q, %v", value, err)
	}
}

// TestNobody checks a caller without any right.
func TestNobody(t *testing.T) {
	o := serve(t, anything{}, expiring)
	o.stop()
	l, err := unixsocket.Listen(filepath.Join(t.TempDir(), "s"))
	if err != nil {
		t.Fatal(err)
	}
	o.path = l.Addr().String()
	o.served.Rights = func(syscall.Conn) (relay.Rights, error) {
		return nil, &relay.RefusedError{Code: "denied", Text: "a stranger"}
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() { defer close(ended); relay.Serve(ctx, l, o.served) }()
	if _, err := relay.Open(t.Context(), o.path); err == nil || !strings.Contains(err.Error(), "a stranger") {
		t.Errorf("got %v", err)
	}
	cancel()
	<-ended
}

// TestServerEnds checks what a caller hears when the host ends: its lease is lost, its wait ends,
// and a record that it has decided is uncertain.
func TestServerEnds(t *testing.T) {
	o := serve(t, anything{}, expiring)
	j := o.open()
	lease, err := j.Shared().Acquire(t.Context(), "mine")
	if err != nil {
		t.Fatal(err)
	}
	waited := make(chan error, 1)
	go func() { waited <- j.Wait(t.Context(), 0) }()
	_, err = j.Append(t.Context(), 0, nil, func() ([]byte, error) {
		go o.stop()
		select {
		case <-lease.Lost():
		case <-time.After(10 * time.Second):
			t.Error("the lease is not lost")
		}
		return []byte("1"), nil
	})
	if err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("append: %v", err)
	}
	if written := len(journaltest.All(t, o.served.Journal, 0)); written > 0 && !errors.Is(err, journal.ErrUncertain) {
		t.Errorf("append: %v, and the record is there", err)
	}
	if err := <-waited; err == nil {
		t.Error("the wait ended without an error")
	}
	if !lease.Until().Before(time.Now()) {
		t.Errorf("the lease is held until %s", lease.Until())
	}
	if err := lease.Release(); err != nil {
		t.Error(err)
	}
}

// TestUndecided checks that a process which does not decide loses its turn.
func TestUndecided(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits as long as others do")
	}
	t.Parallel()
	o := serve(t, anything{}, expiring)
	slow, other := o.open(), o.open()
	asked, goOn := make(chan struct{}), make(chan struct{})
	var uncertain atomic.Bool
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, err := slow.Append(t.Context(), 0, nil, func() ([]byte, error) {
			close(asked)
			<-goOn
			return []byte(`"late"`), nil
		})
		uncertain.Store(err != nil)
	}()
	<-asked
	if seq, err := journaltest.Add(t.Context(), other, 0, `"in time"`); seq != 1 || err != nil {
		t.Errorf("the other one: %d, %v", seq, err)
	}
	close(goOn)
	<-ended
	if !uncertain.Load() {
		t.Error("the late one was not told")
	}
	if got := journaltest.All(t, other, 0); len(got) != 1 {
		t.Errorf("the records are %q", got)
	}
}
