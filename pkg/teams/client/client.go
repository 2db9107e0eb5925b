package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"cadre/internal/layout"
	"cadre/internal/sys/regularfile"
	"cadre/internal/sys/unixsocket"
	"cadre/pkg/teams"
)

// Options say which server a client speaks with. The zero value is the server of the user's home.
type Options struct {
	// Home is the folder of the home; "" for $CADRE_HOME, or else .cadre in the user's folder. The
	// client finds the socket of its server there.
	Home string
	// Socket is the path of the server's unix socket; "" for that of Home.
	Socket string
	// Address is the address of a server that listens on TCP: 127.0.0.1:7433, or https://host:7433.
	// It needs a token. "" for the unix socket, which needs none.
	Address string
	// Token is the token for Address. TokenFile names a file that has it instead, such as those of
	// cadre serve --token. The file is read again for each request, so that it can be replaced.
	Token, TokenFile string
	// TLS configures the connections to an https address; nil for the usual configuration.
	TLS *tls.Config
	// Patience bounds how long a call whose context has no deadline tries again after the first
	// failure, whether the server cannot be reached or breaks the connection; 0 for 30 seconds. It
	// begins again after an attempt that lasted longer, five times at most. A call whose context
	// has a deadline tries again until then, and a stream until its context ends.
	Patience time.Duration
	// Silence is how long a stream may bring nothing before the client connects again; 0 for two
	// minutes. The server shows on each stream that it is alive, by default every 30 seconds.
	Silence time.Duration
}

// Client speaks with a server. The caller must close it.
type Client struct {
	*connection
	member string // that acts; "" for the user
}

// connection is what the clients of all members share.
type connection struct {
	options Options
	base    string // of the addresses
	http    *http.Client
	done    context.Context
	end     context.CancelCauseFunc
}

// Open returns a client of the server. It connects at the first call.
func Open(o Options) (*Client, error) {
	o.Patience, o.Silence = cmp.Or(o.Patience, 30*time.Second), cmp.Or(o.Silence, 2*time.Minute)
	c := &connection{options: o, base: "http://cadre"} // any host will do on the socket
	transport := &http.Transport{TLSClientConfig: o.TLS, MaxIdleConnsPerHost: 16, IdleConnTimeout: time.Minute,
		TLSHandshakeTimeout: dialTime, DisableCompression: true}
	if o.Address == "" {
		socket, err := o.socket()
		if err != nil {
			return nil, err
		}
		transport.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			ctx, cancel := context.WithTimeout(ctx, dialTime)
			defer cancel()
			return unixsocket.Dial(ctx, socket)
		}
	} else {
		var err error
		if c.base, err = o.address(); err != nil {
			return nil, err
		}
		transport.DialContext = (&net.Dialer{Timeout: dialTime}).DialContext
	}
	c.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // a token is for this server alone
	}}
	c.done, c.end = context.WithCancelCause(context.Background())
	return &Client{connection: c}, nil
}

// dialTime bounds an attempt to connect.
const dialTime = 10 * time.Second

func invalid(format string, args ...any) error {
	return &teams.Error{Code: teams.ErrInvalid, Text: fmt.Sprintf(format, args...)}
}

// socket returns the path of the unix socket.
func (o Options) socket() (string, error) {
	if o.Token != "" || o.TokenFile != "" || o.TLS != nil {
		return "", invalid("a token and TLS are for an Address; the unix socket needs none")
	}
	path := o.Socket
	if path == "" {
		home := o.Home
		if home == "" {
			found, err := layout.Find()
			if err != nil {
				return "", err
			}
			home = found.Root
		}
		path = filepath.Join(home, "server", "socket")
	}
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		return "", &teams.Error{Code: teams.ErrNotReady, Text: fmt.Sprintf(
			"no server has listened on %s; start one first", path)}
	}
	return filepath.Abs(path)
}

// address returns the beginning of the addresses of routes.
func (o Options) address() (string, error) {
	text := o.Address
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || u.RawQuery != "" ||
		strings.Trim(u.Path, "/") != "":
		return "", invalid("%q is not the address of a server, such as 127.0.0.1:7433", o.Address)
	case o.Token == "" && o.TokenFile == "":
		return "", invalid("an address needs a token: set Token or TokenFile")
	case u.Scheme == "http" && !loopback(u.Hostname()):
		return "", invalid("%s is not on this machine, and others could read the token on the way: use https", u.Host)
	}
	return u.Scheme + "://" + u.Host, nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// maxTokenFile bounds the size of a file with a token.
const maxTokenFile = 4 << 10

// authorization returns the header with the token; "" for none.
func (o Options) authorization() (string, error) {
	token := o.Token
	if token == "" && o.TokenFile != "" {
		text, err := regularfile.Read(o.TokenFile, maxTokenFile)
		if err != nil {
			return "", fmt.Errorf("read the token: %w", err)
		}
		words := strings.Fields(string(text)) // a file of the server has the role first
		if len(words) == 0 {
			return "", invalid("%s has no token", o.TokenFile)
		}
		token = words[len(words)-1]
	}
	if token == "" {
		return "", nil
	}
	return "Bearer " + token, nil
}

// As returns a client that acts as a member of the teams that it is used for. The methods say where
// a member acts; all else is done by the user. Both clients share their connections, and are closed
// together.
func (c *Client) As(member string) *Client { return &Client{c.connection, member} }

// Close ends all calls and streams. They return an error with the code [teams.ErrFinished].
func (c *Client) Close() error {
	c.end(&teams.Error{Code: teams.ErrFinished, Text: "the client is closed"})
	c.http.CloseIdleConnections()
	return nil
}

type keyKey struct{}

// WithKey returns a context for one call that changes something: key is its id. The same call with
// the same key happens once, whoever sends it and whenever.
func WithKey(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, keyKey{}, key)
}

// keyOf returns the key of a call, which is a random one by default.
func keyOf(ctx context.Context) string {
	if key, is := ctx.Value(keyKey{}).(string); is && key != "" {
		return key
	}
	return rand.Text()
}
