// Package heartbeat keeps the heartbeats of a team's members: one small value per member. The
// process that runs the member's session replaces it every half a minute. Any process can read it
// to see which members are alive.
//
// # Authority
//
// It has authority over a team's values heartbeats/MEMBER.json and nothing else. A heartbeat is not
// history: it is in no journal, is not fsynced, and may be lost with the machine. The package makes
// no decisions from heartbeats.
//
// # Clocks
//
// A heartbeat carries the time of its writer's clock. A time in the reader's future shows that one
// of the clocks is wrong. This is clock skew: it deserves a warning, and the age of the heartbeat
// means nothing. A [Watch] still works then, because it also measures by its own steady clock how
// long a heartbeat has not changed. After a pause of its own, for instance when the machine was
// suspended, a watch first observes for a while.
package heartbeat

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"time"

	"cadre/internal/journal/store"
	"cadre/internal/sys/regularfile"
)

// Beat is one heartbeat. Its JSON field names come from the resumption protocol.
type Beat struct {
	Member        string `json:"teammate_id"`
	At            int64  `json:"timestamp_utc_ms"` // in UTC milliseconds since 1970, by the writer's clock
	Task          string `json:"task_claimed,omitempty"`
	Context       int64  `json:"context_usage_percent"`
	Status        string `json:"status"`
	MessageSeq    int64  `json:"message_seq"`    // the last message delivered to it
	CheckpointSeq int64  `json:"checkpoint_seq"` // the last record in a checkpoint
	// Session is the agent's own id of its session. For the lead it is the session that leads.
	Session     string `json:"session,omitempty"`
	Host        string `json:"host,omitempty"`        // id of the host that runs it
	Machine     string `json:"machine,omitempty"`     // name of the computer
	Pid         int    `json:"pid,omitempty"`         // of the writing process
	Count       int64  `json:"count"`                 // grows with each beat of one writer
	Incarnation int64  `json:"incarnation,omitempty"` // of the member
	Unreadable  bool   `json:"-"`                     // the value is damaged: the other fields are unknown
}

// Tolerance is how far in the future a beat may lie before it counts as clock skew.
const Tolerance = 2 * time.Second

// Age returns how old the beat is. Skewed is true if the beat lies in the future or cannot be read.
// The age means nothing then.
func (b Beat) Age(now time.Time) (age time.Duration, skewed bool) {
	age = now.Sub(time.UnixMilli(b.At))
	if b.Unreadable || age < -Tolerance {
		return 0, true
	}
	return max(age, 0), false
}

// Store keeps the last beat of each member of a team. [Beats] implements it.
type Store interface {
	// Write replaces the last beats of their members.
	Write(ctx context.Context, beats ...Beat) error
	// Of returns the member's last beat, and whether there is one.
	Of(ctx context.Context, member string) (b Beat, there bool, err error)
	// Forget removes the member's beat after its session has ended in good order.
	Forget(ctx context.Context, member string) error
}

// Beats are the heartbeats of a team, where the team lives.
type Beats struct{ values store.Values }

// In returns the heartbeats among the values of a team.
func In(values store.Values) Beats { return Beats{values} }

const (
	folder = "heartbeats"
	suffix = ".json"
)

func key(member string) string { return folder + "/" + member + suffix }

// Write replaces the last beats of their members. A reader sees either the old beat of a member or
// the new one, never a part.
func (f Beats) Write(ctx context.Context, beats ...Beat) error {
	values := make([]store.Value, len(beats))
	for i, b := range beats {
		data, err := json.Marshal(b)
		if err != nil {
			return err
		}
		values[i] = store.Value{Key: key(b.Member), Data: append(data, '\n')}
	}
	return f.values.Replace(ctx, values...)
}

// Forget removes the member's beat after its session has ended in good order.
func (f Beats) Forget(ctx context.Context, member string) error {
	return f.values.Delete(ctx, key(member))
}

// Of returns the member's last beat, and whether there is one.
func (f Beats) Of(ctx context.Context, member string) (Beat, bool, error) {
	data, err := f.values.Get(ctx, key(member))
	return parse(member, data, err)
}

// parse returns the beat of a member from what was read, and whether there is one.
func parse(member string, data []byte, err error) (Beat, bool, error) {
	if errors.Is(err, fs.ErrNotExist) {
		return Beat{}, false, nil
	}
	b := Beat{}
	if special := (*regularfile.Error)(nil); errors.As(err, &special) {
		b = Beat{Unreadable: true}
	} else if err != nil {
		return Beat{}, false, err
	} else if json.Unmarshal(data, &b) != nil {
		b = Beat{Unreadable: true}
	}
	b.Member = member
	return b, true, nil
}

// All returns the last beat of each member that has one.
func (f Beats) All(ctx context.Context) (map[string]Beat, error) {
	values, err := f.values.All(ctx, folder)
	if err != nil {
		return nil, err
	}
	all := make(map[string]Beat, len(values))
	for _, v := range values {
		member, isBeat := strings.CutSuffix(strings.TrimPrefix(v.Key, folder+"/"), suffix)
		if !isBeat {
			continue
		}
		if b, ok, err := parse(member, v.Data, v.Err); err != nil {
			return nil, err
		} else if ok {
			all[member] = b
		}
	}
	return all, nil
}
