package auth

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
	"golang.org/x/sys/unix"

	"cadre/internal/layout"
	"cadre/internal/sys/proc"
)

// The words with which the test binary sends a request as another process.
const (
	askMode = "auth-test-ask"
	useMode = "auth-test-use"
)

func TestMain(m *testing.M) {
	var err error
	switch {
	case len(os.Args) == 7 && os.Args[1] == askMode:
		err = ask(os.Args[2], os.Args[3], os.Args[4], os.Args[5], os.Args[6])
	case len(os.Args) == 4 && os.Args[1] == useMode:
		err = use(os.Args[2], os.Args[3])
	default:
		goleak.VerifyTestMain(m)
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// ask sends a request with the token. how says what becomes of the connection. It writes the file
// when that has happened.
func ask(how, network, address, token, done string) error {
	conn, err := net.Dial(network, address)
	if err != nil {
		return err
	}
	request := text("GET /data", address, "Authorization: Bearer "+token)
	if network == "unix" {
		request = text("GET /data", "cadre", "Authorization: Bearer "+token)
	}
	f, err := conn.(interface{ File() (*os.File, error) }).File()
	if err != nil {
		return err
	}
	if how == "passed" || how == "left" { // a child sends it, while its parent is there, or has ended
		child := exec.Command(os.Args[0], useMode, map[string]string{"passed": "0",
			"left": strconv.Itoa(os.Getpid())}[how],
			request)
		child.ExtraFiles = []*os.File{f}
		child.Stderr = os.Stderr
		err := child.Start()
		conn.Close()
		f.Close()
		if err == nil && how == "passed" {
			err = child.Wait()
		}
		return err
	}
	if _, err := io.WriteString(conn, request); err != nil {
		return err
	}
	switch how {
	case "reset":
		conn.(*net.TCPConn).SetLinger(0)
		fallthrough
	case "closed":
		f.Close()
		if err := conn.Close(); err != nil {
			return err
		}
		return os.WriteFile(done, nil, 0o600)
	case "concealed": // it is held by no process while it is on its way
		pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
		if err == nil {
			err = unix.Sendmsg(pair[0], []byte{0}, unix.UnixRights(int(f.Fd())), nil, 0)
		}
		if err != nil {
			return err
		}
		f.Close()
		conn.Close()
		if err := os.WriteFile(done, nil, 0o600); err != nil {
			return err
		}
		_, err = os.Stdin.Read(make([]byte, 1)) // until it is killed
		return err
	}
	defer f.Close()
	_, err = http.ReadResponse(bufio.NewReader(conn), nil)
	return err
}

// use sends the request on the connection that it inherited. If after is a pid, it waits first
// until that process has ended and was reaped: until then the kernel still knows whose it was.
func use(after, request string) error {
	for pid, _ := strconv.Atoi(after); pid > 0 && syscall.Kill(pid, 0) == nil; time.Sleep(time.Millisecond) {
	}
	conn, err := net.FileConn(os.NewFile(3, "connection"))
	if err != nil {
		return err
	}
	if _, err := io.WriteString(conn, request); err != nil {
		return err
	}
	_, err = http.ReadResponse(bufio.NewReader(conn), nil)
	return err
}

// text returns a request.
func text(line, host string, headers ...string) string {
	return line + " HTTP/1.1\r\nHost: " + host + "\r\n" + strings.Join(append(headers, "", ""), "\r\n")
}

// lab is a guard with listeners, a home and tokens.
type lab struct {
	t               testing.TB
	home            layout.Home
	tokens          Tokens
	codes           *Codes
	guard           *Guard
	address, socket string
	answered        chan string   // who each request came from, or why it was refused
	said            chan string   // what was logged
	held            chan struct{} // if there is one, requests over TCP are held up until it is closed
}

// open starts a server with a guard.
func open(t testing.TB) *lab {
	t.Helper()
	return openWith(t, func(*lab) {})
}

// openWith is open with changes that are made before requests come in.
func openWith(t testing.TB, change func(*lab)) *lab {
	t.Helper()
	root := t.TempDir()
	l := &lab{t: t, home: layout.Home{Root: root}, answered: make(chan string, 100), said: make(chan string, 100)}
	l.tokens = Tokens{Dir: filepath.Join(root, "server", "tokens"), Log: Once(func(s string) { l.said <- s })}
	if err := os.Mkdir(filepath.Join(root, "server"), 0o700); err != nil {
		t.Fatal(err)
	}
	l.codes = &Codes{Tokens: l.tokens}
	l.guard = &Guard{Home: l.home, Tokens: l.tokens, Codes: l.codes, Origins: func() []string {
		if l.held != nil {
			<-l.held
		}
		_, port, _ := net.SplitHostPort(l.address)
		return []string{"https://tunnel.test", "https://proxy.test:8443", "http://" + l.address,
			"http://localhost:" + port, "http://[::1]:" + port}
	}, Refuse: func(w http.ResponseWriter, _ *http.Request, status int, err error) {
		w.WriteHeader(status)
		fmt.Fprint(w, err)
		l.answered <- fmt.Sprintf("%d %v", status, err)
	}}
	mux := http.NewServeMux()
	mux.Handle("/", l.guard.Handler(http.HandlerFunc(l.answer)))
	page := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "page") }
	mux.Handle("/page", l.guard.Page(http.HandlerFunc(page)))
	server := &http.Server{Handler: mux, ConnContext: Accepted}
	l.socket = filepath.Join(root, "server", "socket")
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l.address = tcp.Addr().String()
	unixes, err := net.Listen("unix", l.socket)
	if err != nil {
		t.Fatal(err)
	}
	change(l)
	go server.Serve(tcp)
	go server.Serve(unixes)
	t.Cleanup(func() { server.Close() })
	return l
}

