package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"cadre/internal/inspect/attention"
	"cadre/internal/team"
)

// TestAttentionEverywhere checks that every face of cadre shows the same items: the commands, the
// screen and its lines for a screen reader, the API, the board, the metrics and the notifications.
// Something of each kind waits, and is settled then, as a person does it.
func TestAttentionEverywhere(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	f := &faces{world: w, posted: w.webhook()}
	w.start("notify", "--watch")
	plot := w.plot()
	var kinds []team.ItemKind
	for _, one := range plot {
		one.begins()
		f.until(one, true)
		kinds = append(kinds, one.kind)
	}
	for _, kind := range team.ItemKinds {
		// the item about a team in a team sums up items of that team, which notify by themselves
		if kind != team.ItemNested && !slices.Contains(kinds, kind) {
			t.Errorf("nothing of the kind %s waits", kind)
		}
	}
	f.address = w.serveOnAny()
	f.agree(len(plot))
	told := f.posted.list()
	for _, one := range plot {
		one.ends()
		f.until(one, false)
		f.lose(one)
	}
	f.agree(0)
	for _, more := range f.posted.list()[len(told):] {
		if slices.Contains(kinds, team.ItemKind(more.Kind)) {
			t.Errorf("after the answers it was notified of %+v", more)
		}
	}
}

// serveOnAny starts the server with an address on loopback, and returns that.
func (w *world) serveOnAny() string {
	w.t.Helper()
	p := w.serve("--listen", "127.0.0.1:0")
	p.awaits("and on http://")
	_, rest, _ := strings.Cut(p.said(), "and on http://")
	return strings.Fields(rest)[0]
}

// notification is what a webhook gets.
type notification struct {
	ID, Team, TeamID, Kind string
	Since                  int64
}

// key returns the key of the item.
func (n notification) key() string {
	team := cmp.Or(n.TeamID, n.Team) // a damaged team has no id
	return strings.TrimSuffix(strings.TrimPrefix(n.ID, team+"/"), fmt.Sprintf("/%d", n.Since))
}

// webhooks has the notifications that were sent.
type webhooks struct {
	mu  sync.Mutex
	all []notification
}

func (h *webhooks) list() []notification {
	h.mu.Lock()
	defer h.mu.Unlock()
	return slices.Clone(h.all)
}

// webhook writes settings that notify a server of the test.
func (w *world) webhook() *webhooks {
	w.t.Helper()
	h := &webhooks{}
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var one notification
		if err := json.NewDecoder(r.Body).Decode(&one); err != nil {
			w.t.Error(err)
		}
		h.mu.Lock()
		defer h.mu.Unlock()
		h.all = append(h.all, one)
	}))
	w.t.Cleanup(s.Close)
	w.put(filepath.Join(w.home, "settings.json"), fmt.Sprintf(`{"notify": {"webhook": {"url": %q}}}`, s.URL))
	return h
}

// faces are the ways in which a person sees what waits.
type faces struct {
	*world
	posted  *webhooks
	address string // of the server, on loopback
}

// shown is one item as a face shows it: its team, and its key.
type shown = string

func shownAs(name, key string) shown { return name + ": " + key }

// command returns the list of the command, which is what the others are compared with.
func (f *faces) command() []attention.Item { return list[attention.Item](f.world, "attention") }

// until waits until the command shows the item, or does not show it. An item of a team that has
// several is also notified of before the next one begins: many at once are one notification.
func (f *faces) until(one waits, is bool) {
	f.t.Helper()
	for began := time.Now(); ; pause(began) {
		waits := slices.ContainsFunc(f.command(), func(i attention.Item) bool {
			return i.Team == one.team && i.Kind == one.kind
		})
		if waits == is {
			break
		}
		if time.Since(began) > patience {
			f.t.Fatalf("%s waits in team %s: %t; what waits is\n%s", one.kind, one.team, !is, f.cadre("attention").out)
		}
	}
	if is && one.team == "demo" && one.kind != team.ItemHeld && one.kind != team.ItemOffline {
		eventually(f.t, "the notification of "+string(one.kind), func() bool {
			return slices.ContainsFunc(f.posted.list(), func(n notification) bool { return n.Kind == string(one.kind) })
		})
	}
}

