package metrics

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"cadre/internal/team"
	"cadre/internal/testkit/golden"
)

// docs is the folder of the documents.
const docs = "../../../docs"

// TestDocument checks that docs/monitoring.md has each metric, and each kind of attention.
func TestDocument(t *testing.T) {
	var rows strings.Builder
	rows.WriteString("\n\n| metric | type | unit | labels | meaning |\n| --- | --- | --- | --- | --- |\n")
	for _, m := range table {
		label := m.label
		if label != "" {
			label = "`" + strings.ReplaceAll(label, ", ", "`, `") + "`"
		}
		fmt.Fprintf(&rows, "| `%s` | %s | %s | %s | %s |\n", m.name, m.kind, m.unit, label, m.help)
	}
	path := filepath.Join(docs, "monitoring.md")
	golden.Part(t, path, "<!-- metrics: made by go test ./internal/server/metrics -run TestDocument -update -->",
		"<!-- end of metrics -->", rows.String()+"\n")
	kinds, width := "\n", 0
	for i, k := range team.ItemKinds {
		word := "`" + string(k) + "`, "
		if i == len(team.ItemKinds)-1 {
			word = "`" + string(k) + "`."
		}
		if width += len(word); width > 140 {
			kinds, width = strings.TrimSuffix(kinds, " ")+"\n", len(word)
		}
		kinds += word
	}
	golden.Part(t, path, "<!-- kinds -->", "<!-- end of kinds -->", kinds+"\n")
}

var (
	nameInQuery  = regexp.MustCompile(`\bcadre_[a-z_]+`)
	labelInQuery = regexp.MustCompile(`(cadre_[a-z_]+)\{([^}]*)\}`)
	matcher      = regexp.MustCompile(`([a-z]+)(?:=~|!~|!=|=)"([^"]*)"`)
)

// checkQuery checks that each metric in a query of Prometheus exists, and has the labels and values
// that the query selects. It returns how many metrics the query has.
func checkQuery(t *testing.T, where, query string) int {
	t.Helper()
	find := func(name string) *metric {
		for i := range table {
			m := &table[i]
			base := name
			for _, suffix := range []string{"_bucket", "_sum", "_count"} {
				if cut, ok := strings.CutSuffix(name, suffix); ok && m.kind == timing {
					base = cut
				}
			}
			if m.name == base && (m.kind != timing || base != name) {
				return m
			}
		}
		t.Errorf("%s: there is no metric %s", where, name)
		return nil
	}
	names := nameInQuery.FindAllString(query, -1)
	for _, name := range names {
		find(name)
	}
	known := map[string][]string{"state": taskStates[:], "what": budgets}
	for _, p := range phases {
		known["state"] = append(known["state"], string(p))
	}
	for _, k := range team.ItemKinds {
		known["kind"] = append(known["kind"], string(k))
	}
	for _, selector := range labelInQuery.FindAllStringSubmatch(query, -1) {
		m := find(selector[1])
		if m == nil {
			continue
		}
		for _, one := range matcher.FindAllStringSubmatch(selector[2], -1) {
			label, values := one[1], strings.Split(one[2], "|")
			if label == "instance" || label == "job" {
				continue
			}
			if !slices.Contains(strings.Split(m.label, ", "), label) {
				t.Errorf("%s: %s has no label %s", where, m.name, label)
			}
			for _, v := range values {
				if !slices.Contains(known[label], v) {
					t.Errorf("%s: %s of %s is never %s", where, label, m.name, v)
				}
			}
		}
	}
	return len(names)
}

