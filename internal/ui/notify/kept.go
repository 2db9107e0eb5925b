package notify

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"

	"cadre/internal/sys/atomicfile"
	"cadre/internal/sys/regularfile"
)

// maxKept bounds the file of a channel.
const maxKept = 16 << 20

// kept is the file that records what was sent through a channel.
type kept struct {
	Sent []string `json:"sent"` // ids of facts that were sent and still hold
}

func (s *server) path(suffix string) string { return filepath.Join(s.Folder, s.channel.Name+suffix) }

// load reads what was sent. If there is no file, s.sent stays nil.
func (s *server) load() error {
	s.sent = nil
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
	return nil
}

// save records what was sent.
func (s *server) save() error {
	if s.channel.Fleeting {
		return nil
	}
	data, err := json.Marshal(kept{slices.Sorted(maps.Keys(s.sent))})
	if err != nil {
		return err
	}
	return atomicfile.Write(s.path(".json"), append(data, '\n'))
}
