package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"maps"
	"net/http"
	"sync"
	"time"

	"cadre/internal/team"
)

const (
	// CodeTime is how long a code can be used.
	CodeTime = time.Minute
	// sessionTime is how long a browser stays logged in.
	sessionTime = 30 * 24 * time.Hour
	// mostCodes and mostSessions bound what is kept for a token. The oldest one ends.
	mostCodes    = 20
	mostSessions = 100
)

// Codes are the one-time codes with which browsers log in, and the browsers that have. They are in
// memory: after a restart of the server a browser logs in again. A code and a cookie stand for the
// token that there was when the code was made, and end with it: a new token of that name is another
// one.
type Codes struct {
	Tokens Tokens

	mu       sync.Mutex
	codes    logins
	sessions logins
}

// logins are found by the hash of a code or a cookie, so the time of a search tells nothing.
type logins map[[sha256.Size]byte]login

// login is what a code or a cookie stands for.
type login struct {
	token string            // name of the token whose role it has
	sum   [sha256.Size]byte // hash of the token
	until time.Time
}

// Create returns a code that stands for the token of that name, once, until [CodeTime] has passed.
func (c *Codes) Create(token string, now time.Time) (string, error) {
	known, ok := c.Tokens.named(token)
	if !ok {
		return "", noToken(token)
	}
	code := rand.Text()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.codes.add(code, login{token, known.sum, now.Add(CodeTime)}, mostCodes, now)
	return code, nil
}

// Redeem uses the code, and returns the cookie that it stands for. secure says that the cookie is
// for https. It refuses a code that was used or has expired.
func (c *Codes) Redeem(code string, secure bool, now time.Time) (*http.Cookie, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	key := sha256.Sum256([]byte(code))
	is, ok := c.codes[key]
	delete(c.codes, key)
	if !ok || !now.Before(is.until) {
		return nil, team.Refuse(team.Denied, "the code was used already, or has expired; ask for a new one")
	}
	value := rand.Text() + rand.Text()
	is.until = now.Add(sessionTime)
	c.sessions.add(value, is, mostSessions, now)
	return &http.Cookie{Name: Cookie, Value: value, Path: "/", MaxAge: int(sessionTime.Seconds()), HttpOnly: true,
		Secure: secure, SameSite: http.SameSiteStrictMode}, nil
}

// session returns the token that the cookie stands for.
func (c *Codes) session(value string, now time.Time) (known, bool) {
	c.mu.Lock()
	is, ok := c.sessions[sha256.Sum256([]byte(value))]
	c.mu.Unlock()
	if !ok || !now.Before(is.until) {
		return known{}, false
	}
	token, ok := c.Tokens.named(is.token)
	return token, ok && token.sum == is.sum
}

// add adds a login. The token keeps at most so many: the one that ends first makes room.
func (l *logins) add(secret string, is login, most int, now time.Time) {
	if *l == nil {
		*l = logins{}
	}
	maps.DeleteFunc(*l, func(_ [sha256.Size]byte, other login) bool { return !now.Before(other.until) })
	var oldest [sha256.Size]byte
	var until time.Time
	n := 0
	for key, other := range *l {
		if other.token != is.token {
			continue
		}
		if n++; until.IsZero() || other.until.Before(until) {
			oldest, until = key, other.until
		}
	}
	if n >= most {
		delete(*l, oldest)
	}
	(*l)[sha256.Sum256([]byte(secret))] = is
}
