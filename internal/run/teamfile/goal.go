package teamfile

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode"
)

// ForGoal is the team file that a goal stands for: a lead that plans, and the members that it
// starts with. The name is made from the goal and from where the team works, so that the same goal
// in the same place is the same team.
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

// slug is the first words of a text, as far as a name may have them.
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
