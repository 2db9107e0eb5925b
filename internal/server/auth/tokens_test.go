package auth

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"cadre/internal/team"
)

// TestTokens checks that tokens are created, found, listed and removed.
func TestTokens(t *testing.T) {
	l := open(t)
	if all, err := l.tokens.List(); err != nil || len(all) != 0 {
		t.Fatalf("before the first: %v, %v", all, err)
	}
	phone, board := l.create("phone", Answer), l.create("board", Observe)
	if raw, err := base64.RawURLEncoding.DecodeString(phone); err != nil || len(raw) != 32 || phone == board {
		t.Errorf("the value %q has %d bytes: %v", phone, len(raw), err)
	}
	for path, mode := range map[string]os.FileMode{l.tokens.Dir: 0o700, filepath.Join(l.tokens.Dir, "phone"): 0o600} {
		if is, err := os.Stat(path); err != nil || is.Mode().Perm() != mode {
			t.Errorf("%s has the mode %v: %v", path, is.Mode(), err)
		}
	}
	if _, err := l.tokens.Create("phone", Admin); team.CodeOf(err) != team.Taken {
		t.Errorf("a second phone: %v", err)
	}
	if is, err := l.tokens.Ensure("phone", Admin); err != nil || is.Role != "answer" {
		t.Errorf("the phone keeps its role: %v, %v", is, err)
	}
	for _, name := range []string{"", "../x", "a/b", ".hidden", "@user", strings.Repeat("x", 100), "a b", "a\n"} {
		if _, err := l.tokens.Create(name, Observe); team.CodeOf(err) != team.Invalid {
			t.Errorf("create %q: %v", name, err)
		}
		if err := l.tokens.Remove(name); team.CodeOf(err) != team.NotFound {
			t.Errorf("remove %q: %v", name, err)
		}
		if _, err := l.tokens.Value(name); team.CodeOf(err) != team.NotFound {
			t.Errorf("value of %q: %v", name, err)
		}
	}
	all, err := l.tokens.List()
	if err != nil || len(all) != 2 || all[0].Name != "board" ||
		all[1] != (Token{"phone", "answer", filepath.Join(l.tokens.Dir, "phone")}) {
		t.Errorf("the list is %v: %v", all, err)
	}
	for value, want := range map[string]string{phone: "phone", board: "board", "": "", phone[:42]: "", phone + "A": "",
		strings.ToUpper(phone): "", "answer " + phone: ""} {
		if is, ok := l.tokens.find(value); ok != (want != "") || is.name != want {
			t.Errorf("%q is found as %q", value, is.name)
		}
	}
	if err := l.tokens.Remove("phone"); err != nil {
		t.Fatal(err)
	}
	if is, ok := l.tokens.find(phone); ok {
		t.Errorf("a removed token is found as %q", is.name)
	}
	if role := l.tokens.Role("phone"); role != 0 {
		t.Errorf("a removed token has the role %s", role)
	}
	if err := l.tokens.Remove("phone"); team.CodeOf(err) != team.NotFound {
		t.Errorf("remove it again: %v", err)
	}
}

