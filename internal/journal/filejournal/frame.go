package filejournal

import (
	"bytes"
	"hash/crc32"
	"strconv"
)

// The longest data of one record, and so of a line, in bytes.
const (
	maxData = 64 << 20
	maxLine = maxData + 256
)

// The first keys of the lines.
const (
	keyHeader   = "cadre-journal"
	keyRecord   = "seq"
	keySeal     = "seal"
	keySnapshot = "cadre-state"
)

// version is the format's. A file with a greater one is refused.
const version = 1

const (
	crcOpen  = `,"crc":"`
	crcField = crcOpen + `00000000"` // the part of a line that its checksum leaves out
	dataOpen = `,"data":`
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// appendLine appends {"key":n,"crc":"…"rest} and a newline to dst. rest is empty or starts with a comma.
func appendLine(dst []byte, key string, n int64, rest ...[]byte) []byte {
	start := len(dst)
	dst = append(dst, '{', '"')
	dst = append(dst, key...)
	dst = append(dst, '"', ':')
	dst = strconv.AppendInt(dst, n, 10)
	field := len(dst)
	dst = append(dst, crcField...)
	for _, r := range rest {
		dst = append(dst, r...)
	}
	dst = append(dst, '}')
	sum := crc32.Update(crc32.Checksum(dst[start:field], castagnoli), castagnoli, dst[field+len(crcField):])
	const digits = "0123456789abcdef"
	for i := range 8 {
		dst[field+len(crcOpen)+i] = digits[sum>>(28-4*i)&15]
	}
	return append(dst, '\n')
}

var dataField = []byte(dataOpen)

func appendRecord(dst []byte, seq int64, data []byte) []byte {
	return appendLine(dst, keyRecord, seq, dataField, data)
}

// frame is a line that passed its checksum.
type frame struct {
	key  []byte
	n    int64
	rest []byte // between the checksum field and the closing brace
}

// parseLine reads a line without its newline. bad says what is wrong with it and is empty for a good one. It accepts
// exactly what appendLine writes: 32 processes each parse every record, so it looks at fixed positions only.
func parseLine(line []byte) (f frame, bad string) {
	if len(line) < 2 || line[0] != '{' || line[1] != '"' {
		return f, "it does not start like a line of a journal"
	}
	end := bytes.IndexByte(line[2:min(len(line), 24)], '"')
	if end < 0 {
		return f, "it does not start like a line of a journal"
	}
	f.key = line[2 : 2+end]
	at := 2 + end + 1
	if at >= len(line) || line[at] != ':' {
		return f, "it has no number"
	}
	at++
	start := at
	for at < len(line) && '0' <= line[at] && line[at] <= '9' && at-start < 18 {
		f.n = f.n*10 + int64(line[at]-'0')
		at++
	}
	if at == start || (line[start] == '0' && at > start+1) {
		return f, "it has no number"
	}
	body := at + len(crcField)
	if len(line) <= body || string(line[at:at+len(crcOpen)]) != crcOpen || line[body-1] != '"' || line[len(line)-1] != '}' {
		return f, "it has no checksum or no end"
	}
	var want uint32
	for _, c := range line[at+len(crcOpen) : body-1] {
		switch {
		case '0' <= c && c <= '9':
			want = want<<4 | uint32(c-'0')
		case 'a' <= c && c <= 'f':
			want = want<<4 | uint32(c-'a'+10)
		default:
			return f, "its checksum is not one"
		}
	}
	if got := crc32.Update(crc32.Checksum(line[:at], castagnoli), castagnoli, line[body:]); got != want {
		return f, "its checksum does not match"
	}
	f.rest = line[body : len(line)-1]
	return f, ""
}

// data returns the record's data of a frame with the key "seq".
func (f frame) data() ([]byte, bool) {
	return bytes.CutPrefix(f.rest, dataField)
}

// appendInt appends ,"name":n, a number field of a line's rest.
func appendInt(dst []byte, name string, n int64) []byte {
	dst = append(dst, ',', '"')
	dst = append(dst, name...)
	dst = append(dst, '"', ':')
	return strconv.AppendInt(dst, n, 10)
}

// cutInt reads what appendInt wrote.
func cutInt(rest []byte, name string) (n int64, after []byte, ok bool) {
	rest, ok = bytes.CutPrefix(rest, []byte(`,"`+name+`":`))
	if !ok {
		return 0, nil, false
	}
	end := bytes.IndexByte(rest, ',')
	if end < 0 {
		end = len(rest)
	}
	n, err := strconv.ParseInt(string(rest[:end]), 10, 64)
	return n, rest[end:], err == nil
}