// lose waits until the API and the board do not show the item either.
func (f *faces) lose(one waits) {
	f.t.Helper()
	eventually(f.t, "the API shows "+string(one.kind)+" no more", func() bool {
		return !slices.ContainsFunc(f.api(nil), one.shown) && !slices.ContainsFunc(f.board(), one.shown)
	})
}

// shown reports whether this is the item, as a face shows it.
func (one waits) shown(as shown) bool {
	return strings.HasPrefix(as, shownAs(one.team, string(one.kind)+"/"))
}

// agree checks that all faces show so many items, and the same.
func (f *faces) agree(items int) {
	f.t.Helper()
	all := f.command()
	if len(all) != items {
		f.t.Errorf("%d items wait, not %d: %+v", len(all), items, all)
	}
	var want []shown
	perTeam, perKind := map[string]int{}, map[string]int{}
	for _, i := range all {
		want = append(want, shownAs(i.Team, i.Key()))
		perTeam[i.Team]++
		perKind[string(i.Kind)]++
		if i.WaitsFor != team.ForUser {
			f.t.Errorf("the item waits for %s: %+v", i.WaitsFor, i)
		}
	}
	f.same("the API", want, f.api(perTeam))
	f.same("the board", want, f.board())
	f.same("the board's teams", want, f.boardTeams(perTeam))
	f.counts(all, perTeam)
	f.metrics(perKind)
	f.screens(all)
	if items > 0 {
		f.notified(all)
	}
}

