package tui

import (
	"reflect"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"
)

// These are how often the library looks whether the frame has changed. A look costs time even if
// nothing has: 20 a second take half a percent of a core, and 120, the most that the library
// offers, several percent.
const (
	stillEvery  = time.Second           // nothing has happened; a message ends this at once
	steadyEvery = 50 * time.Millisecond // for text that people read
	quickEvery  = 4 * time.Millisecond  // after a key: the person waits for the frame
)

// A pace holds for this time after the last message that called for it.
const (
	quickFor  = 100 * time.Millisecond
	steadyFor = 3 * steadyEvery
)

// pace changes how often the library draws. The library has one rate from start to end, and no way
// to ask for a frame. So pace sets the ticker of the library, which it finds by reflection. A
// library without that ticker draws at the rate that [show] gave it.
type pace struct {
	mu     sync.Mutex
	ticker *time.Ticker // nil before the start, and after the end
	every  time.Duration
	over   *time.Timer // ends the current pace
}

// tickerOf returns the ticker by which a running program draws; nil if it has none.
func tickerOf(p *tea.Program) *time.Ticker {
	field := reflect.ValueOf(p).Elem().FieldByName("ticker")
	if !field.IsValid() || field.Type() != reflect.TypeFor[*time.Ticker]() {
		return nil
	}
	return reflect.NewAt(field.Type(), field.Addr().UnsafePointer()).Elem().Interface().(*time.Ticker)
}

// begin takes the ticker of a program that has started to draw.
func (p *pace) begin(ticker *time.Ticker) {
	p.mu.Lock()
	p.ticker = ticker
	p.mu.Unlock()
	p.set(steadyEvery, true)
}

// end leaves the ticker alone.
func (p *pace) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ticker = nil; p.over != nil {
		p.over.Stop()
	}
}

// after sets the pace for the frame that follows the message.
func (p *pace) after(msg tea.Msg) {
	switch msg.(type) {
	case tea.KeyPressMsg, tea.MouseMsg, tea.PasteMsg, tea.WindowSizeMsg, tea.FocusMsg:
		p.set(quickEvery, false)
	case tea.ResumeMsg: // the library has set its ticker again
		p.set(quickEvery, true)
	default:
		p.set(steadyEvery, false)
	}
}

// wrote sets the pace for the frame that follows a write. On a slow terminal a write takes longer
// than a pace holds, and what has changed meanwhile is not drawn yet.
func (p *pace) wrote() { p.set(steadyEvery, false) }

// set sets the pace, unless a quicker one holds. It does not restart a ticker that has that pace:
// then keys in close succession would delay the frame.
func (p *pace) set(every time.Duration, restart bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ticker == nil || !restart && p.every < every && p.every > 0 {
		return
	}
	if restart || p.every != every {
		p.every = every
		p.ticker.Reset(every)
	}
	hold := steadyFor
	if every == quickEvery {
		hold = quickFor
	}
	if p.over == nil {
		p.over = time.AfterFunc(hold, p.slower)
	} else {
		p.over.Reset(hold)
	}
}

// slower ends the current pace. A quick one is followed by a steady one, because the answer to the
// key may be on its way.
func (p *pace) slower() {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.ticker == nil:
		return
	case p.every == quickEvery:
		p.every = steadyEvery
		p.over.Reset(steadyFor)
	default:
		p.every = stillEvery
	}
	p.ticker.Reset(p.every)
}
