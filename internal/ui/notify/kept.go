package notify

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/regularfile"
)

// maxKept bounds the file of a channel.
const maxKept = 16 << 20

// kept is the file that records what was sent through a channel.
type kept struct {
	Sent []string             `json:"sent"`           // ids of facts that were sent and still hold
	Seen map[string]time.Time `json:"seen,omitempty"` // when the person last looked at facts that were not sent
}

// path returns the path of a file of the channel. A channel that reaches a terminal has files for
// each.
func (s *server) path(suffix string) string {
	name := s.channel.Name
	if s.channel.Terminal != 0 {
		name += "-" + strconv.FormatInt(s.channel.Terminal, 10)
	}
	return filepath.Join(s.Folder, name+suffix)
}

// load reads the states of facts. If there is no file, s.sent stays nil.
func (s *server) load() error {
	s.sent, s.since, s.seen, s.written = nil, map[string]time.Time{}, map[string]time.Time{}, nil
	if s.channel.Fleeting {
		return nil
	}
	data, err := regularfile.Read(s.path(".json"), maxKept)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var k kept
	if err := json.Unmarshal(data, &k); err != nil {
		return fmt.Errorf("%s is damaged: %w; remove it to start over", s.path(".json"), err)
	}
	s.sent = make(map[string]bool, len(k.Sent))
	for _, id := range k.Sent {
		s.sent[id] = true
	}
	maps.Copy(s.seen, k.Seen)
	s.written = data
	return nil
}

// save records the states of facts, if they have changed.
func (s *server) save() error {
	if s.channel.Fleeting {
		return nil
	}
	data, err := json.Marshal(kept{slices.Sorted(maps.Keys(s.sent)), s.seen})
	if err != nil {
		return err
	}
	if data = append(data, '\n'); bytes.Equal(data, s.written) {
		return nil
	}
	if err := atomicfile.Write(s.path(".json"), data); err != nil {
		return err
	}
	s.written = data
	return nil
}
