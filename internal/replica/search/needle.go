package search

import (
	"bytes"
	"strings"
	"unicode/utf8"
)

// needle is a part of a word that stands in the bytes of a record as it is in the text, but for the
// case of its letters. Its search looks for the rarest byte of it, in both cases, at the speed of
// [bytes.IndexByte].
type needle struct {
	text   string   // in lower case
	rare   int      // offset of its rarest byte
	lower  byte     // that byte
	upper  byte     // and in upper case
	folded []string // characters beyond ASCII that count as one of its letters
}

// needleOf returns the longest such part of the word, if it has one: a run of ASCII characters that
// JSON does not escape.
func needleOf(word string) (n needle, ok bool) {
	run := ""
	for part := range strings.FieldsFuncSeq(word, func(r rune) bool {
		return r < ' ' || r >= utf8.RuneSelf || r == '"' || r == '\\' || r == 0x7f
	}) {
		if len(part) > len(run) {
			run = part
		}
	}
	if run == "" {
		return needle{}, false
	}
	n.text = strings.ToLower(run)
	for i := range len(n.text) {
		if rarity(n.text[i]) > rarity(n.text[n.rare]) {
			n.rare = i
		}
	}
	n.lower, n.upper = n.text[n.rare], n.text[n.rare]
	if 'a' <= n.lower && n.lower <= 'z' {
		n.upper -= 'a' - 'A'
	}
	for letter, sign := range alsoFolds {
		if strings.IndexByte(n.text, letter) >= 0 {
			n.folded = append(n.folded, sign)
		}
	}
	return n, true
}

// alsoFolds are the characters beyond ASCII that count as a letter of ASCII when case is ignored:
// the sign of the unit kelvin, and the long s. A record with one of them is decoded.
var alsoFolds = map[byte]string{'k': "\u212a", 's': "\u017f"}

// common are the letters of the records of teams, the rarest first. English texts have more of some
// letters, but the names of events and fields, which each record has, have few u, w and h, and many
// m.
const common = "zjxqwygvkupfblhcmdirnosate"

// rarity is the higher the rarer the byte is in the records of a team.
func rarity(b byte) int {
	switch i := strings.IndexByte(common, b); {
	case i >= 0:
		return len(common) - i
	case '0' <= b && b <= '9', strings.IndexByte(` ,:{}[]/.-_`, b) >= 0:
		return 0
	}
	return len(common) / 2
}

// in reports whether the bytes have the needle, in any case.
func (n *needle) in(data []byte) bool {
	if n.isIn(data) {
		return true
	}
	for _, sign := range n.folded {
		if bytes.Contains(data, []byte(sign)) {
			return true
		}
	}
	return false
}

func (n *needle) isIn(data []byte) bool {
	end := len(data) - len(n.text) + n.rare + 1 // after the last place of the rarest byte
	if end <= n.rare {
		return false
	}
	return n.occurs(data, n.lower, end) || n.upper != n.lower && n.occurs(data, n.upper, end)
}

// occurs reports whether the needle is in the data with this byte at its rarest place.
func (n *needle) occurs(data []byte, b byte, end int) bool {
	for at := n.rare; at < end; at++ {
		i := bytes.IndexByte(data[at:end], b)
		if i < 0 {
			return false
		}
		at += i
		if n.stands(data[at-n.rare : at-n.rare+len(n.text)]) {
			return true
		}
	}
	return false
}

// stands reports whether the bytes are the needle, in any case.
func (n *needle) stands(data []byte) bool {
	for i, b := range data {
		if 'A' <= b && b <= 'Z' {
			b += 'a' - 'A'
		}
		if b != n.text[i] {
			return false
		}
	}
	return true
}