// same compares the lists of two faces, which have the same order.
func (f *faces) same(face string, want, got []shown) {
	f.t.Helper()
	if !slices.Equal(got, want) {
		f.t.Errorf("%s shows\n%s\nnot\n%s", face, strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// answer decodes what the server answers to the request.
func answer[T any](f *faces, path string) (value T) {
	f.t.Helper()
	status, body := f.get(path)
	if err := json.Unmarshal([]byte(body), &value); err != nil || status != http.StatusOK {
		f.t.Fatalf("%s: %d %.300s: %v", path, status, body, err)
	}
	return value
}

// api returns the list of the API. It checks that the list of each team is a part of it.
func (f *faces) api(teams map[string]int) (all []shown) {
	f.t.Helper()
	whole := answer[[]attention.Item](f, "/v1/attention")
	for _, i := range whole {
		all = append(all, shownAs(i.Team, i.Key()))
	}
	for name := range teams {
		var one, part []shown
		for _, i := range answer[[]attention.Item](f, "/v1/teams/"+name+"/attention") {
			one = append(one, shownAs(i.Team, i.Key()))
		}
		for _, i := range whole {
			if i.Team == name {
				part = append(part, shownAs(i.Team, i.Key()))
			}
		}
		f.same("the API of team "+name, part, one)
	}
	return all
}

// waiting is an item as the board has it.
type waiting struct{ Team, Key, Command string }

// board returns what the page of all teams shows.
func (f *faces) board() (all []shown) {
	for _, i := range f.waiting() {
		all = append(all, shownAs(i.Team, i.Key))
	}
	return all
}

func (f *faces) waiting() []waiting {
	f.t.Helper()
	return answer[struct{ Attention []waiting }](f, "/board/teams").Attention
}

// boardTeams returns what the pages of the teams show, in the order of the page of all teams. A
// damaged team has no page.
func (f *faces) boardTeams(teams map[string]int) (all []shown) {
	f.t.Helper()
	pages := map[string][]waiting{}
	for _, i := range f.waiting() {
		if _, seen := pages[i.Team]; !seen && i.Team != "damaged" {
			pages[i.Team] = answer[struct{ Items []waiting }](f, "/board/teams/"+i.Team+"/now").Items
			if len(pages[i.Team]) != teams[i.Team] {
				f.t.Errorf("the page of team %s has %v", i.Team, pages[i.Team])
			}
		}
		if i.Team == "damaged" {
			all = append(all, shownAs(i.Team, i.Key))
		} else if page := pages[i.Team]; len(page) > 0 {
			all, pages[i.Team] = append(all, shownAs(page[0].Team, page[0].Key)), page[1:]
		}
	}
	return all
}

// counts checks how many items the commands count that print text, and that status, probe and ls
// have the same items.
func (f *faces) counts(all []attention.Item, teams map[string]int) {
	f.t.Helper()
	text := f.cadre("attention").out
	for name, n := range teams {
		things := fmt.Sprintf("%d things wait", n)
		if n == 1 {
			things = "1 thing waits"
		}
		if !strings.Contains(text, name+": "+things) {
			f.t.Errorf("attention does not say that %s in team %s:\n%s", things, name, text)
		}
		if name == "damaged" { // it has no state to show
			continue
		}
		var want string
		for _, i := range all {
			if i.Team == name {
				want += string(i.Kind) + " "
			}
		}
		if got := kinds(f.items(name)); got != strings.TrimSpace(want) {
			f.t.Errorf("status of team %s has the items %s, not %s", name, got, want)
		}
	}
	if n := len(regexp.MustCompile(`(?m)^! `).FindAllString(text, -1)); n != len(all) {
		f.t.Errorf("attention prints %d items, not %d:\n%s", n, len(all), text)
	}
}

// metrics checks how many items wait, by kind. The server notices within seconds that a process
// began or ended.
func (f *faces) metrics(want map[string]int) {
	f.t.Helper()
	series := regexp.MustCompile(`(?m)^cadre_attention\{kind="(\w+)"\} (\d+)$`)
	for began := time.Now(); ; pause(began) {
		got := map[string]int{}
		for _, m := range series.FindAllStringSubmatch(f.scrape(), -1) {
			if n, _ := strconv.Atoi(m[2]); n > 0 {
				got[m[1]] = n
			}
		}
		if maps.Equal(got, want) {
			return
		}
		if time.Since(began) > patience {
			f.t.Errorf("the metrics have %v, not %v", got, want)
			return
		}
	}
}

// scrape returns the metrics, as Prometheus gets them.
func (f *faces) scrape() string {
	f.t.Helper()
	r, err := http.NewRequestWithContext(f.t.Context(), "GET", "http://"+f.address+"/metrics", nil)
	if err != nil {
		f.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+f.adminToken())
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		f.t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		f.t.Fatalf("%s: %v", answer.Status, err)
	}
	return string(text)
}

// screens checks the lines for a screen reader, and the screen in a terminal.
func (f *faces) screens(all []attention.Item) {
	f.t.Helper()
	var want, got []string
	for _, i := range f.waiting() {
		want = append(want, i.Team+": "+i.Command)
	}
	p := f.start("watch", "--screen-reader")
	p.awaits("Changes follow as they come.")
	p.kill()
	for line := range strings.Lines(p.said()) {
		if rest, is := strings.CutPrefix(line, "needs you, "); is {
			name, _, _ := strings.Cut(rest, ":")
			_, command, _ := strings.Cut(strings.TrimSpace(rest), " Type: ")
			got = append(got, name+": "+command)
		}
	}
	slices.Sort(want) // the screen sorts the items of all teams
	slices.Sort(got)
	f.same("the screen for a screen reader", want, got)
	s := f.terminalOf(160, 120, cadre, "watch")
	s.shows("Finished")
	s.keys("a")
	if len(all) == 0 {
		s.shows("Nothing waits for you.")
		return
	}
	s.shows(fmt.Sprintf("! needs you %d", len(all)))
	for _, i := range all {
		s.shows(firstWords(i.Text))
	}
	s.keys("q")
	s.ended()
}

// firstWords returns the beginning of a text, which fits into a line of the screen.
func firstWords(text string) string { return text[:min(len(text), 24)] }

// notified checks that there was one notification of each item, but those that the person caused.
func (f *faces) notified(all []attention.Item) {
	f.t.Helper()
	var want []shown
	for _, i := range all {
		if i.Kind != team.ItemHeld {
			want = append(want, shownAs(i.Team, i.Key()))
		}
	}
	slices.Sort(want)
	var got []shown
	for began := time.Now(); ; pause(began) {
		got = nil
		for _, n := range f.posted.list() {
			got = append(got, shownAs(n.Team, n.key()))
		}
		slices.Sort(got)
		if slices.Equal(got, want) {
			return
		}
		if time.Since(began) > patience {
			f.same("the webhook", want, got)
			return
		}
	}
}
