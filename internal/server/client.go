package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"cadre/internal/engine"
	"cadre/internal/inspect/attention"
	"cadre/internal/layout"
	"cadre/internal/server/api"
	"cadre/internal/server/supervisor"
	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/filelock"
	"cadre/internal/sys/proc"
	"cadre/internal/sys/regularfile"
	"cadre/internal/sys/sleep"
	"cadre/internal/sys/unixsocket"
	"cadre/internal/team"
)

// Keeping is a team that a server keeps running.
type Keeping = supervisor.Team

// askTime bounds a request of a command to the server.
const askTime = 10 * time.Second

// Socket returns the path of the socket of a home's server.
func Socket(h layout.Home) string { return filepath.Join(Folder(h), socketFile) }

// Running reports whether a home has a server. It costs one system call if it never had one.
func Running(h layout.Home) bool { return filelock.Held(filepath.Join(Folder(h), lockFile)) }

// AwaitEnd waits until the home has no server.
func AwaitEnd(ctx context.Context, h layout.Home) error {
	for Running(h) {
		if err := sleep.For(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
	return nil
}

// ask sends a request to the home's server, and reads its answer.
func ask(ctx context.Context, h layout.Home, method, path string, answer any) error {
	return send(ctx, h, method, path, nil, answer)
}

// send is ask with a body; nil for none.
func send(ctx context.Context, h layout.Home, method, path string, body, answer any) error {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return unixsocket.Dial(ctx, Socket(h))
	}}
	defer transport.CloseIdleConnections()
	var of io.Reader
	if body != nil {
		data, err := json.Marshal(body)
		if err != nil {
			return err
		}
		of = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(ctx, method, "http://cadre"+path, of)
	if err != nil {
		return err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	is, err := (&http.Client{Transport: transport}).Do(r)
	if err != nil {
		return fmt.Errorf("ask the server: %w", err)
	}
	defer is.Body.Close()
	text, err := io.ReadAll(io.LimitReader(is.Body, api.MaxBody))
	if err != nil {
		return fmt.Errorf("read the server's answer: %w", err)
	}
	if is.StatusCode >= 400 {
		var p api.Problem
		if err := json.Unmarshal(text, &p); err != nil || p.Detail == "" {
			return fmt.Errorf("the server answers %s", is.Status)
		}
		return team.Refuse(team.Code(p.Code), "%s", p.Detail).With(p.Hints...)
	}
	if answer == nil {
		return nil
	}
	return json.Unmarshal(text, answer)
}

// Teams returns the teams that the home's server keeps running.
func Teams(ctx context.Context, h layout.Home) (all []Keeping, err error) {
	return all, ask(ctx, h, "GET", "/v1/server/teams", &all)
}

// Keep asks the home's server to keep the team running. It returns false if no server runs.
func Keep(ctx context.Context, h layout.Home, id string) (bool, error) {
	if !Running(h) {
		return false, nil
	}
	return true, ask(ctx, h, "PUT", "/v1/server/teams/"+id, nil)
}

// Room asks the home's server, if there is one, to reserve room for a teammate that is about to
// join the team.
func Room(ctx context.Context, h layout.Home, id, member string) error {
	if !Running(h) {
		return nil
	}
	return ask(ctx, h, "PUT", "/v1/teams/"+id+"/rooms/"+url.PathEscape(member), nil)
}

// GiveBack ends the reservation that [Room] made, because the teammate does not join.
func GiveBack(ctx context.Context, h layout.Home, id, member string) error {
	if !Running(h) {
		return nil
	}
	return ask(ctx, h, "DELETE", "/v1/teams/"+id+"/rooms/"+url.PathEscape(member), nil)
}

// Add gives the team to the home's server, which resumes it.
func Add(ctx context.Context, h layout.Home, id string) error {
	return ask(ctx, h, "POST", "/v1/teams/"+id+"/resume", nil)
}

// Rest notes that a person paused the team with that id: the home's server, or the next one, does
// not resume it by itself. A running server also pauses it, if it has resumed it meanwhile.
func Rest(ctx context.Context, h layout.Home, id string) error {
	lock, err := filelock.New(filepath.Join(Folder(h), lockFile))
	if errors.Is(err, filelock.ErrHeld) {
		return ask(ctx, h, "POST", "/v1/teams/"+id+"/pause", nil)
	}
	if errors.Is(err, fs.ErrNotExist) { // there never was a server
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Unlock() // until then no server starts, and reads the list
	s, err := supervisor.Open(supervisor.Options{File: filepath.Join(Folder(h), teamsFile)})
	if err != nil {
		return err
	}
	return s.Rest(id)
}

// Idle returns the teams of the home that can be resumed, that no process runs and that nobody
// paused, and then those that were paused. Teams in teams run with those, and are left out.
func Idle(ctx context.Context, e *engine.Engine) (idle, paused []team.Team, err error) {
	follower := e.Attention("")
	defer follower.Close()
	found, err := follower.Teams(ctx)
	for _, f := range found {
		switch {
		case f.Team.ID == "" || f.Team.Ended() || f.Overview.Hosted || f.Overview.Led || !resumable(f):
		case f.Team.Parent.Team != "" && e.Home.Has(f.Team.Parent.Team) != "":
		case f.Rests:
			paused = append(paused, f.Team)
		default:
			idle = append(idle, f.Team)
		}
	}
	return idle, paused, err
}

// resumable reports whether a team that no process runs has sessions that a process could run.
func resumable(f attention.Found) bool {
	spent := f.Overview.Exhausted != "" || f.Team.BudgetSpent(engine.Now()) != ""
	return errors.Join(f.Team.CheckOurs(), f.Team.CheckHere()) == nil && !spent &&
		(f.Overview.Dormant || f.Overview.Sessions > 0)
}

// ErrNoPage says that the home's server does not listen on TCP, so that no browser reaches it.
var ErrNoPage = errors.New("the server of this home does not listen for browsers")

// Login is an address that logs a browser in.
type Login struct {
	Address   string    `json:"address"`   // of the board, with a one-time code
	ExpiresAt team.Time `json:"expiresAt"` // until when the code can be used
}

// LogIn asks the home's server for a code, and returns the address with it: below at, or where the
// server listens if that is "". The browser gets the role of the token of that name; "" for the
// role admin. The page shows the team with the id shown; "" for all of them.
func LogIn(ctx context.Context, h layout.Home, at, token, shown string) (is Login, err error) {
	spec := api.CodeSpec{Token: token, Address: at}
	if at == "" {
		if at, err = page(h); err != nil {
			return is, err
		}
	}
	var code api.LoginCode
	if err := send(ctx, h, "POST", "/v1/login-codes", spec, &code); err != nil {
		return is, err
	}
	is = Login{at + "/login?code=" + url.QueryEscape(code.Code), code.Expires}
	if shown != "" {
		is.Address += "#team=" + url.QueryEscape(shown)
	}
	return is, nil
}

// page returns the address of the board of the home's server, such as http://127.0.0.1:7433.
func page(h layout.Home) (string, error) {
	text, err := regularfile.Read(filepath.Join(Folder(h), pageFile), 1<<10)
	if errors.Is(err, os.ErrNotExist) {
		return "", ErrNoPage
	}
	return strings.TrimSpace(string(text)), err
}

// Start starts a server of the home in the background by that command line, and waits until it
// answers. It returns at once if one is running. The server writes what it says to its log.
func Start(ctx context.Context, h layout.Home, command, env []string) error {
	if Running(h) {
		return awaitAnswer(ctx, h)
	}
	if err := os.MkdirAll(Folder(h), 0o700); err != nil {
		return err
	}
	path := filepath.Join(Folder(h), "server.log")
	log, err := regularfile.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	ended, err := proc.DetachWatched(h.Running(), command, env, log)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	over := make(chan error, 1)
	go func() { over <- awaitAnswer(ctx, h) }()
	select {
	case err = <-over:
	case <-ended:
		if Running(h) { // another one was faster
			return <-over
		}
		cancel()
		<-over
		err = team.Refuse(team.NotReady, "the server ended at once")
	}
	if err != nil {
		return fmt.Errorf("%w; see %s", err, path)
	}
	return nil
}

// startTime bounds the start of a server.
const startTime = 15 * time.Second

// awaitAnswer waits until the home's server answers.
func awaitAnswer(ctx context.Context, h layout.Home) error {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		err := ask(ctx, h, "GET", "/v1/health", nil)
		if err == nil || ctx.Err() != nil {
			return err
		}
		if err := sleep.For(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// Browse opens the address in the user's browser. Others on this machine can read the arguments of
// a process, so the browser is given a file, which only the user can read and which leads on to the
// address. Browse does not wait for the browser.
func Browse(h layout.Home, address string) error {
	path := filepath.Join(Folder(h), "open.html")
	text := `<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">` +
		`<meta http-equiv="refresh" content="0; url=` + html.EscapeString(address) + `"><title>cadre</title>`
	if err := atomicfile.Write(path, []byte(text)); err != nil {
		return err
	}
	opener := "xdg-open"
	if runtime.GOOS == "darwin" {
		opener = "open"
	}
	silent, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer silent.Close()
	return proc.Detach([]string{opener, path}, os.Environ(), silent)
}