// dashboard is the part of a Grafana dashboard that people see.
type dashboard struct {
	Title         string
	SchemaVersion int
	Panels        []struct {
		ID                       int
		Type, Title, Description string
		GridPos                  struct{ H, W, X, Y int }
		Datasource               struct{ Type, UID string }
		FieldConfig              struct {
			Defaults struct{ Unit string }
		}
		Targets []struct{ RefID, Expr string }
	}
	Templating struct {
		List []struct{ Name, Type, Definition string }
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(docs, "monitoring", "dashboard.json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDashboard checks that each panel of the dashboard says what it shows and in which unit, lies
// beside the others, and asks for metrics that exist, and that each metric is in a panel.
func TestDashboard(t *testing.T) {
	d := readDashboard(t)
	if d.Title != "cadre" || d.SchemaVersion < 37 || len(d.Panels) < 20 {
		t.Errorf("the dashboard %q of version %d has %d panels", d.Title, d.SchemaVersion, len(d.Panels))
	}
	ids := map[int]bool{}
	taken := map[[2]int]string{}
	all := ""
	for _, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("two panels have the id %d", p.ID)
		}
		ids[p.ID] = true
		for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
			for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%q lies on %q, or beside the dashboard", p.Title, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Title == "" || p.Description == "" || p.FieldConfig.Defaults.Unit == "" || len(p.Targets) == 0 ||
			p.Datasource.UID != "${datasource}" {
			t.Errorf("the panel %q lacks a description, a unit, a query or a data source", p.Title)
		}
		for _, q := range p.Targets {
			if checkQuery(t, p.Title, q.Expr) == 0 || !strings.Contains(q.Expr, `instance=~"$instance"`) {
				t.Errorf("%s: the query %s is for no metric of ours, or for any server", p.Title, q.Expr)
			}
			all += q.Expr + "\n"
		}
	}
	for _, m := range table {
		if !regexp.MustCompile(`\b` + m.name + `(_bucket|_count)?\{`).MatchString(all) {
			t.Errorf("no panel shows %s", m.name)
		}
	}
	for _, v := range d.Templating.List {
		checkQuery(t, "the variable "+v.Name, v.Definition)
	}
}

// rules is a file of rules for Prometheus.
type rules struct {
	Groups []struct {
		Name  string `yaml:"name"`
		Rules []struct {
			Alert       string            `yaml:"alert"`
			Record      string            `yaml:"record"`
			Expr        string            `yaml:"expr"`
			For         string            `yaml:"for"`
			Labels      map[string]string `yaml:"labels"`
			Annotations map[string]string `yaml:"annotations"`
		} `yaml:"rules"`
	} `yaml:"groups"`
}

func readYAML(t *testing.T, name string, into any) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(docs, "monitoring", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, into); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestAlerts checks that the rules ask for metrics that exist, say what to do, and are in the
// document, and that each has a test in which it fires and one in which it does not.
func TestAlerts(t *testing.T) {
	var file rules
	readYAML(t, "alerts.yaml", &file)
	var tests struct {
		Tests []struct {
			Input []struct {
				Series string `yaml:"series"`
			} `yaml:"input_series"`
			Alerts []struct {
				Name string `yaml:"alertname"`
				Want []struct {
					Labels map[string]string `yaml:"exp_labels"`
				} `yaml:"exp_alerts"`
			} `yaml:"alert_rule_test"`
		} `yaml:"tests"`
	}
	readYAML(t, "alerts_test.yaml", &tests)
	fires, rests := map[string]bool{}, map[string]bool{}
	for _, one := range tests.Tests {
		for _, in := range one.Input {
			checkQuery(t, "the tests", in.Series)
		}
		for _, a := range one.Alerts {
			if len(a.Want) == 0 {
				rests[a.Name] = true
			}
			for _, want := range a.Want {
				fires[a.Name+want.Labels["since"]] = true
			}
		}
	}
	document, err := os.ReadFile(filepath.Join(docs, "monitoring.md"))
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			n++
			if checkQuery(t, r.Alert, r.Expr) == 0 || r.Alert == "" || r.Labels["severity"] == "" ||
				r.Annotations["summary"] == "" || r.Annotations["description"] == "" {
				t.Errorf("the rule %+v lacks something", r)
			}
			if !fires[r.Alert+r.Labels["since"]] || !rests[r.Alert] {
				t.Errorf("%s has no test in which it fires, or none in which it does not", r.Alert)
			}
			if !strings.Contains(string(document), "| `"+r.Alert+"` |") {
				t.Errorf("docs/monitoring.md lacks %s", r.Alert)
			}
		}
	}
	if n < 3 {
		t.Errorf("found only %d rules", n)
	}
}

// TestPromtoolRules runs the tests of the rules with Prometheus's own tool.
func TestPromtoolRules(t *testing.T) {
	promtool(t, "", "check", "rules", filepath.Join(docs, "monitoring", "alerts.yaml"))
	promtool(t, "", "test", "rules", filepath.Join(docs, "monitoring", "alerts_test.yaml"))
}

// TestPromtoolDashboard has Prometheus's own tool parse the queries of the dashboard.
func TestPromtoolDashboard(t *testing.T) {
	type rule struct {
		Record string `json:"record"`
		Expr   string `json:"expr"`
	}
	var all []rule
	for _, p := range readDashboard(t).Panels {
		for _, q := range p.Targets {
			query := strings.NewReplacer("$__rate_interval", "1m", "$instance", ".*").Replace(q.Expr)
			all = append(all, rule{fmt.Sprintf("panel:%d:%s", p.ID, q.RefID), query})
		}
	}
	text, err := json.Marshal(map[string]any{"groups": []any{map[string]any{"name": "dashboard", "rules": all}}})
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "rules.yaml") // JSON is YAML
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	promtool(t, "", "check", "rules", path)
}
