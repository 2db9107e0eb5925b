package attention

import "cadre/internal/team"

// Section is a part of every list of teams.
type Section int

// The sections, in the order in which they are listed.
const (
	NeedsYou Section = iota // something waits for a person
	Working
	Finished
)

// Sections are the names of the sections.
var Sections = [...]string{"Needs you", "Working", "Finished"}

func (s Section) String() string { return Sections[s] }

// Damaged is the state of a team whose files are damaged.
const Damaged = "damaged"

// State is the status for people.
func (f *Found) State() string {
	if f.Overview.ID == "" {
		return Damaged
	}
	return f.Overview.State()
}

// Needs returns how many items wait for a person.
func (f *Found) Needs() (n int) {
	for _, i := range f.Items {
		if i.WaitsFor == team.ForUser {
			n++
		}
	}
	return n
}

// Over reports whether nothing more is expected of the team here.
func (f *Found) Over() bool {
	o := &f.Overview
	return o.Status == team.TeamComplete || o.Status == team.TeamAborted || o.Released != 0 ||
		o.Observed != "" && !o.Watched
}

// Section returns the section of the team.
func (f *Found) Section() Section {
	if f.Overview.ID == "" {
		return NeedsYou
	}
	return SectionOf(f.Needs(), f.Over())
}

// SectionOf returns the section of a team in which that many items wait for a person.
func SectionOf(needs int, over bool) Section {
	switch {
	case needs > 0:
		return NeedsYou
	case over:
		return Finished
	}
	return Working
}
