package pgjournal_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"cadre/internal/journal"
	"cadre/internal/journal/pgjournal"
	"cadre/internal/testkit/postgrestest"
)

// BenchmarkTeams appends to 1,000 teams of one database from 32 goroutines with a store each, to a
// random team each time. It compares that with transactions that insert one row and do nothing
// else, in turns. 1,000 records a second in total are asked.
func BenchmarkTeams(b *testing.B) {
	const teams, writers = 1000, 32
	at := fresh(b, postgrestest.Shared(b))
	s := at.store(b, pgjournal.Options{})
	at.sql(b, "CREATE TABLE bare (data bytea)")
	for n := range teams {
		if err := s.Create(b.Context(), entry(fmt.Sprint("team", n), fmt.Sprint("id", n)), nil); err != nil {
			b.Fatal(err)
		}
	}
	type writer struct {
		store *pgjournal.Store
		pool  *pgxpool.Pool
		teams map[int]*pgjournal.Journal
		known map[int]int64
	}
	var all []*writer
	for range writers {
		all = append(all, &writer{at.with("pool_max_conns=1").store(b, pgjournal.Options{}),
			newBare(b, at.with("pool_max_conns=1"), 1).pool, map[int]*pgjournal.Journal{}, map[int]int64{}})
	}
	ours := func(ctx context.Context, w int) error {
		me, n := all[w], rand.IntN(teams)
		j := me.teams[n]
		if j == nil {
			var err error
			if j, err = me.store.Open(ctx, fmt.Sprint("id", n)); err != nil {
				return err
			}
			b.Cleanup(func() { j.Close() })
			me.teams[n] = j
		}
		seq, err := j.Append(ctx, me.known[n], func(r journal.Record) error { me.known[n] = r.Seq; return nil },
			func() ([]byte, error) { return []byte(benchRecord), nil })
		me.known[n] = seq
		return err
	}
	insert := func(ctx context.Context, w int) error {
		_, err := all[w].pool.Exec(ctx, "INSERT INTO "+at.Schema+".bare VALUES ($1)", []byte(benchRecord))
		return err
	}
	var mine, others int64
	var took time.Duration
	for b.Loop() {
		for range 10 {
			began := time.Now()
			mine += together(b, writers, ours)
			took += time.Since(began)
			others += together(b, writers, insert)
		}
	}
	b.ReportMetric(float64(mine)/float64(others), "of-inserts")
	b.ReportMetric(float64(mine)/took.Seconds(), "records/s")
}

// BenchmarkWatchers measures when 1,000 waiters in 10 stores, which stand for processes, have seen
// a record. The median under 50 ms is asked.
func BenchmarkWatchers(b *testing.B) {
	const stores, each = 10, 100
	at := fresh(b, postgrestest.Shared(b))
	_, writer := at.create(b, pgjournal.Options{})
	var handles []*pgjournal.Journal
	for range stores {
		s := at.store(b, pgjournal.Options{})
		for range each {
			handles = append(handles, open(b, s))
		}
	}
	seq := int64(0)
	var delays []time.Duration
	for b.Loop() {
		seen := make([]time.Time, len(handles))
		var waiting sync.WaitGroup
		for i, j := range handles {
			waiting.Go(func() {
				if err := j.Wait(b.Context(), seq); err != nil {
					b.Error(err)
				}
				seen[i] = time.Now()
			})
		}
		time.Sleep(300 * time.Millisecond)
		add(b, writer, seq, benchRecord)
		appended := time.Now()
		waiting.Wait()
		for _, at := range seen {
			delays = append(delays, max(0, at.Sub(appended)))
		}
		seq++
	}
	slices.Sort(delays)
	b.ReportMetric(float64(delays[len(delays)/2].Microseconds())/1000, "ms-median")
	b.ReportMetric(float64(delays[len(delays)*99/100].Microseconds())/1000, "ms-p99")
}