// answer says who sends the request. A stream lasts until its context ends.
func (l *lab) answer(w http.ResponseWriter, r *http.Request) {
	p := From(r.Context())
	said := p.Caller.String()
	if p.IsUser() {
		said = strings.TrimSpace(p.Role.String() + " " + p.Token)
		if err := p.Command("spawn", nil); err != nil {
			said += ", a check"
		}
	}
	l.answered <- said
	if r.URL.Path == "/stream" {
		http.NewResponseController(w).Flush()
		<-r.Context().Done()
		l.answered <- context.Cause(r.Context()).Error()
		return
	}
	fmt.Fprintln(w, said)
}

// create makes a token, and returns its value.
func (l *lab) create(name string, role Role) string {
	l.t.Helper()
	if _, err := l.tokens.Create(name, role); err != nil {
		l.t.Fatal(err)
	}
	value, err := l.tokens.Value(name)
	if err != nil {
		l.t.Fatal(err)
	}
	return value
}

// send sends a request as it is, and returns the answer with its body read.
func (l *lab) send(network, request string) (*http.Response, string) {
	l.t.Helper()
	conn, err := net.Dial(network, map[string]string{"tcp": l.address, "unix": l.socket}[network])
	if err != nil {
		l.t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, request); err != nil {
		l.t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil {
		l.t.Fatal(err)
	}
	defer r.Body.Close()
	body, err := io.ReadAll(r.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	return r, string(body)
}

// next returns the next text of a channel.
func next(t testing.TB, from chan string) string {
	t.Helper()
	select {
	case s := <-from:
		return s
	case <-time.After(20 * time.Second):
		t.Fatal("nothing came")
		return ""
	}
}

// hosting makes this process a host of the team demo.
func (l *lab) hosting() *proc.Register {
	l.t.Helper()
	r, err := proc.OpenListed(filepath.Join(l.home.Root, "teams", "demo", "hosts", "h1"),
		proc.Listing{Folder: l.home.Running(), Team: "demo"})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			l.t.Error(err)
		}
	})
	return r
}

// exists waits until there is a file.
func exists(t testing.TB, path string) {
	t.Helper()
	deadline := time.After(20 * time.Second)
	for {
		if _, err := os.Stat(path); err == nil {
			return
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-deadline:
			t.Fatalf("%s does not appear", path)
		}
	}
}
