package memjournal_test

import (
	"errors"
	"testing"

	"go.uber.org/goleak"

	"cadre/internal/journal"
	"cadre/internal/journal/journaltest"
	"cadre/internal/journal/memjournal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func handles(testing.TB) func() journal.Journal {
	s := memjournal.New("t")
	return func() journal.Journal { return s.Open() }
}

func TestContract(t *testing.T) { journaltest.Run(t, handles) }

func BenchmarkContract(b *testing.B) { journaltest.Benchmark(b, handles) }

func TestRemove(t *testing.T) {
	s := memjournal.New("t", []byte(`1`))
	j := s.Open()
	defer j.Close()
	waited := make(chan error)
	go func() { waited <- j.Wait(t.Context(), 1) }()
	s.Remove()
	if err := <-waited; !errors.Is(err, journal.ErrGone) {
		t.Errorf("Wait: %v", err)
	}
	for _, err := range j.Read(t.Context(), 0) {
		if !errors.Is(err, journal.ErrGone) {
			t.Errorf("Read: %v", err)
		}
	}
	_, err := j.Append(t.Context(), 1, nil, func() ([]byte, error) { return []byte(`2`), nil })
	if !errors.Is(err, journal.ErrGone) {
		t.Errorf("Append: %v", err)
	}
}
