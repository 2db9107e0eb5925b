package tracing

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"

	"cadre/internal/sys/sleep"
)

const (
	// firstPause doubles with each failure in a row, up to longestPause.
	firstPause   = time.Second
	longestPause = time.Minute
	// longestWish bounds the pause that a receiver asks for.
	longestWish = 10 * time.Minute
	// maxAnswer bounds what is read of an answer.
	maxAnswer = 64 << 10
	// atOnce is how many requests are under way at the same time.
	atOnce = 4
)

// sender posts requests to the receiver, and tells the person once when that fails.
type sender struct {
	config *Config
	client *http.Client
	host   string // of the receiver; the rest of its address may be secret
	log    func(string)
	free   chan struct{} // has a place for each request that is under way

	mu      sync.Mutex
	failing bool            // the person was told
	said    map[string]bool // other texts that the person was told
}

func newSender(c *Config, log func(string)) *sender {
	s := &sender{config: c, log: log, free: make(chan struct{}, atOnce), said: map[string]bool{}}
	if u, err := url.Parse(c.URL); err == nil {
		s.host = u.Host
	}
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = atOnce
	s.client = &http.Client{Timeout: c.Timeout, Transport: transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	return s
}

// busyError says that the receiver cannot take the request now.
type busyError struct {
	text  string
	after time.Duration // the pause that the receiver asks for; 0 for none
}

func (e *busyError) Error() string { return e.text }

// send posts the request until the receiver has taken it or refused it for good. It returns false
// only when ctx ended before that. A request under way ends with grace, which ends later: to break
// it off and send it again would send spans twice.
func (s *sender) send(ctx, grace context.Context, body []byte) bool {
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		err := s.post(grace, body)
		busy, again := errors.AsType[*busyError](err)
		switch {
		case err == nil:
			s.worked()
			return true
		case !again:
			s.once(err.Error())
			return true
		case ctx.Err() != nil:
			return false
		}
		s.failed(busy)
		wait := pause/2 + rand.N(pause) // so that many processes do not come back at the same time
		if sleep.For(ctx, max(wait, busy.after)) != nil {
			return false
		}
	}
}

// post sends one request. The error is a [busyError] if it may be sent again.
func (s *sender) post(ctx context.Context, body []byte) error {
	select {
	case s.free <- struct{}{}:
		defer func() { <-s.free }()
	case <-ctx.Done():
		return &busyError{text: ctx.Err().Error()}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, s.config.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("traces cannot be sent: the address of the receiver cannot be used")
	}
	for name, values := range s.config.Header {
		request.Header[name] = values
	}
	request.Header.Set("Content-Type", "application/x-protobuf")
	if s.config.JSON {
		request.Header.Set("Content-Type", "application/json")
	}
	request.Header.Set("User-Agent", "cadre")
	response, err := s.client.Do(request)
	if err != nil {
		if of, is := errors.AsType[*url.Error](err); is { // it has the whole address
			err = of.Err
		}
		return &busyError{text: err.Error()}
	}
	defer response.Body.Close()
	answer, err := io.ReadAll(io.LimitReader(response.Body, maxAnswer))
	switch code := response.StatusCode; {
	case code == http.StatusTooManyRequests || code == http.StatusBadGateway || code == http.StatusServiceUnavailable ||
		code == http.StatusGatewayTimeout:
		return &busyError{"it answers " + status(code), wish(response.Header)}
	case code < 200 || code > 299:
		return fmt.Errorf("%s refused traces with %s%s; these are lost, later ones are still sent", s.host,
			status(code), advice(code))
	case err != nil:
		return &busyError{text: "its answer broke off"}
	}
	refused := protoRefused
	if s.config.JSON {
		refused = jsonRefused
	}
	if n, why := refused(answer); n > 0 {
		s.once(fmt.Sprintf("%s refused %d of the spans that it got: %s", s.host, n, clean(why)))
	}
	return nil
}

func status(code int) string { return fmt.Sprintf("HTTP %d %s", code, http.StatusText(code)) }

// advice says what a person should look at after the receiver answered with that status.
func advice(code int) string {
	switch {
	case code/100 == 3:
		return " (redirects are not followed; set the address that it points to)"
	case code == http.StatusUnauthorized || code == http.StatusForbidden:
		return " (see OTEL_EXPORTER_OTLP_HEADERS)"
	case code == http.StatusNotFound || code == http.StatusMethodNotAllowed:
		return " (see the path in OTEL_EXPORTER_OTLP_ENDPOINT)"
	}
	return ""
}

// wish returns the pause that the receiver asks for. A time counts from the time of the answer, so
// that the clocks of the two need not agree.
func wish(h http.Header) time.Duration {
	after := h.Get("Retry-After")
	if seconds, err := strconv.Atoi(after); err == nil {
		return max(0, min(time.Duration(min(seconds, int(longestWish/time.Second)))*time.Second, longestWish))
	}
	until, err := http.ParseTime(after)
	now, unknown := http.ParseTime(h.Get("Date"))
	if err != nil || unknown != nil {
		return 0
	}
	return max(0, min(until.Sub(now), longestWish))
}

// failed tells the person that the receiver cannot be reached, once until it can.
func (s *sender) failed(err *busyError) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.failing {
		s.failing = true
		s.log(fmt.Sprintf("traces cannot be sent to %s: %s. They are sent when it can be reached again", s.host,
			clean(err.Error())))
	}
}

func (s *sender) worked() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.failing {
		s.failing = false
		s.log(fmt.Sprintf("traces are sent to %s again", s.host))
	}
}

// maxSaid bounds how many different texts are told.
const maxSaid = 100

// once tells the person something that it was not told yet.
func (s *sender) once(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.said[text] && len(s.said) < maxSaid {
		s.said[text] = true
		s.log(text)
	}
}
