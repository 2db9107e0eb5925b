package pgjournal_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"cadre/internal/journal"
	"cadre/internal/journal/pgjournal"
	"cadre/internal/testkit/postgrestest"
)

// benchRecord is about as long as a typical event.
const benchRecord = `{"v":1,"id":"FQ2JQ3VXNBZ7K","actor":"ann","at":1795216422106,"events":[{"kind":"task_claimed",` +
	`"task":"3","member":"ann","fence":2}]}`

// bare appends with the statements of an append and nothing else.
type bare struct {
	pool   *pgxpool.Pool
	schema string
	team   int64
	ids    *atomic.Int64
}

func newBare(b *testing.B, at where, team int64) bare {
	b.Helper()
	pool, err := pgxpool.New(context.Background(), at.DSN)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(pool.Close)
	return bare{pool, at.Schema, team, new(atomic.Int64)}
}

func (p bare) id() []byte { return fmt.Appendf(nil, "%016d", p.ids.Add(1)) }

// statements are those of an append that have a table in them.
func (p bare) statements() (lock, read, insert string) {
	return "SELECT last, ends, digest, (SELECT max(version) FROM " + p.schema + ".migration) FROM " + p.schema +
			".team WHERE number = $1 FOR UPDATE",
		"SELECT seq, ends, digest, data FROM " + p.schema + ".record WHERE team = $1 AND seq >= $2 ORDER BY seq",
		"WITH one AS (INSERT INTO " + p.schema + ".record (team, seq, ends, digest, id, data) " +
			"VALUES ($1, $2, $3, $4, $5, $6)) " +
			"UPDATE " + p.schema + ".team SET last = $2, ends = $3, digest = $4 WHERE number = $1"
}

// pipelined appends in two round trips.
func (p bare) pipelined(ctx context.Context, after int64) (int64, error) {
	lock, read, insert := p.statements()
	conn, err := p.pool.Acquire(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Release()
	var first pgx.Batch
	var last, ends int64
	first.Queue("BEGIN")
	first.Queue(lock, p.team).QueryRow(func(r pgx.Row) error { return r.Scan(&last, &ends, nil, nil) })
	first.Queue(read, p.team, after)
	if err := conn.SendBatch(ctx, &first).Close(); err != nil {
		return 0, err
	}
	data := []byte(benchRecord)
	sum := sha256.Sum256(data)
	var second pgx.Batch
	second.Queue(insert, p.team, last+1, ends+int64(len(data)), sum[:], p.id(), data)
	second.Queue("COMMIT")
	return last + 1, conn.SendBatch(ctx, &second).Close()
}

// sequential appends with a round trip for each statement.
func (p bare) sequential(ctx context.Context, after int64) (last int64, err error) {
	lock, read, insert := p.statements()
	err = pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error {
		var ends int64
		if err := tx.QueryRow(ctx, lock, p.team).Scan(&last, &ends, nil, nil); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, read, p.team, after)
		if err != nil {
			return err
		}
		rows.Close()
		data := []byte(benchRecord)
		sum := sha256.Sum256(data)
		last++
		_, err = tx.Exec(ctx, insert, p.team, last, ends+int64(len(data)), sum[:], p.id(), data)
		return err
	})
	return last, err
}

// BenchmarkAppend compares an append with bare transactions, one after the other in turns. The
// ratios are of medians.
func BenchmarkAppend(b *testing.B) {
	at := fresh(b, postgrestest.Shared(b))
	s, j := at.create(b, pgjournal.Options{})
	if err := s.Create(b.Context(), entry("bare", "bare"), nil); err != nil {
		b.Fatal(err)
	}
	p := newBare(b, at, 2)
	ctx := b.Context()
	var ours, pipelined, sequential []time.Duration
	var mine, other int64
	measure := func(times *[]time.Duration, do func() error) {
		began := time.Now()
		if err := do(); err != nil {
			b.Fatal(err)
		}
		*times = append(*times, time.Since(began))
	}
	for b.Loop() {
		measure(&ours, func() (err error) {
			mine, err = j.Append(ctx, mine, func(journal.Record) error { return nil },
				func() ([]byte, error) { return []byte(benchRecord), nil })
			return err
		})
		s.Quiet() // its notification is not a part of an append
		measure(&pipelined, func() (err error) { other, err = p.pipelined(ctx, other); return err })
		measure(&sequential, func() (err error) { other, err = p.sequential(ctx, other); return err })
	}
	median := func(times []time.Duration) float64 {
		slices.Sort(times)
		return float64(times[len(times)/2].Nanoseconds())
	}
	b.ReportMetric(median(ours)/1000, "µs/append")
	b.ReportMetric(median(ours)/median(pipelined), "of-pipelined")
	b.ReportMetric(median(ours)/median(sequential), "of-sequential")
}

