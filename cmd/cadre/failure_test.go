package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"cadre/internal/journal"
	"cadre/internal/team"
)

// TestFailures checks that each kind of error has its code, its status and what to type, at any
// depth of wrapping.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{usage{errors.New("no such flag")}, `{"code":"usage","message":"no such flag","status":2}`},
		{fmt.Errorf("read: %w", journal.ErrNewer), `{"code":"damaged","message":"read: ` + journal.ErrNewer.Error() +
			`","status":2}`},
		{os.ErrNotExist, `{"code":"failed","message":"file does not exist","status":2}`},
		{errors.New("no space"), `{"code":"failed","message":"no space","status":1}`},
		{fmt.Errorf("it is so: %w", team.Refuse(team.NotReady, "task 1 waits").With(team.Hint{Action: team.ActClaimTask,
			Team: "demo", Task: "1", Member: "ann"})), `{"code":"not_ready","message":"it is so: task 1 waits","status":1,` +
			`"hints":[{"action":"claim_task","team":"demo","member":"ann","task":"1","purpose":"claim it",` +
			`"command":"cadre task claim demo 1 --as ann"}]}`},
	} {
		if got, err := json.Marshal(failureOf(c.err)); err != nil || string(got) != c.want {
			t.Errorf("got\n%s (%v), want\n%s", got, err, c.want)
		}
	}
	var b strings.Builder
	for _, code := range codes { // every refusal has its own code
		fmt.Fprint(&b, failureOf(team.Refuse(code, "no")).Code, " ")
		if failureOf(team.Refuse(code, "no")).Code != string(code) {
			t.Errorf("%s has code %s", code, b.String())
		}
	}
}
