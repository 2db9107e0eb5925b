package teamfiles

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"cadre/internal/team"
)

// Entry is one message in an inbox.
type Entry struct {
	From      string `json:"from"`
	Text      string `json:"text"` // of a structured message its JSON, see [Parse]
	Summary   string `json:"summary,omitempty"`
	Timestamp string `json:"timestamp"`
	Color     string `json:"color,omitempty"`
	MsgV      int    `json:"msgV,omitempty"`
	MsgID     string `json:"msg_id,omitempty"`
	Type      string `json:"type,omitempty"`
	Read      bool   `json:"read"` // it was delivered; where such entries stay

	LeadSig    string `json:"lead_sig,omitempty"` // see [LeadKey]
	FromPlugin string `json:"from_plugin,omitempty"`
}

// Key tells the entries of an inbox apart.
func (e Entry) Key() string {
	if e.MsgID != "" {
		return e.MsgID
	}
	sum := sha256.Sum256([]byte(e.From + "\x00" + e.Timestamp + "\x00" + e.Text))
	return hex.EncodeToString(sum[:16])
}

// Stamp is a time as these files have it.
func Stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

// newID is a random UUID.
func newID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func (t *Team) inbox(name string) string { return filepath.Join(t.inboxes(), name+".json") }

// Inbox reads what is in an inbox, in order; nothing where there is none.
func (t *Team) Inbox(ctx context.Context, name string) ([]Entry, error) {
	if err := team.CheckName("member", name); err != nil {
		return nil, err
	}
	var all []Entry
	err := read(ctx, t.inbox(name), &all)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return all, err
}

// Waiting is what was not delivered of it.
func (t *Team) Waiting(ctx context.Context, name string) ([]Entry, error) {
	all, err := t.Inbox(ctx, name)
	return slices.DeleteFunc(all, func(e Entry) bool { return e.Read || e.From == "" }), err
}

// Send puts an entry into the inbox of a member. Its time and its ids are filled in where they are
// not given.
func (t *Team) Send(ctx context.Context, to string, e Entry) error {
	c, err := t.Config(ctx)
	if err != nil {
		return err
	}
	if c.Member(to) == nil {
		return t.nobody(to)
	}
	if err := team.CheckName("member", to); err != nil { // it becomes a path
		return err
	}
	if e.Timestamp == "" {
		e.Timestamp = Stamp(time.Now())
	}
	if e.MsgID == "" {
		e.MsgV, e.MsgID, e.Type = 1, newID(), "message"
	}
	o, err := objectOf(e)
	if err != nil {
		return err
	}
	if err := os.Mkdir(t.inboxes(), 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	all := []*object{}
	return edit(ctx, t.inbox(to), &all, func(bool) (bool, error) {
		all = append(all, o)
		return true, nil
	})
}

// Settle says that the entries with these keys were delivered, one entry for each key.
func (t *Team) Settle(ctx context.Context, name string, keys ...string) error {
	if len(keys) == 0 {
		return nil
	}
	var all []*object
	return edit(ctx, t.inbox(name), &all, func(there bool) (bool, error) {
		keeps := false // what was read stays in this team's inboxes
		entries := make([]Entry, len(all))
		for i, o := range all {
			if o == nil { // null, which is nobody's message
				continue
			}
			if err := o.decode(&entries[i]); err != nil {
				return false, &DamagedError{t.inbox(name), err}
			}
			keeps = keeps || entries[i].Read
		}
		var settled []int
		for _, key := range keys {
			for i, e := range entries {
				if !e.Read && e.Key() == key {
					entries[i].Read = true
					settled = append(settled, i)
					break
				}
			}
		}
		if len(settled) == 0 {
			return false, nil
		}
		if keeps {
			for _, i := range settled {
				if err := all[i].set("read", true); err != nil {
					return false, err
				}
			}
			return true, nil
		}
		rest := []*object{}
		for i, o := range all {
			if !slices.Contains(settled, i) {
				rest = append(rest, o)
			}
		}
		all = rest
		return true, nil
	})
}
