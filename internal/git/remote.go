package git

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"
	"time"
)

// remoteLimit bounds one exchange with a remote.
const remoteLimit = 5 * time.Minute

// quietly are settings that keep git from doing more than it is asked to do.
var quietly = []string{"push.followTags=false", "push.recurseSubmodules=no", "push.gpgSign=false",
	"fetch.recurseSubmodules=no", "fetch.writeCommitGraph=false", "fetch.prune=false", "maintenance.auto=false"}

// ToRemote returns the runner for one exchange with a remote, which does nothing beside it.
func (r Runner) ToRemote() Runner {
	r.Remote, r.Limit, r.Settings = true, remoteLimit, slices.Concat(r.Settings, quietly)
	return r
}

// Remote is a named remote of a repository.
type Remote struct {
	Name string
	URL  string // for pushing, without a password
	raw  string
}

// RemoteNamed returns the remote of the repository with that name. A [*Refusal] is for a name that
// no remote has.
func (r Runner) RemoteNamed(ctx context.Context, name string) (Remote, error) {
	raw, err := r.Text(ctx, "remote", "get-url", "--push", "--", name)
	if err != nil {
		return Remote{}, err
	}
	return Remote{name, withoutPassword(raw), raw}, nil
}

// Key identifies the place that the remote leads to, without revealing it.
func (r Remote) Key() string {
	sum := sha256.Sum256([]byte(r.raw))
	return hex.EncodeToString(sum[:])
}

// withoutPassword returns the URL of a remote without user and password.
func withoutPassword(raw string) string {
	scheme, rest, ok := strings.Cut(raw, "://")
	if !ok {
		return raw
	}
	end := strings.IndexByte(rest+"/", '/')
	return scheme + "://" + rest[strings.LastIndexByte(rest[:end], '@')+1:]
}

// Harmless returns an error of git without a password in the remote's URL.
func (r Remote) Harmless(err error) error {
	if refused, ok := errors.AsType[*Refusal](err); ok && r.raw != r.URL {
		return &Refusal{Command: refused.Command, Status: refused.Status, Words: strings.ReplaceAll(refused.Words,
			r.raw, r.URL)}
	}
	return err
}

// Rejected reports whether a push failed because the remote's reference has moved on. out is what
// git push --porcelain printed.
func Rejected(out []byte) bool {
	for line := range strings.Lines(string(out)) {
		if strings.HasPrefix(line, "!") && (strings.Contains(line, "fetch first") ||
			strings.Contains(line, "non-fast-forward") || strings.Contains(line, "stale info") ||
			strings.Contains(line, "cannot lock ref")) {
			return true
		}
	}
	return false
}
