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
	Text      string `json:"text"` // JSON for a structured message, see [Parse]
	Summary   string `json:"summary,omitempty"`
	Timestamp string `json:"timestamp"`
	Color     string `json:"color,omitempty"`
	MsgV      int    `json:"msgV,omitempty"`
	MsgID     string `json:"msg_id,omitempty"`
	Type      string `json:"type,omitempty"`
	Read      bool   `json:"read"` // delivered, in teams that keep such entries

	LeadSig    string `json:"lead_sig,omitempty"` // see [LeadKey]
	FromPlugin string `json:"from_plugin,omitempty"`
}

// Key identifies an entry within its inbox.
func (e Entry) Key() string {
	if e.MsgID != "" {
		return e.MsgID
	}
	sum := sha256.Sum256([]byte(e.From + "\x00" + e.Timestamp + "\x00" + e.Text))
	return hex.EncodeToString(sum[:16])
}

// Stamp formats a time as in these files.
func Stamp(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.000Z") }

// NewUUID returns a random UUID, version 4, as Claude Code uses them.
func NewUUID() string {
	var b [16]byte
	rand.Read(b[:])
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
}

func (t *Team) inbox(name string) string { return filepath.Join(t.inboxes(), name+".json") }

// Inbox returns the entries of an inbox, in order. A missing inbox is empty.
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

// Waiting returns the undelivered entries of an inbox.
func (t *Team) Waiting(ctx context.Context, name string) ([]Entry, error) {
	all, err := t.Inbox(ctx, name)
	return slices.DeleteFunc(all, func(e Entry) bool { return e.Read || e.From == "" }), err
}

// Send adds an entry to the inbox of a member. It fills in the time and the ids if they are empty.
func (t *Team) Send(ctx context.Context, to string, e Entry) error {
	c, err := t.Config(ctx)
	if err != nil {
		return err
	}
	if c.Member(to) == nil {
		return t.unknownMember(to)
	}
	if err := team.CheckName("member", to); err != nil { // it becomes a path
		return err
	}
	if e.Timestamp == "" {
		e.Timestamp = Stamp(time.Now())
	}
	if e.MsgID == "" {
		e.MsgV, e.MsgID, e.Type = 1, NewUUID(), "message"
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

// MarkDelivered marks the entries with these keys as delivered, one entry per key.
func (t *Team) MarkDelivered(ctx context.Context, name string, keys ...string) error {
	if len(keys) == 0 {
		return nil
	}
	var all []*object
	return edit(ctx, t.inbox(name), &all, func(there bool) (bool, error) {
		keeps := false // this team's inboxes keep entries that were read
		entries := make([]Entry, len(all))
		for i, o := range all {
			if o == nil { // null is not a message
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
