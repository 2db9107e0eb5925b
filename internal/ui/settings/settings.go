// Package settings reads the file in which a person says how cadre shows itself, and how much of it
// runs at a time.
//
// # Authority
//
// The file is settings.json in the folder of the teams. Package settings knows its keys and checks
// them. It never writes the file.
//
// # Guarantees
//
//   - A file that does not exist means the defaults.
//   - A mistake is an error that names the file, the line and the column. No value of such a file
//     is used.
package settings

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"path/filepath"
	"strings"

	"cadre/internal/sys/regularfile"
)

// File is the path of the settings in the folder of the teams.
func File(home string) string { return filepath.Join(home, "settings.json") }

// maxSize bounds the file, in bytes. People write it by hand, and it has a few hundred bytes.
const maxSize = 1 << 20

// Settings holds the keys of the file. The zero Settings are the defaults.
type Settings struct {
	Notify Notify `json:"notify"`
	Screen Screen `json:"screen"`
	Mouse  Mouse  `json:"mouse"`
	// MaxParallel limits how many teammates of all teams on this machine have a turn at a time; 0
	// for no limit.
	MaxParallel int `json:"maxParallel"`
}

// mostParallel bounds MaxParallel.
const mostParallel = 1000

// Screen says when cadre run opens the screen.
type Screen string

// The values of Screen.
const (
	AutoScreen  Screen = "auto"  // on a terminal; the same as leaving the key out
	NeverScreen Screen = "never" // print lines
)

// Mouse says whether the screen takes the mouse from the terminal.
type Mouse string

// The values of Mouse.
const (
	OnMouse  Mouse = "on"  // clicks select rows; the same as leaving the key out
	OffMouse Mouse = "off" // the terminal selects text
)

// Notify says how a person is notified. The zero Notify sends no notification.
type Notify struct {
	Bell    bool     `json:"bell"`    // ring the bell of the terminal in which cadre runs
	Desktop Desktop  `json:"desktop"` // ask that terminal for a notification of the desktop
	Command string   `json:"command"` // run this with /bin/sh
	Webhook *Webhook `json:"webhook"` // send a JSON object with POST
	Ntfy    *Ntfy    `json:"ntfy"`    // publish to a topic of ntfy
}

// Desktop is the escape sequence that asks a terminal for a notification.
type Desktop string

// The sequences, and a value that chooses one.
const (
	NoDesktop   Desktop = ""
	AutoDesktop Desktop = "auto"   // by the terminal's name
	OSC9        Desktop = "osc9"   // iTerm2, WezTerm, Ghostty, Windows Terminal
	OSC777      Desktop = "osc777" // foot, urxvt
	OSC99       Desktop = "osc99"  // kitty
)

// Webhook is an address that gets each notification as JSON.
type Webhook struct {
	URL     string            `json:"url"`
	Headers map[string]string `json:"headers"` // for example Authorization
}

// Ntfy is a topic of an ntfy server.
type Ntfy struct {
	URL   string `json:"url"`   // of the topic
	Token string `json:"token"` // access token; "" for none
}

// Error is a mistake in the file.
type Error struct {
	File         string
	Line, Column int // counted from 1; 0 if the mistake has no place
	Text         string
}

func (e *Error) Error() string {
	place := e.File
	if e.Line > 0 {
		place = fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Column)
	}
	return place + ": " + e.Text
}

// Load reads the file. If the file has a mistake, the error is an [*Error].
func Load(path string) (s Settings, err error) {
	data, err := regularfile.Read(path, maxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("read the settings: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return Settings{}, mistake(path, data, d.InputOffset(), err)
	}
	if d.More() {
		return Settings{}, mistake(path, data, d.InputOffset(), errors.New("text follows the end of the settings"))
	}
	err = s.Notify.check()
	if s.Screen != "" && s.Screen != AutoScreen && s.Screen != NeverScreen {
		err = fmt.Errorf("screen is %q; use auto or never", s.Screen)
	}
	if s.Mouse != "" && s.Mouse != OnMouse && s.Mouse != OffMouse {
		err = fmt.Errorf("mouse is %q; use on or off", s.Mouse)
	}
	if s.MaxParallel < 0 || s.MaxParallel > mostParallel {
		err = fmt.Errorf("maxParallel is %d; use a number from 1 to %d, or 0 for no limit", s.MaxParallel, mostParallel)
	}
	if err != nil {
		return Settings{}, &Error{File: path, Text: err.Error()}
	}
	return s, nil
}

// mistake adds the place in the file to an error.
func mistake(path string, data []byte, offset int64, err error) *Error {
	text := strings.TrimPrefix(err.Error(), "json: ")
	if wrong, ok := errors.AsType[*json.SyntaxError](err); ok {
		offset = wrong.Offset
	}
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		offset = wrong.Offset
		text = fmt.Sprintf("%s must be %s, not %s", wrong.Field, kinds[wrong.Type.Kind().String()], wrong.Value)
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		offset, text = int64(len(data))+1, "the file ends before its JSON value does"
	}
	if key, ok := strings.CutPrefix(text, "unknown field "); ok {
		text = fmt.Sprintf("%s is not a setting", key)
		if at := bytes.Index(data, []byte(key)); at >= 0 {
			offset = int64(at) + 1
		}
	}
	before := string(data[:min(max(offset-1, 0), int64(len(data)))])
	return &Error{path, 1 + strings.Count(before, "\n"),
		1 + len([]rune(before[strings.LastIndexByte(before, '\n')+1:])),
		text}
}

// kinds names the types of values.
var kinds = map[string]string{"bool": "true or false", "string": "a text", "struct": "an object", "map": "an object",
	"ptr": "an object", "int": "a whole number"}

func (n *Notify) check() error {
	switch n.Desktop {
	case NoDesktop, AutoDesktop, OSC9, OSC777, OSC99:
	default:
		return fmt.Errorf("notify.desktop is %q; use auto, osc9, osc777 or osc99", n.Desktop)
	}
	if n.Webhook != nil {
		if err := address("notify.webhook.url", n.Webhook.URL); err != nil {
			return err
		}
	}
	if n.Ntfy != nil {
		if err := address("notify.ntfy.url", n.Ntfy.URL); err != nil {
			return err
		}
		if u, _ := url.Parse(n.Ntfy.URL); strings.Trim(u.Path, "/") == "" {
			return fmt.Errorf("notify.ntfy.url has no topic; write it as %s/TOPIC", strings.TrimRight(n.Ntfy.URL, "/"))
		}
	}
	return nil
}

func address(key, text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("%s is %q; it must begin with https:// or http:// and name a host", key, text)
	}
	return nil
}
