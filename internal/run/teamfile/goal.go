package teamfile

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
)

// ForGoal returns the team file for a goal: a lead that plans, and the members that it starts with.
// The name is made from the goal and the directory, so the same goal in the same place makes the
// same team.
func ForGoal(goal, dir string, lead Member, members []Member) *File {
	sum := sha256.Sum256([]byte(goal + "\x00" + dir))
	digest := hex.EncodeToString(sum[:])
	f := &File{Name: slug(goal) + "-" + digest[:6], Goal: goal, Lead: lead.Name, Leader: lead, Members: members,
		digest: digest}
	if f.Lead == "" {
		f.Lead = DefaultLead
		f.Leader.Name = DefaultLead
	}
	return f
}

// slug returns the first words of a text, as far as they fit into a name.
func slug(text string) string {
	const most = 32
	var b strings.Builder
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool {
		return !unicode.IsLetter(r) &&
			!unicode.IsDigit(r)
	}) {
		plain := strings.Map(func(r rune) rune {
			if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
				return r
			}
			return -1
		}, word)
		if plain == "" {
			continue
		}
		if b.Len() > 0 {
			if b.Len()+1+len(plain) > most {
				break
			}
			b.WriteByte('-')
		}
		b.WriteString(plain[:min(len(plain), most)])
	}
	if b.Len() == 0 {
		return "goal"
	}
	return b.String()
}
