package auth

import (
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"cadre/internal/team"
)

func now() time.Time { return time.Now() }

// login returns the cookie of a browser that logged in with the token.
func (l *lab) login(token string) *http.Cookie {
	l.t.Helper()
	code, err := l.codes.Create(token, now())
	if err != nil {
		l.t.Fatal(err)
	}
	cookie, err := l.codes.Redeem(code, false, now())
	if err != nil {
		l.t.Fatal(err)
	}
	return cookie
}

// TestCodes checks that a code works once and for a minute, and a cookie for a month.
func TestCodes(t *testing.T) {
	l := &lab{t: t, tokens: Tokens{Dir: t.TempDir() + "/tokens"}}
	l.codes = &Codes{Tokens: l.tokens}
	l.create("phone", Answer)
	synctest.Test(t, func(t *testing.T) {
		code, err := l.codes.Create("phone", now())
		if err != nil {
			t.Fatal(err)
		}
		for _, wrong := range []string{"", code[1:], code + "A"} {
			if _, err := l.codes.Redeem(wrong, false, now()); team.CodeOf(err) != team.Denied {
				t.Errorf("%q is redeemed: %v", wrong, err)
			}
		}
		time.Sleep(CodeTime - 1)
		cookie, err := l.codes.Redeem(code, true, now())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.codes.Redeem(code, true, now()); team.CodeOf(err) != team.Denied {
			t.Errorf("it is redeemed again: %v", err)
		}
		if !cookie.HttpOnly || cookie.SameSite != http.SameSiteStrictMode || !cookie.Secure || cookie.Path != "/" ||
			cookie.Domain != "" || cookie.Name != Cookie || len(cookie.Value) < 43 {
			t.Errorf("the cookie is %v", cookie)
		}
		late, err := l.codes.Create("phone", now())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(CodeTime)
		if _, err := l.codes.Redeem(late, true, now()); team.CodeOf(err) != team.Denied {
			t.Errorf("it is redeemed after a minute: %v", err)
		}

		if is, ok := l.codes.session(cookie.Value, now()); !ok || is.name != "phone" || is.role != Answer {
			t.Errorf("the cookie is %v, %t", is, ok)
		}
		if is, ok := l.codes.session(cookie.Value[1:], now()); ok {
			t.Errorf("a part of the cookie is %v", is)
		}
		time.Sleep(sessionTime - CodeTime - 1)
		if _, ok := l.codes.session(cookie.Value, now()); !ok {
			t.Error("the cookie ends too early")
		}
		time.Sleep(1)
		if _, ok := l.codes.session(cookie.Value, now()); ok {
			t.Error("the cookie does not end")
		}
	})
	if _, err := l.codes.Create("nobody", now()); team.CodeOf(err) != team.NotFound {
		t.Errorf("a code for no token: %v", err)
	}
}

// TestRemovedToken checks that the codes and cookies of a token end with it, and that a new token
// of its name does not bring them back.
func TestRemovedToken(t *testing.T) {
	l := open(t)
	l.create("phone", Observe)
	cookie := l.login("phone")
	code, err := l.codes.Create("phone", now())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.tokens.Remove("phone"); err != nil {
		t.Fatal(err)
	}
	if _, ok := l.codes.session(cookie.Value, now()); ok {
		t.Error("its cookie works")
	}
	l.create("phone", Admin)
	if is, ok := l.codes.session(cookie.Value, now()); ok {
		t.Errorf("its cookie has the role %s of the next token", is.role)
	}
	if late, err := l.codes.Redeem(code, false, now()); err == nil {
		if is, ok := l.codes.session(late.Value, now()); ok {
			t.Errorf("its code has the role %s of the next token", is.role)
		}
	}
}

// TestLoginLimits checks that one token cannot use up the logins of another.
func TestLoginLimits(t *testing.T) {
	l := open(t)
	l.create("phone", Observe)
	l.create("board", Admin)
	kept := l.login("board")
	code, err := l.codes.Create("board", now())
	if err != nil {
		t.Fatal(err)
	}
	first := l.login("phone")
	for range mostSessions {
		l.login("phone")
	}
	for range 2 * mostCodes {
		if _, err := l.codes.Create("phone", now()); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(l.codes.sessions); n != mostSessions+1 {
		t.Errorf("%d browsers are logged in", n)
	}
	if n := len(l.codes.codes); n != mostCodes+1 {
		t.Errorf("%d codes wait", n)
	}
	if _, ok := l.codes.session(first.Value, now()); ok {
		t.Error("the oldest login of the phone did not make room")
	}
	if _, ok := l.codes.session(kept.Value, now()); !ok {
		t.Error("the board is logged out")
	}
	if _, err := l.codes.Redeem(code, false, now()); err != nil {
		t.Errorf("the board cannot log in: %v", err)
	}
}
