package hook

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// ID identifies the hook by its source, event and command. It stays the same when the hook moves
// within its file or gets another timeout, and on another machine. A hook whose command changes is
// another hook, so it runs even if the old one was switched off. Hooks of one source with the same
// event and command share their ID.
//
// The ID of a function has its name in place of the command.
func (h *Hook) ID() string {
	sum := sha256.Sum256([]byte(strings.Join([]string{string(h.Source), h.Event, h.Command}, "\x00")))
	return hex.EncodeToString(sum[:4])
}

// SwitchOff keeps the hooks from running whose ID is off.
func (c *Config) SwitchOff(off func(id string) bool) {
	for i := range c.Hooks {
		c.Hooks[i].Off = off(c.Hooks[i].ID())
	}
}