// TestUnsafeTokens checks that a token is not used if others may have read or written its file or
// folder, and that this is said once.
func TestUnsafeTokens(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(dir, file string) error
	}{
		{"readable by the group", func(_, file string) error { return os.Chmod(file, 0o640) }},
		{"readable by all", func(_, file string) error { return os.Chmod(file, 0o604) }},
		{"writable by the group", func(_, file string) error { return os.Chmod(file, 0o620) }},
		{"of another user", func(_, file string) error { return os.Chown(file, 65534, 65534) }},
		{"a link", func(dir, file string) error {
			elsewhere := filepath.Join(filepath.Dir(dir), "elsewhere")
			if err := os.Rename(file, elsewhere); err != nil {
				return err
			}
			return os.Symlink(elsewhere, file)
		}},
		{"a pipe", func(_, file string) error { os.Remove(file); return syscall.Mkfifo(file, 0o600) }},
		{"a folder", func(_, file string) error { os.Remove(file); return os.Mkdir(file, 0o700) }},
		{"empty", func(_, file string) error { return os.Truncate(file, 0) }},
		{"cut off", func(_, file string) error { return os.Truncate(file, 20) }},
		{"too long", func(_, file string) error {
			f, err := os.OpenFile(file, os.O_APPEND|os.O_WRONLY, 0)
			if err != nil {
				return err
			}
			defer f.Close()
			_, err = f.WriteString(strings.Repeat("\n", 1000))
			return err
		}},
		{"with an unknown role", func(_, file string) error {
			return os.WriteFile(file, []byte("root "+strings.Repeat("A", 43)+"\n"), 0o600)
		}},
		{"in a folder that others may read", func(dir, _ string) error { return os.Chmod(dir, 0o755) }},
		{"in a folder of another user", func(dir, _ string) error { return os.Chown(dir, 65534, 65534) }},
		{"in a folder that is a link", func(dir, _ string) error {
			if err := os.Rename(dir, dir+"2"); err != nil {
				return err
			}
			return os.Symlink(dir+"2", dir)
		}},
		{"in a folder that is a file", func(dir, _ string) error {
			os.RemoveAll(dir)
			return os.WriteFile(dir, nil, 0o600)
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			if strings.Contains(test.name, "another user") && os.Getuid() != 0 {
				t.Skip("only root can give a file away")
			}
			l := open(t)
			value := l.create("phone", Admin)
			code, err := l.codes.Create("phone", now())
			if err != nil {
				t.Fatal(err)
			}
			cookie, err := l.codes.Redeem(code, false, now())
			if err != nil {
				t.Fatal(err)
			}
			if err := test.change(l.tokens.Dir, filepath.Join(l.tokens.Dir, "phone")); err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if is, ok := l.tokens.find(value); ok {
					t.Errorf("it is used with the role %s", is.role)
				}
			}
			if said := next(t, l.said); !strings.Contains(said, "phone is not used: ") &&
				!strings.Contains(said, "no token is used: ") {
				t.Errorf("it is said %q", said)
			}
			if len(l.said) > 0 {
				t.Errorf("it is said again: %q", <-l.said)
			}
			if role := l.tokens.Role("phone"); role != 0 {
				t.Errorf("it has the role %s", role)
			}
			if is, ok := l.codes.session(cookie.Value, now()); ok {
				t.Errorf("its cookie has the role %s", is.role)
			}
			if _, err := l.tokens.Ensure("phone", Admin); err == nil {
				t.Error("the server would start with it")
			}
			if _, err := l.tokens.Value("phone"); err == nil && !strings.Contains(test.name, "in a folder") {
				t.Error("its value is shown")
			}
		})
	}
}

// TestReplacedToken checks that what was written to the file after the start counts.
func TestReplacedToken(t *testing.T) {
	l := open(t)
	old := l.create("phone", Admin)
	next := strings.Repeat("A", 43)
	if err := os.WriteFile(filepath.Join(l.tokens.Dir, "phone"), []byte("observe "+next+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if is, ok := l.tokens.find(old); ok {
		t.Errorf("the old token is found with the role %s", is.role)
	}
	if is, ok := l.tokens.find(next); !ok || is.role != Observe {
		t.Errorf("the new token is found: %t, with the role %s", ok, is.role)
	}
}

// TestTokenLimit checks that the number of tokens is bounded.
func TestTokenLimit(t *testing.T) {
	l := open(t)
	for i := range maxTokens {
		l.create("t"+string(rune('A'+i/26))+string(rune('a'+i%26)), Observe)
	}
	if _, err := l.tokens.Create("more", Observe); team.CodeOf(err) != team.TooLarge {
		t.Errorf("got %v", err)
	}
}

// TestRoles checks the order and the names of the roles.
func TestRoles(t *testing.T) {
	if Observe >= Answer || Answer >= Steer || Steer >= Admin {
		t.Error("the roles are not in order")
	}
	for i, name := range Roles() {
		if role, err := ParseRole(name); err != nil || role != Role(i+1) || role.String() != name {
			t.Errorf("%s is %v: %v", name, role, err)
		}
	}
	for _, name := range []string{"", "none", "Admin", "admin ", "root"} {
		if role, err := ParseRole(name); err == nil {
			t.Errorf("%q is %v", name, role)
		}
	}
}

// FuzzToken checks that a file gives a token only if it has a role and 32 bytes, and is otherwise
// refused without its content.
func FuzzToken(f *testing.F) {
	value := base64.RawURLEncoding.EncodeToString(make([]byte, 32))
	for _, text := range []string{"admin " + value + "\n", "observe " + value, "", "\n", " ", "admin",
		"admin  " + value, "none " + value, "admin " + value + "\n\n", "admin " + value + "=",
		"steer " + value[:42] + "\n", "admin " + value[:20] + "\n" + value[20:]} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		role, value, err := parseToken(data)
		if err != nil {
			if role != 0 || value != "" {
				t.Errorf("%q is refused, and gives %v %q", data, role, value)
			}
			if len(data) > 20 && strings.Contains(err.Error(), string(data)) {
				t.Errorf("the refusal of %q has its content", data)
			}
			return
		}
		if again := role.String() + " " + value; again != strings.TrimSuffix(string(data), "\n") {
			t.Errorf("%q is read as %q", data, again)
		}
		if raw, err := base64.RawURLEncoding.DecodeString(value); role < Observe || role > Admin || err != nil ||
			len(raw) != 32 || len(value) != 43 {
			t.Errorf("%q is a token with %d bytes and the role %d: %v", data, len(raw), role, err)
		}
	})
}
