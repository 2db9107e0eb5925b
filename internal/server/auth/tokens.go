package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"

	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/regularfile"
	"cadre/internal/team"
)

// AdminToken is the name of the token that the user's own browser and clients use.
const AdminToken = "admin"

const (
	// tokenBytes is how many random bytes a token has.
	tokenBytes = 32
	// maxTokens bounds the number of tokens of a home.
	maxTokens = 100
	// maxTokenFile bounds the size of a token file.
	maxTokenFile = 256
)

// Tokens are the tokens of a home: a folder with one file for each, named after the token. The file
// has the role and the token, separated by a space. Files are read at each use, so a removed token
// is refused at once, and so is one whose file or folder others can use.
type Tokens struct {
	Dir string // its folder, with mode 0700
	Log func(string)
}

// known is a token that can be used.
type known struct {
	name string
	role Role
	sum  [sha256.Size]byte // hash of its value
}

// Token is the entry of a list of tokens.
type Token struct {
	Name string `json:"name"` // name of the token
	Role string `json:"role"` // observe, answer, steer or admin
	File string `json:"file"` // path of the file with the token
}

// Create makes a token with a new random value, and returns its entry. The file has the mode 0600.
func (t Tokens) Create(name string, role Role) (Token, error) {
	if !team.ValidName(name) {
		return Token{}, team.Refuse(team.Invalid, "%q cannot name a token: a name has letters and digits, and then "+
			"also - and _, at most %d", name, team.MaxName)
	}
	if err := t.ready(); err != nil {
		return Token{}, err
	}
	all, err := t.List()
	if err != nil {
		return Token{}, err
	}
	if len(all) >= maxTokens {
		return Token{}, team.Refuse(team.TooLarge, "there are %d tokens already; remove one first", len(all))
	}
	secret := make([]byte, tokenBytes)
	rand.Read(secret)
	path := filepath.Join(t.Dir, name)
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY|syscall.O_NOFOLLOW, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return Token{}, team.Refuse(team.Taken, "a token named %s exists already; remove it first, or use another name",
			name)
	}
	if err != nil {
		return Token{}, fmt.Errorf("create the token %s: %w", name, err)
	}
	_, err = fmt.Fprintf(f, "%s %s\n", role, base64.RawURLEncoding.EncodeToString(secret))
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return Token{}, errors.Join(fmt.Errorf("create the token %s: %w", name, err), os.Remove(path))
	}
	return Token{name, role.String(), path}, atomicfile.Folder(t.Dir)
}

// Ensure creates the token if it does not exist.
func (t Tokens) Ensure(name string, role Role) (Token, error) {
	made, err := t.Create(name, role)
	if team.CodeOf(err) != team.Taken {
		return made, err
	}
	has, err := t.read(name)
	if err != nil {
		return Token{}, err
	}
	return Token{name, has.role.String(), filepath.Join(t.Dir, name)}, nil
}

// Value returns the value of the token with that name.
func (t Tokens) Value(name string) (string, error) {
	if !team.ValidName(name) {
		return "", noToken(name)
	}
	_, value, err := t.content(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", noToken(name)
	}
	return value, err
}

// Remove removes the token. Requests with it are refused from then on.
func (t Tokens) Remove(name string) error {
	if !team.ValidName(name) {
		return noToken(name)
	}
	err := os.Remove(filepath.Join(t.Dir, name))
	if errors.Is(err, fs.ErrNotExist) {
		return noToken(name)
	}
	return err
}

func noToken(name string) error {
	return team.Refuse(team.NotFound, "the token %q does not exist", name)
}

// List returns the tokens, without their values, sorted by name. A file that is not used, because
// others can read it, is left out and logged.
func (t Tokens) List() ([]Token, error) {
	all := []Token{}
	err := t.each(func(k known) { all = append(all, Token{k.name, k.role.String(), filepath.Join(t.Dir, k.name)}) })
	slices.SortFunc(all, func(a, b Token) int { return strings.Compare(a.Name, b.Name) })
	return all, err
}

// find returns the token with that value. It takes equally long for any value.
func (t Tokens) find(value string) (is known, ok bool) {
	given := sha256.Sum256([]byte(value))
	err := t.each(func(k known) {
		if subtle.ConstantTimeCompare(given[:], k.sum[:]) == 1 {
			is, ok = k, true
		}
	})
	if err != nil {
		t.log(fmt.Sprintf("no token is used: %v", err))
	}
	return is, ok
}

