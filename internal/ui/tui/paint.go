package tui

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	"cadre/internal/engine"
	"cadre/internal/render"
)

// style is the look of a text. The zero style is plain.
type style struct {
	color   int // SGR code of the text color; 0 for the terminal's own
	bold    bool
	faint   bool
	italic  bool
	reverse bool
}

// The styles. A terminal shows the 16 colors in its own shades, so they fit its background.
var (
	plain  = style{}
	strong = style{bold: true}
	faint  = style{faint: true}
	alarm  = style{color: 31}
	good   = style{color: 32}
	waits  = style{color: 33}
	live   = style{color: 36}
)

// toned returns the style of a tone of package render.
func toned(t render.Tone) style {
	return [...]style{render.Plain: plain, render.Strong: strong, render.Live: live, render.Faint: faint,
		render.Alarm: alarm, render.Good: good, render.Wait: waits}[t]
}

// stateStyle returns the style of a state of a team, a member or a task.
func stateStyle(state string) style { return toned(render.StateTone(state)) }

// on returns the text in the style. The text must be sanitized.
func (s style) on(text string) string {
	if s == plain || text == "" {
		return text
	}
	var codes []string
	for _, code := range [...]struct {
		on   bool
		code string
	}{{s.bold, "1"}, {s.faint, "2"}, {s.italic, "3"}, {s.reverse, "7"}, {s.color != 0, strconv.Itoa(s.color)}} {
		if code.on {
			codes = append(codes, code.code)
		}
	}
	return "\x1b[" + strings.Join(codes, ";") + "m" + text + "\x1b[m"
}

// memberColors are the colors of members, in the order in which members get them. Red, yellow and
// green mean failed, waiting and done, so members get them last.
var memberColors = [...]int{94, 95, 96, 92, 93, 91}

// colorOf returns the color of the member that joined as number place after the lead: the color
// called name, or for "" the one that the member has in panes and in Claude Code's files.
func colorOf(name string, place int) int {
	if name == "" && place > 0 {
		name = engine.Color(place)
	}
	switch strings.ToLower(name) {
	case "red":
		return 91
	case "green":
		return 92
	case "yellow", "orange":
		return 93
	case "blue":
		return 94
	case "purple", "pink", "magenta":
		return 95
	case "cyan":
		return 96
	}
	return memberColors[place%len(memberColors)]
}

// indented returns JSON with line breaks, and any other text unchanged.
func indented(input string) string {
	var out bytes.Buffer
	if json.Indent(&out, []byte(input), "", "  ") != nil {
		return input
	}
	return out.String()
}
