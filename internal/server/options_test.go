package server

import (
	"strings"
	"testing"
	"time"

	"cadre/internal/engine"
	"cadre/internal/layout"
	"cadre/internal/team"
)

// TestOptions checks that options which make no sense are refused before anything is started.
func TestOptions(t *testing.T) {
	for words, o := range map[string]Options{
		"teammates cannot run":          {MaxSessions: -1},
		"every -1s is not possible":     {Heartbeat: -time.Second},
		"cannot end in -1s":             {Shutdown: -time.Second},
		"also say where to listen":      {Hosts: []string{"board.example"}},
		"are for a TCP address":         {Certificate: "a", Key: "b"},
		"TLS needs both":                {Listen: "127.0.0.1:0", Certificate: "a"},
		"is not an address":             {Listen: "7433"},
		"by which host and port":        {Listen: "0.0.0.0:0", Certificate: "a", Key: "b"},
		"others could read along: give": {Listen: "10.0.0.1:0"},
	} {
		o.Engine = &engine.Engine{Home: layout.Home{Root: t.TempDir()}}
		err := Run(t.Context(), o, nil)
		if team.CodeOf(err) != team.Invalid || !strings.Contains(err.Error(), words) {
			t.Errorf("want %q: %v", words, err)
		}
	}
}

// TestBoardAddress checks the address that a person is told.
func TestBoardAddress(t *testing.T) {
	for want, s := range map[string]*Server{
		"http://127.0.0.1:7433": {address: "127.0.0.1:7433"},
		"https://board.example:7433": {address: "[::]:7433", named: []string{"https://board.example:7433"},
			Options: Options{Certificate: "c"}},
		"": {},
	} {
		if got := s.Board(); got != want {
			t.Errorf("the address is %q, want %q", got, want)
		}
	}
}
