package filejournal

import (
	"fmt"
	"hash/crc32"
	"strconv"
)

// marker is the file "durable". It has one line of fixed width, so that a write never changes its length and fits one
// sector: "durable", a seq in 20 digits, the CRC-32C of both in 8. Its flock is the sync lock.
type marker struct{ f File }

// markerEvery is how many bytes of a segment there are from one sync of the marker to the next: so many records, some eight hundred, may the
// marker be behind after a loss of power.
const markerEvery = 256 << 10

const markerLen = len("durable 00000000000000000000 00000000\n")

func formatMarker(seq int64) []byte {
	b := fmt.Appendf(make([]byte, 0, markerLen), "durable %020d", seq)
	return fmt.Appendf(b, " %08x\n", crc32.Checksum(b, castagnoli))
}

// read returns the seq up to which all is known to be durable; ok is false where the marker is missing or unreadable. Without
// the sync lock a read may fall into a write, so it is tried again a few times.
func (m marker) read() (seq int64, ok bool) {
	if m.f == nil {
		return 0, false
	}
	var buf [markerLen + 1]byte
	for range 5 {
		n, _ := pread(m.f, buf[:], 0)
		if seq, ok := parseMarker(buf[:n]); ok {
			return seq, true
		}
	}
	return 0, false
}

func parseMarker(b []byte) (int64, bool) {
	if len(b) != markerLen || string(b[:8]) != "durable " || b[28] != ' ' || b[37] != '\n' {
		return 0, false
	}
	seq, err := strconv.ParseUint(string(b[8:28]), 10, 63)
	if err != nil {
		return 0, false
	}
	sum, err := strconv.ParseUint(string(b[29:37]), 16, 32)
	return int64(seq), err == nil && uint32(sum) == crc32.Checksum(b[:28], castagnoli)
}

// write may be called only with the sync lock held and only after the sync that makes seq true.
func (m marker) write(seq int64) error {
	_, err := m.f.WriteAt(formatMarker(seq), 0)
	return err
}