// named returns the token of that name.
func (t Tokens) named(name string) (known, bool) {
	if private(t.Dir, true) != nil {
		return known{}, false
	}
	is, err := t.read(name)
	return is, err == nil
}

// Role returns the present role of the token with that name; 0 if it was removed.
func (t Tokens) Role(name string) Role {
	is, _ := t.named(name)
	return is.role
}

// each calls see with each usable token.
func (t Tokens) each(see func(known)) error {
	if err := private(t.Dir, true); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return err
	}
	files, err := os.ReadDir(t.Dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		is, err := t.read(f.Name())
		if errors.Is(err, fs.ErrNotExist) { // it was removed just now
			continue
		}
		if err != nil {
			t.log(fmt.Sprintf("the token %s is not used: %v", f.Name(), err))
			continue
		}
		see(is)
	}
	return nil
}

func (t Tokens) log(text string) {
	if t.Log != nil {
		t.Log(text)
	}
}

// read returns the token of that name.
func (t Tokens) read(name string) (known, error) {
	role, value, err := t.content(name)
	return known{name, role, sha256.Sum256([]byte(value))}, err
}

// content returns the role and the value of a token.
func (t Tokens) content(name string) (Role, string, error) {
	if !team.ValidName(name) {
		return 0, "", fmt.Errorf("%q cannot name a token", name)
	}
	path := filepath.Join(t.Dir, name)
	if err := private(path, false); err != nil {
		return 0, "", err
	}
	f, err := regularfile.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return 0, "", err
	}
	defer f.Close()
	is, err := f.Stat() // another file may have taken the place of the one that was looked at
	if err == nil {
		err = onlyOurs(path, is)
	}
	if err != nil {
		return 0, "", err
	}
	data, err := io.ReadAll(io.LimitReader(f, maxTokenFile+1))
	if err != nil {
		return 0, "", err
	}
	return parseToken(data)
}

// parseToken returns the role and the value in the file of a token.
func parseToken(data []byte) (Role, string, error) {
	word, value, _ := strings.Cut(strings.TrimSuffix(string(data), "\n"), " ")
	role, err := ParseRole(word)
	if err != nil {
		return 0, "", fmt.Errorf("it does not begin with a role; remove the file, and create the token again")
	}
	if raw, err := base64.RawURLEncoding.Strict().DecodeString(value); err != nil || len(raw) != tokenBytes ||
		len(value) != base64.RawURLEncoding.EncodedLen(tokenBytes) {
		return 0, "", errors.New("its value is not a token; remove the file, and create the token again")
	}
	return role, value, nil
}

// ready makes the folder of the tokens, and checks that others cannot read it.
func (t Tokens) ready() error {
	if err := os.MkdirAll(t.Dir, 0o700); err != nil {
		return err
	}
	return private(t.Dir, true)
}

// private refuses a file or folder that is a link, that belongs to another user, or that others may
// use.
func private(path string, folder bool) error {
	is, err := os.Lstat(path)
	switch {
	case err != nil:
		return err
	case folder && !is.IsDir():
		return fmt.Errorf("%s is not a folder; remove it", path)
	case !folder && !is.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file; remove it", path)
	}
	return onlyOurs(path, is)
}

// onlyOurs refuses a file or folder that belongs to another user, or that others may use.
func onlyOurs(path string, is fs.FileInfo) error {
	if owner, ok := is.Sys().(*syscall.Stat_t); ok && int(owner.Uid) != os.Geteuid() {
		return fmt.Errorf("%s belongs to another user; remove it", path)
	}
	if is.Mode().Perm()&0o077 != 0 {
		return fmt.Errorf("others may use %s, whose mode is %#o; remove it", path, is.Mode().Perm())
	}
	return nil
}

// Private refuses a folder that is a link, that belongs to another user, or that others may use.
func Private(dir string) error { return private(dir, true) }

// Once returns a log that is told each text only once, because a file is looked at for each
// request.
func Once(log func(string)) func(string) {
	if log == nil {
		return nil
	}
	var mu sync.Mutex
	told := map[string]bool{}
	return func(text string) {
		mu.Lock()
		defer mu.Unlock()
		if len(told) >= maxTokens {
			clear(told)
		}
		if !told[text] {
			told[text] = true
			log(text)
		}
	}
}