// BenchmarkWriters compares 32 writers of one team, each with a store of its own, with 32
// connections that do nothing but lock a row and update it. Both run for some time, in turns.
func BenchmarkWriters(b *testing.B) {
	const writers = 32
	at := fresh(b, postgrestest.Shared(b))
	s, _ := at.create(b, pgjournal.Options{})
	if err := s.Create(b.Context(), entry("bare", "bare"), nil); err != nil {
		b.Fatal(err)
	}
	var handles []*pgjournal.Journal
	var pools []*pgxpool.Pool
	for range writers {
		handles = append(handles, open(b, at.with("pool_max_conns=2").store(b, pgjournal.Options{})))
		pools = append(pools, newBare(b, at.with("pool_max_conns=1"), 2).pool)
	}
	known := make([]int64, writers)
	ours := func(ctx context.Context, w int) error {
		seq, err := handles[w].Append(ctx, known[w], func(r journal.Record) error {
			known[w] = r.Seq
			return nil
		}, func() ([]byte, error) { return []byte(benchRecord), nil })
		known[w] = seq
		return err
	}
	lockRow := func(ctx context.Context, w int) error {
		return pgx.BeginFunc(ctx, pools[w], func(tx pgx.Tx) error {
			var last int64
			err := tx.QueryRow(ctx, "SELECT last FROM "+at.Schema+".team WHERE number = 2 FOR UPDATE").Scan(&last)
			if err != nil {
				return err
			}
			_, err = tx.Exec(ctx, "UPDATE "+at.Schema+".team SET last = $1 WHERE number = 2", last+1)
			return err
		})
	}
	var mine, others int64
	for b.Loop() {
		for range 4 { // in turns, because other work on the machine comes and goes
			mine += together(b, writers, ours)
			others += together(b, writers, lockRow)
		}
	}
	b.ReportMetric(float64(mine)/float64(others), "of-row-locks")
	b.ReportMetric(float64(mine)/b.Elapsed().Seconds()*2, "appends/s")
}

// together lets writers act for some time, and returns how often they did.
func together(b *testing.B, writers int, do func(context.Context, int) error) int64 {
	b.Helper()
	var n atomic.Int64
	var over atomic.Bool
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for !over.Load() {
				if err := do(b.Context(), w); err != nil {
					b.Error(err)
					return
				}
				n.Add(1)
			}
		})
	}
	time.Sleep(150 * time.Millisecond)
	over.Store(true)
	wg.Wait()
	return n.Load()
}

// BenchmarkWait measures how long after an append a waiter of another store sees the record.
func BenchmarkWait(b *testing.B) {
	at := fresh(b, postgrestest.Shared(b))
	_, writer := at.create(b, pgjournal.Options{})
	j := open(b, at.store(b, pgjournal.Options{}))
	seq := int64(0)
	var sum time.Duration
	ready, woken := make(chan bool), make(chan time.Time)
	go func() {
		for range ready {
			if err := j.Wait(b.Context(), seq); err != nil {
				b.Error(err)
			}
			woken <- time.Now()
		}
	}()
	for b.Loop() {
		ready <- true
		time.Sleep(2 * time.Millisecond)
		add(b, writer, seq, benchRecord)
		began := time.Now()
		sum += max(0, (<-woken).Sub(began))
		seq++
	}
	close(ready)
	b.ReportMetric(float64(sum.Microseconds())/float64(b.N), "µs-to-see")
}
