package tui

import (
	"io"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	tea "charm.land/bubbletea/v2"
)

// TestPace: a frame comes soon after a key, also in the midst of other keys, at a rate for reading
// after other messages, and hardly ever while nothing happens.
func TestPace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ticker := time.NewTicker(time.Hour)
		var p pace
		p.after(tea.KeyPressMsg{}) // before the start
		p.begin(ticker)
		next := func() time.Duration {
			began := time.Now()
			<-ticker.C
			return time.Since(began)
		}
		settle := func() {
			time.Sleep(quickFor + steadyFor + 1)
			for ticked(ticker) {
			}
			next()
		}
		if got := next(); got > steadyEvery {
			t.Errorf("the first frame comes after %v", got)
		}
		settle()
		if got := next(); got != stillEvery {
			t.Errorf("the screen looks for changes after %v while nothing happens", got)
		}
		p.after(clockMsg(0))
		if got := next(); got != steadyEvery {
			t.Errorf("a frame comes %v after a message", got)
		}
		p.after(tea.KeyPressMsg{})
		p.after(clockMsg(0))
		if got := next(); got != quickEvery {
			t.Errorf("a frame comes %v after a key", got)
		}
		began := time.Now()
		for range 50 { // keys that come faster than frames
			time.Sleep(quickEvery / 2)
			p.after(tea.KeyPressMsg{})
		}
		if <-ticker.C; time.Since(began) > quickEvery*50/2 {
			t.Error("keys in succession delayed the frame")
		}
		settle() // during a long write, say
		p.wrote()
		if got := next(); got != steadyEvery {
			t.Errorf("a frame comes %v after a write", got)
		}
		settle()
		ticker.Reset(time.Hour) // as the library does after a suspension
		p.after(tea.ResumeMsg{})
		if got := next(); got != quickEvery {
			t.Errorf("a frame comes %v after a suspension", got)
		}
		p.end()
		ticker.Stop()
		p.after(tea.KeyPressMsg{})
		synctest.Wait()
		time.Sleep(time.Hour)
		if ticked(ticker) {
			t.Error("the ticker runs after the end")
		}
	})
}

// TestWritten checks that a terminal says when it has written, also when it could not.
func TestWritten(t *testing.T) {
	from, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	writes := 0
	out := terminal{to, new(glyphs), false, func() { writes++ }}
	if n, err := out.WriteString("frame"); n != 5 || err != nil || writes != 1 {
		t.Errorf("%d bytes, %v, %d writes", n, err, writes)
	}
	to.Close()
	if _, err := out.Write([]byte("frame")); err == nil || writes != 2 {
		t.Errorf("%v, %d writes", err, writes)
	}
}

// ticked reports whether the ticker has ticked, and takes that tick. The length of a ticker's
// channel is always 0.
func ticked(t *time.Ticker) bool {
	select {
	case <-t.C:
		return true
	default:
		return false
	}
}

// ticking is a program that looks for the ticker of its library, and ends.
type ticking struct{ look func() }

func (m ticking) Init() tea.Cmd                       { m.look(); return tea.Quit }
func (m ticking) Update(tea.Msg) (tea.Model, tea.Cmd) { return m, nil }
func (m ticking) View() tea.View                      { return tea.View{} }

// TestTickerOfTheLibrary checks that this version of the library has the ticker that pace sets.
func TestTickerOfTheLibrary(t *testing.T) {
	var p *tea.Program
	var found *time.Ticker
	p = tea.NewProgram(ticking{func() { found = tickerOf(p) }}, tea.WithInput(strings.NewReader("")),
		tea.WithOutput(io.Discard), tea.WithWindowSize(80, 24), tea.WithoutSignalHandler())
	if _, err := p.Run(); err != nil {
		t.Fatal(err)
	}
	if found == nil {
		t.Error("the library draws by another ticker: see pace")
	}
}
