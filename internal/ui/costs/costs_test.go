package costs

import (
	"slices"
	"testing"
	"time"

	"cadre/internal/team"
	"cadre/internal/testkit/historytest"

	"pgregory.net/rapid"
)

// TestRows checks the columns of random histories against plain additions over their records, and
// the last column against the state.
func TestRows(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		h := historytest.Play(historytest.Choices(200).Draw(t, "choices"))
		restart := rapid.Int64Range(0, h.State.Seq()).Draw(t, "restart")
		s, err := team.DecodeSnapshot(0, "")
		if err != nil {
			t.Fatal(err)
		}
		var whole, rest Costs
		for _, r := range h.Records {
			s.Apply(r)
			whole.Add(r)
			whole.Add(r) // a second time changes nothing
			if rest.Add(r); r.Seq == restart {
				rest = Costs{}
				rest.Restore(s)
			}
		}
		from := historytest.Began + team.Time(rapid.Int64Range(-10_000, int64(h.Now-historytest.Began)).Draw(t, "from"))
		to := max(from+1, h.Now)
		v := View{Edges: Edges(from, to, rapid.IntRange(1, 60).Draw(t, "columns")), Rate: rapid.Bool().Draw(t, "rate"),
			Unit: rapid.SampledFrom([]Unit{Tokens, Dollars}).Draw(t, "unit")}
		if !slices.IsSorted(v.Edges) || v.Edges[0] != from || v.Edges[len(v.Edges)-1] != to {
			t.Fatalf("edges from %d to %d: %v", from, to, v.Edges)
		}
		used := func(member string, begin, end team.Time) (n int64) {
			for _, r := range h.Records {
				for _, e := range r.Events {
					if u, is := e.(*team.UsageReported); is && r.At >= begin && r.At < end &&
						(member == "" || u.Member == member) {
						n += v.Unit.of(Amount{u.Usage.Tokens(), u.Usage.CostMicroUSD})
					}
				}
			}
			return n
		}
		for _, row := range whole.Rows(v) {
			for i, value := range row.Cells {
				begin, end := v.Edges[i], v.Edges[i+1]
				if i == len(row.Cells)-1 {
					end++
				}
				if !v.Rate {
					begin = 0
				}
				if want := used(row.Member, begin, end); value != want || value > row.Most {
					t.Fatalf("column %d of %q is %d of %d, not %d", i, row.Member, value, row.Most, want)
				}
			}
			if got := []rune(row.Bars(false)); len(got) != len(row.Cells) || len(row.Bars(true)) != len(got) {
				t.Fatalf("%q has %d bars for %d columns", row.Member, len(got), len(row.Cells))
			}
		}
		for _, c := range []*Costs{&whole, &rest} {
			for _, row := range c.Rows(v) {
				usage := s.Team().Usage
				if m, is := s.Member(row.Member); is {
					usage = m.Usage
				}
				if want := (Amount{usage.Tokens(), usage.CostMicroUSD}); row.Sum != want {
					t.Fatalf("%q used %+v, not %+v", row.Member, row.Sum, want)
				}
			}
		}
	})
}

// TestLongHistory: the memory of a member is bounded, and so is the error of each column. The sum
// up to the last column is exact.
func TestLongHistory(t *testing.T) {
	const reports, columns = 100_000, 120
	var c Costs
	var sums []int64 // after each report
	for i := range int64(reports) {
		used := 1 + i%17
		if i%1000 == 0 {
			used = 500
		}
		c.Add(&team.Record{Seq: i + 1, At: team.Time(i * 10), Events: []team.Event{&team.UsageReported{Member: "ann",
			Usage: team.Usage{InputTokens: used}}}})
		sums = append(sums, used)
		if i > 0 {
			sums[i] += sums[i-1]
		}
	}
	for _, s := range append(c.members, &c.all) {
		if len(s.points) > mostPoints || cap(s.points) > 2*mostPoints {
			t.Errorf("%q has %d points", s.member, len(s.points))
		}
	}
	total := sums[reports-1]
	row := c.Rows(View{Edges: Edges(0, (reports-1)*10, columns)})[1]
	if row.Sum.Tokens != total {
		t.Errorf("the sum is %d, not %d", row.Sum.Tokens, total)
	}
	for i, value := range row.Cells {
		exact := sums[reports*(i+1)/columns-1]
		if off := exact - value; off > total/200 || off < -total/200 {
			t.Errorf("column %d has %d, not %d", i, value, exact)
		}
	}
}

func TestBars(t *testing.T) {
	row := Row{Cells: []int64{0, 1, 250, 500, 750, 1000}, Most: 1000}
	for plain, want := range map[bool]string{false: " ▁▂▄▆█", true: " .:=*#"} {
		if got := row.Bars(plain); got != want {
			t.Errorf("it is %q, not %q", got, want)
		}
	}
	if got := (Row{Cells: []int64{0, 0}}).Bars(true); got != "  " {
		t.Errorf("nothing used is %q", got)
	}
	var none Costs
	if rows := none.Rows(View{}); len(rows) != 1 || rows[0].Bars(false) != "" || none.Dollars() {
		t.Errorf("%+v", rows)
	}
}

// BenchmarkRows measures rows of a long history in times of those of a short one.
func BenchmarkRows(b *testing.B) {
	var short, long Costs
	h := historytest.Long(100_000, 100)
	for i, r := range h.Records {
		if long.Add(r); i < 1_000 {
			short.Add(r)
		}
	}
	rows := func(c *Costs) float64 {
		edges := Edges(historytest.Began, c.last, 120)
		began := time.Now()
		for range 20 {
			c.Rows(View{Edges: edges})
		}
		return float64(time.Since(began)) / 20
	}
	var ofLong, ratios []float64
	for b.Loop() {
		ofLong = append(ofLong, rows(&long))
		ratios = append(ratios, ofLong[len(ofLong)-1]/rows(&short))
	}
	slices.Sort(ofLong)
	slices.Sort(ratios)
	b.ReportMetric(ratios[len(ratios)/2], "x-short")
	b.ReportMetric(ofLong[len(ofLong)/2]/1000, "µs/frame")
}
