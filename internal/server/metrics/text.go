package metrics

import (
	"strconv"
	"strings"
	"time"
)

// page is the text of metrics. It grows metric by metric.
type page struct {
	text []byte
	of   *metric // the metric whose samples follow
}

// In the text format, a help has the first two as escapes, and a value of a label all three.
var (
	inHelp  = strings.NewReplacer(`\`, `\\`, "\n", `\n`)
	inLabel = strings.NewReplacer(`\`, `\\`, "\n", `\n`, `"`, `\"`)
)

// metric begins the samples of a metric.
func (p *page) metric(m *metric) {
	p.of = m
	p.text = append(p.text, "# HELP "+m.name+" "+inHelp.Replace(m.help)+"\n# TYPE "+m.name+" "+string(m.kind)+"\n"...)
}

// sample begins a sample. Its value follows, and a line feed. labels are names and values in turn.
func (p *page) sample(suffix string, labels []string) {
	p.text = append(append(p.text, p.of.name...), suffix...)
	for i := 0; i < len(labels); i += 2 {
		mark := byte(',')
		if i == 0 {
			mark = '{'
		}
		p.text = append(append(append(p.text, mark), labels[i]...), `="`...)
		p.text = append(append(p.text, inLabel.Replace(labels[i+1])...), '"')
	}
	if len(labels) > 0 {
		p.text = append(p.text, '}')
	}
	p.text = append(p.text, ' ')
}

// count adds a sample with a whole number.
func (p *page) count(suffix string, n int64, labels ...string) {
	p.sample(suffix, labels)
	p.text = append(strconv.AppendInt(p.text, n, 10), '\n')
}

// number adds a sample.
func (p *page) number(suffix string, v float64, labels ...string) {
	p.sample(suffix, labels)
	p.text = append(strconv.AppendFloat(p.text, v, 'g', -1, 64), '\n')
}

// histogram adds the samples of a histogram.
func (p *page) histogram(bounds []time.Duration, h *histogram) {
	var n int64
	for i := range len(bounds) + 1 {
		le := "+Inf"
		if i < len(bounds) {
			le = strconv.FormatFloat(bounds[i].Seconds(), 'g', -1, 64)
		}
		if h.counts != nil {
			n += h.counts[i]
		}
		p.count("_bucket", n, "le", le)
	}
	p.number("_sum", float64(h.sum)/1e6)
	p.count("_count", n)
}
