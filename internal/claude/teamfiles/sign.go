package teamfiles

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// LeadKey verifies the signatures of a lead's messages to one teammate. Claude Code passes it to
// the teammate with --lead-verify-key: milliseconds since 1970, a dot, and an Ed25519 public key as
// DER in base64url. Source: Claude Code 2.1.329.
type LeadKey struct {
	since time.Time
	key   ed25519.PublicKey
}

// signedVersion is the first element of the signed data and names its version.
const signedVersion = "claude-team-lead-entry-v1"

// ed25519Prefix is the DER prefix of every Ed25519 public key (RFC 8410); only the key after it
// varies. Package crypto/x509 can parse any key, but its initialisation would cost every command
// time.
const ed25519Prefix = "\x30\x2a\x30\x05\x06\x03\x2b\x65\x70\x03\x21\x00"

// clockSkew is how much older than the key a message may seem to be.
const clockSkew = 2 * time.Minute

// ParseLeadKey parses the value of the flag.
func ParseLeadKey(value string) (*LeadKey, error) {
	millis, encoded, _ := strings.Cut(value, ".")
	n, err := strconv.ParseInt(millis, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("the lead's key does not begin with a time: %w", err)
	}
	der, err := base64.RawURLEncoding.DecodeString(encoded)
	if err != nil {
		return nil, fmt.Errorf("the lead's key: %w", err)
	}
	key, ok := bytes.CutPrefix(der, []byte(ed25519Prefix))
	if !ok || len(key) != ed25519.PublicKeySize {
		return nil, errors.New("the lead's key is not an Ed25519 key")
	}
	return &LeadKey{time.UnixMilli(n), key}, nil
}

// Signed reports whether the lead signed the entry, not before the time of the key. The caller must
// make sure that it acts on each entry only once.
func (k *LeadKey) Signed(e Entry) bool {
	sig, err := base64.RawURLEncoding.DecodeString(e.LeadSig)
	if err != nil || e.MsgID == "" {
		return false
	}
	at, err := time.Parse(time.RFC3339, e.Timestamp)
	return err == nil && !at.Before(k.since.Add(-clockSkew)) && ed25519.Verify(k.key, signed(e), sig)
}

// signed returns the signed data of an entry: a JSON list as JavaScript writes it.
func signed(e Entry) []byte {
	list := []string{quote(signedVersion), quote(e.MsgID), quote(e.From), quote(e.Timestamp), quote(e.Text),
		orNull(e.Summary), orNull(e.Color), orNull(e.FromPlugin)}
	return []byte("[" + strings.Join(list, ",") + "]")
}

func orNull(s string) string {
	if s == "" {
		return "null"
	}
	return quote(s)
}

// quote encodes a string like JavaScript's JSON.stringify.
func quote(s string) string {
	const hex = "0123456789abcdef"
	b := []byte{'"'}
	for _, r := range s {
		switch i := strings.IndexRune("\b\f\n\r\t\"\\", r); {
		case i >= 0:
			b = append(b, '\\', `bfnrt"\`[i])
		case r < ' ':
			b = append(b, '\\', 'u', '0', '0', hex[r>>4], hex[r&15])
		default:
			b = utf8.AppendRune(b, r)
		}
	}
	return string(append(b, '"'))
}
