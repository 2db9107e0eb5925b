package bench

import (
	"bufio"
	"context"
	"database/sql"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	_ "github.com/mattn/go-sqlite3" // the baseline of durable claims

	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
)

const (
	claimers = 32
	toClaim  = 10_000
)

// TestMain lets the test binary run as one of the measured processes.
func TestMain(m *testing.M) {
	var err error
	switch os.Getenv("BENCH_PROCESS") {
	case "":
		os.Exit(m.Run())
	case "cadre":
		err = claimFromCadre(os.Getenv("BENCH_AT"), os.Getenv("BENCH_AS"))
	case "sqlite":
		err = claimFromSQLite(os.Getenv("BENCH_AT"), os.Getenv("BENCH_AS"))
	case "read":
		err = readTeam(os.Getenv("BENCH_AT"))
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// ready tells the parent that this process can start, and waits until all processes may.
func ready() {
	fmt.Println("ready")
	bufio.NewReader(os.Stdin).ReadString('\n')
}

func claimFromCadre(root, name string) error {
	ctx := context.Background()
	j, _, err := layout.Home{Root: root}.Open("claims", nil)
	if err != nil {
		return err
	}
	rep, err := replica.Open(ctx, j, replica.Options{})
	if err != nil {
		return err
	}
	defer rep.Close()
	ready()
	won := 0
	for {
		_, err := rep.Do(ctx, team.Command{Actor: name, Body: &team.ClaimTask{}})
		if team.CodeOf(err) == team.Nothing {
			fmt.Println(won)
			return nil
		}
		if err != nil {
			return err
		}
		won++
	}
}

func openSQLite(path string) (*sql.DB, error) {
	db,
		err := sql.Open("sqlite3",
		"file:"+path+"?_journal_mode=WAL&_synchronous=FULL&_busy_timeout=60000&_txlock=immediate")
	if err == nil {
		db.SetMaxOpenConns(1)
	}
	return db, err
}

func claimFromSQLite(path, name string) error {
	db, err := openSQLite(path)
	if err != nil {
		return err
	}
	defer db.Close()
	claim,
		err := db.Prepare(
		`UPDATE tasks SET status = 'in_progress', owner = ? WHERE id = (SELECT id FROM tasks WHERE status = 'pending' ORDER BY priority DESC, id LIMIT 1) RETURNING id`)
	if err != nil {
		return err
	}
	ready()
	won := 0
	for {
		var id int
		switch err := claim.QueryRow(name).Scan(&id); err {
		case nil:
			won++
		case sql.ErrNoRows:
			fmt.Println(won)
			return nil
		default:
			return err
		}
	}
}

// race starts the claimers at the same moment. It returns how long they took to claim every task
// exactly once.
func race(b *testing.B, what, at string) time.Duration {
	b.Helper()
	type claimer struct {
		c   *exec.Cmd
		in  *bufio.Writer
		out *bufio.Scanner
	}
	var all []claimer
	for i := range claimers {
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), "BENCH_PROCESS="+what, "BENCH_AT="+at, fmt.Sprintf("BENCH_AS=m%d", i))
		c.Stderr = os.Stderr
		in, err := c.StdinPipe()
		if err != nil {
			b.Fatal(err)
		}
		out, err := c.StdoutPipe()
		if err != nil {
			b.Fatal(err)
		}
		if err := c.Start(); err != nil {
			b.Fatal(err)
		}
		all = append(all, claimer{c, bufio.NewWriter(in), bufio.NewScanner(out)})
	}
	for _, p := range all {
		if !p.out.Scan() || p.out.Text() != "ready" {
			b.Fatalf("a %s claimer did not start", what)
		}
	}
	began := time.Now()
	for _, p := range all {
		p.in.WriteString("go\n")
		p.in.Flush()
	}
	total := 0
	for _, p := range all {
		n := 0
		if p.out.Scan() {
			fmt.Sscan(p.out.Text(), &n)
		}
		total += n
	}
	took := time.Since(began)
	for _, p := range all {
		if err := p.c.Wait(); err != nil {
			b.Fatalf("a %s claimer failed: %v", what, err)
		}
	}
	if total != toClaim {
		b.Fatalf("%s: %d claims of %d tasks", what, total, toClaim)
	}
	return took
}

// BenchmarkClaims lets 32 processes claim 10,000 tasks, durably and with one winner each. They
// claim from a team and from an SQLite table (WAL, synchronous FULL) in turn, five times. It
// reports how many times as long SQLite takes: at least 2 in the median pair, and at least 1.5 in
// each.
func BenchmarkClaims(b *testing.B) {
	var all, base []time.Duration
	for range max(b.N, 5) {
		dir := b.TempDir()
		h := layout.Home{Root: dir}
		if err := Build(h, "claims", toClaim, 0); err != nil {
			b.Fatal(err)
		}
		all = append(all, race(b, "cadre", dir))

		path := filepath.Join(dir, "tasks.db")
		db, err := openSQLite(path)
		if err != nil {
			b.Fatal(err)
		}
		for _, statement := range []string{
			`CREATE TABLE tasks (id INTEGER PRIMARY KEY, subject TEXT, description TEXT, status TEXT, owner TEXT, priority INTEGER)`,
			`CREATE INDEX next ON tasks (status, priority DESC, id)`,
			fmt.Sprintf(`WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i < %d)
			 INSERT INTO tasks SELECT i, 'Look into module ' || i, 'Read the module, run its tests, and report.', 'pending', NULL, 1 FROM n`, toClaim),
		} {
			if _, err := db.Exec(statement); err != nil {
				b.Fatal(err)
			}
		}
		db.Close()
		base = append(base, race(b, "sqlite", path))
	}
	var pairs []float64
	for i := range all {
		pairs = append(pairs, base[i].Seconds()/all[i].Seconds())
	}
	slices.Sort(pairs)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(pairs[len(pairs)/2], "times-SQLite")
	b.ReportMetric(pairs[0], "times-SQLite-in-the-worst-pair")
	b.Logf("%d claims by %d processes: cadre %.2f s, SQLite %.2f s (medians); pairs %.2f", toClaim, claimers,
		median(all).Seconds(), median(base).Seconds(), pairs)
}
