package websocket

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha1"
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
)

// Limits of the head of a request or response: its number of lines, and the length of each.
const (
	maxLines   = 100
	bufferSize = 16 << 10
)

// head is the head of an HTTP message: its first line, and its fields by lower-case name.
type head struct {
	line   string
	fields map[string]string
}

var errHead = errors.New("not the head of an HTTP message")

// readHead reads a head. Repeated fields are joined into a list, as HTTP specifies.
func readHead(in *bufio.Reader) (h head, err error) {
	h.fields = map[string]string{}
	for n := range maxLines {
		raw, err := in.ReadSlice('\n')
		if err != nil {
			return h, unexpected(err)
		}
		line := strings.TrimSuffix(strings.TrimSuffix(string(raw), "\n"), "\r")
		if n == 0 {
			h.line = line
			continue
		}
		if line == "" {
			return h, nil
		}
		name, value, ok := strings.Cut(line, ":")
		if !ok || name == "" || strings.ContainsAny(name, " \t") {
			return h, errHead
		}
		name, value = strings.ToLower(name), strings.Trim(value, " \t")
		if before, there := h.fields[name]; there {
			value = before + ", " + value
		}
		h.fields[name] = value
	}
	return h, errHead
}

// has reports whether the field is a list that contains the word, ignoring case.
func (h head) has(field, word string) bool {
	for one := range strings.SplitSeq(h.fields[field], ",") {
		if strings.EqualFold(strings.TrimSpace(one), word) {
			return true
		}
	}
	return false
}

// accepts returns the value of Sec-WebSocket-Accept for a client's key. It proves that a WebSocket
// server read the key.
func accepts(key string) string {
	sum := sha1.Sum([]byte(key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"))
	return base64.StdEncoding.EncodeToString(sum[:])
}

// Dial performs a client's handshake over c. The returned connection owns c; on an error c is
// closed.
func Dial(ctx context.Context, c net.Conn, host, path string) (conn *Conn, err error) {
	defer func() {
		if err != nil {
			c.Close()
			err = fmt.Errorf("websocket: %w", errors.Join(ctx.Err(), err))
		}
	}()
	defer context.AfterFunc(ctx, func() { c.Close() })()
	var random [16]byte
	rand.Read(random[:])
	key := base64.StdEncoding.EncodeToString(random[:])
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: %s\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
		"Sec-WebSocket-Key: %s\r\nSec-WebSocket-Version: 13\r\n\r\n", path, host, key); err != nil {
		return nil, err
	}
	in := bufio.NewReaderSize(c, bufferSize)
	h, err := readHead(in)
	if err != nil {
		return nil, err
	}
	switch {
	case !strings.HasPrefix(h.line, "HTTP/1.1 101 "):
		return nil, fmt.Errorf("the server answered %.100q", h.line)
	case !h.has("upgrade", "websocket"), !h.has("connection", "upgrade"),
		h.fields["sec-websocket-accept"] != accepts(key):
		return nil, errors.New("the peer is not a WebSocket server")
	case h.fields["sec-websocket-extensions"] != "", h.fields["sec-websocket-protocol"] != "":
		return nil, errors.New("the server uses an extension or a subprotocol that was not requested")
	}
	return newConn(c, in, true), nil
}

// Request is a client's request. It is refused or accepted once.
type Request struct {
	Path string // without the query
	head head
	conn net.Conn
	in   *bufio.Reader
}

// ReadRequest reads a client's request. The caller owns c until the request is accepted. A deadline
// on c limits the read.
func ReadRequest(c net.Conn) (*Request, error) {
	r := &Request{conn: c, in: bufio.NewReaderSize(c, bufferSize)}
	var err error
	if r.head, err = readHead(r.in); err != nil {
		return nil, err
	}
	method, rest, _ := strings.Cut(r.head.line, " ")
	target, version, _ := strings.Cut(rest, " ")
	if method != "GET" || version != "HTTP/1.1" || !strings.HasPrefix(target, "/") {
		return nil, errHead
	}
	r.Path, _, _ = strings.Cut(target, "?")
	return r, nil
}

// Header returns a field of the request, or "" if it is missing.
func (r *Request) Header(name string) string { return r.head.fields[strings.ToLower(name)] }

// Refuse answers with a status such as "404 Not Found", additional fields, each with its line
// break, and the reason.
func (r *Request) Refuse(status, fields, reason string) error {
	_, err := fmt.Fprintf(r.conn, "HTTP/1.1 %s\r\n%sContent-Type: text/plain; charset=utf-8\r\n"+
		"Content-Length: %d\r\nConnection: close\r\n\r\n%s\n", status, fields, len(reason)+1, reason)
	return err
}

// Accept answers the handshake. It refuses a request that is not a WebSocket handshake, and returns
// the reason as an error. It also refuses a web page of another origin: the browser would act for a
// page with the rights of the user.
func (r *Request) Accept() (*Conn, error) {
	key, err := base64.StdEncoding.DecodeString(r.Header("Sec-WebSocket-Key"))
	switch {
	case !r.head.has("upgrade", "websocket"), !r.head.has("connection", "upgrade"):
		return nil, r.refused("426 Upgrade Required", "Connection: Upgrade\r\nUpgrade: websocket\r\n",
			"this is a WebSocket server")
	case r.Header("Sec-WebSocket-Version") != "13":
		return nil, r.refused("426 Upgrade Required", "Sec-WebSocket-Version: 13\r\n", "the version must be 13")
	case err != nil || len(key) != 16:
		return nil, r.refused("400 Bad Request", "", "the key is not 16 bytes in base64")
	case !r.sameOrigin():
		return nil, r.refused("403 Forbidden", "", "a web page of another origin must not connect")
	}
	if _, err := fmt.Fprintf(r.conn, "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: "+
		"Upgrade\r\nSec-WebSocket-Accept: %s\r\n\r\n", accepts(r.Header("Sec-WebSocket-Key"))); err != nil {
		return nil, err
	}
	return newConn(r.conn, r.in, false), nil
}

func (r *Request) refused(status, fields, reason string) error {
	return errors.Join(errors.New(reason), r.Refuse(status, fields, reason))
}

// sameOrigin reports whether the request comes from a page of this server, or not from a page at
// all.
func (r *Request) sameOrigin() bool {
	origin := r.Header("Origin")
	if origin == "" {
		return true
	}
	from, err := url.Parse(origin)
	return err == nil && strings.EqualFold(from.Host, r.Header("Host"))
}
