package crc32c_test

import (
	"testing"

	"cadre/internal/sys/crc32c"
)

// TestChecksum compares with the check value for CRC-32C in the catalogue of CRC algorithms.
// Existing files must stay readable for ever.
func TestChecksum(t *testing.T) {
	const text, want = "123456789", 0xe3069283
	if got := crc32c.Checksum([]byte(text)); got != want {
		t.Errorf("%x, not %x", got, want)
	}
	if got := crc32c.Update(crc32c.Checksum([]byte(text[:4])), []byte(text[4:])); got != want {
		t.Errorf("in two parts %x, not %x", got, want)
	}
	sum := crc32c.New()
	for i := range text {
		sum.Write([]byte{text[i]})
	}
	if got := sum.Sum32(); got != want {
		t.Errorf("byte by byte %x, not %x", got, want)
	}
}
