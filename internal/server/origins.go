package server

import (
	"cmp"
	"net"
	"net/url"
	"slices"
	"strings"

	"cadre/internal/team"
)

// usualPorts are the ports that browsers leave out.
var usualPorts = map[string]string{"http": "80", "https": "443"}

// scheme returns the scheme of the TCP listener.
func (s *Server) scheme() string {
	if s.Certificate != "" {
		return "https"
	}
	return "http"
}

// Board returns the address at which a browser of this machine finds the board; "" without a TCP
// listener.
func (s *Server) Board() string {
	switch {
	case s.address == "":
		return ""
	case len(s.named) > 0 && s.Certificate != "": // the certificate is for that name
		return s.named[0]
	}
	return s.scheme() + "://" + s.address
}

// origins returns the origins of the pages of the TCP listener, those first that the person named.
// The address of all interfaces, such as 0.0.0.0, is nobody's name.
func (s *Server) origins() []string {
	_, port, err := net.SplitHostPort(s.address)
	if err != nil {
		return nil
	}
	host, _, _ := net.SplitHostPort(s.Listen)
	ip := net.ParseIP(host)
	var own []string
	if host != "" && !ip.IsUnspecified() {
		own = append(own, host)
	}
	if host == "localhost" || ip.IsLoopback() {
		own = append(own, "localhost", "127.0.0.1", "::1")
	}
	all := slices.Clone(s.named)
	for _, name := range own {
		all = append(all, originsOf(&url.URL{Scheme: s.scheme(), Host: net.JoinHostPort(name, port)})...)
	}
	return all
}

// namedOrigins returns the origins that Hosts stand for. A host has one scheme, because a request
// does not show which one the browser used.
func (s *Server) namedOrigins() (all []string, err error) {
	schemes := map[string]string{}
	for _, text := range s.Hosts {
		at, err := s.addressOf(text)
		if err != nil {
			return nil, err
		}
		for _, origin := range originsOf(at) {
			scheme, host, _ := strings.Cut(origin, "://")
			if cmp.Or(schemes[host], scheme) != scheme {
				return nil, team.Refuse(team.Invalid, "%s cannot be reached by http and by https; name it once", host)
			}
			schemes[host] = scheme
			all = append(all, origin)
		}
	}
	return all, nil
}

// addressOf parses an entry of Hosts. An entry without a scheme gets the scheme of the listener.
func (s *Server) addressOf(text string) (*url.URL, error) {
	whole := text
	if !strings.Contains(text, "://") {
		whole = s.scheme() + "://" + text
	}
	at, err := parseAddress(whole)
	if err != nil || at.Scheme+"://"+at.Host != strings.TrimSuffix(whole, "/") {
		return nil, team.Refuse(team.Invalid, "%q is not a host: give HOST:PORT as the browser shows it, or "+
			"https://HOST where a tunnel or a proxy ends TLS", text)
	}
	if at.Scheme == "http" && s.Certificate != "" {
		return nil, team.Refuse(team.Invalid, "the server has a certificate, so no browser reaches it at %s", text)
	}
	return at, nil
}

// parseAddress parses the address of a page.
func parseAddress(text string) (*url.URL, error) {
	at, err := url.Parse(text)
	if err != nil || at.Hostname() == "" || usualPorts[at.Scheme] == "" {
		return nil, team.Refuse(team.Invalid, "%q is not an address; give one as in https://my-tunnel.example", text)
	}
	return at, nil
}

// originsOf returns the origin of an address, first as a browser has it: without the port that is
// usual for the scheme. Other clients may send that port in Host.
func originsOf(at *url.URL) []string {
	origin := at.Scheme + "://" + strings.ToLower(at.Host)
	if short, is := strings.CutSuffix(origin, ":"+usualPorts[at.Scheme]); is {
		return []string{short, origin}
	}
	return []string{origin}
}

// Address returns the origin of an address at which a browser reaches a server.
func Address(text string) (string, error) {
	at, err := parseAddress(text)
	if err != nil {
		return "", err
	}
	return originsOf(at)[0], nil
}
