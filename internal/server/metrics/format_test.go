package metrics

import (
	"math"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"cadre/internal/team"
)

// parse reads the text as Prometheus does.
func parse(t testing.TB, text string) map[string]*dto.MetricFamily {
	t.Helper()
	p := expfmt.NewTextParser(model.LegacyValidation)
	families, err := p.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return families
}

// TestLint checks the text with Prometheus's own linter, and reads it with its own parser.
func TestLint(t *testing.T) {
	c, g := shown(t)
	text := text(t, c, g)
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
	families := parse(t, text)
	if len(families) != len(table) {
		t.Errorf("%d metrics were read of %d", len(families), len(table))
	}
	for _, m := range table {
		f := families[m.name]
		if f == nil || len(f.Metric) == 0 {
			t.Errorf("%s has no sample", m.name)
			continue
		}
		if kind := strings.ToLower(f.GetType().String()); kind != string(m.kind) || f.GetHelp() != m.help {
			t.Errorf("%s is a %s (%s)", m.name, kind, f.GetHelp())
		}
		for _, one := range f.Metric {
			var labels []string
			for _, l := range one.Label {
				labels = append(labels, l.GetName())
			}
			slices.Sort(labels)
			if got := strings.Join(labels, ", "); got != m.label {
				t.Errorf("%s has the labels %q, the table says %q", m.name, got, m.label)
			}
			if m.kind == timing {
				checkHistogram(t, m.name, one.Histogram)
			}
		}
	}
	if h := families["cadre_journal_append_seconds"].Metric[0].Histogram; h.GetSampleCount() != 4 ||
		h.GetSampleSum() != 2.00308 {
		t.Errorf("the appends are %v", h)
	}
	found := false
	for _, one := range families["cadre_tokens_total"].Metric {
		for _, l := range one.Label {
			found = found || l.GetValue() == `a "quoted" \ name`
		}
	}
	if !found {
		t.Error("the quoted name of a model was not read back")
	}
}

func checkHistogram(t *testing.T, name string, h *dto.Histogram) {
	t.Helper()
	last, bound := uint64(0), math.Inf(-1)
	for _, b := range h.Bucket {
		if b.GetCumulativeCount() < last || b.GetUpperBound() <= bound {
			t.Errorf("%s: the bucket %v follows %d up to %v", name, b, last, bound)
		}
		last, bound = b.GetCumulativeCount(), b.GetUpperBound()
	}
	if !math.IsInf(bound, 1) || last != h.GetSampleCount() {
		t.Errorf("%s has %d in its buckets up to %v, of %d", name, last, bound, h.GetSampleCount())
	}
}

// FuzzModel checks that any name of a model, which is an agent's own text, gives a text that
// Prometheus reads with the same name, and with the metrics that the table has.
func FuzzModel(f *testing.F) {
	for _, name := range []string{"", "claude-x", `a"b\c`, "a\nb 1\n# TYPE x gauge\nx 1", "\x1b[2J", "\u202e\u200b",
		"\xff\xfe", strings.Repeat("漢", 70), "other", "default", `"} 1`, "\r", "\u2028"} {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		h := &history{}
		h.sums.use(name, 1, team.Usage{InputTokens: 7})
		c := &Collector{teams: map[string]*history{"t": h}}
		families := parse(t, text(t, c, Gauges{}))
		for _, m := range table {
			if f := families[m.name]; f != nil && strings.ToLower(f.GetType().String()) != string(m.kind) {
				t.Fatalf("%s is a %s", m.name, f.GetType())
			}
			delete(families, m.name)
		}
		if len(families) > 0 {
			t.Fatalf("there are more metrics: %v", families)
		}
		want := modelLabel(name)
		if len(want) > longestModel || want == "" || strings.ContainsAny(want, "\n\r\x1b") {
			t.Fatalf("the label is %q", want)
		}
		got := values(t, text(t, c, Gauges{}))
		if v := got[`cadre_tokens_total{kind="input",model="`+inLabel.Replace(want)+`"}`]; v != 7 {
			t.Fatalf("the model %q used %v tokens in %v", want, v, got)
		}
	})
}

// FuzzLabel checks that any value of a label is read back as it was.
func FuzzLabel(f *testing.F) {
	f.Add(`\n`)
	f.Add("\n\"\\")
	f.Fuzz(func(t *testing.T, value string) {
		value = strings.ToValidUTF8(value, "?")
		p := page{}
		p.metric(&metric{name: "x", kind: gauge, help: "It is " + value + "."})
		p.count("", 1, "a", value, "b", value)
		x := parse(t, string(p.text))["x"]
		if x == nil || x.GetHelp() != "It is "+value+"." || len(x.Metric) != 1 || len(x.Metric[0].Label) != 2 ||
			x.Metric[0].Label[0].GetValue() != value || x.Metric[0].Label[1].GetValue() != value {
			t.Fatalf("%q is read as %v", value, x)
		}
	})
}

// promtool runs Prometheus's own tool, which Debian has in the package prometheus.
func promtool(t *testing.T, input string, args ...string) {
	t.Helper()
	path, err := exec.LookPath("promtool")
	if err != nil {
		t.Skip("promtool is not installed; other tests check the same with the linter in Go, but not the rules")
	}
	cmd := exec.Command(path, args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	t.Logf("%s", out)
}

func TestPromtoolMetrics(t *testing.T) {
	c, g := shown(t)
	promtool(t, text(t, c, g), "check", "metrics")
}
