package host

import (
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// inWords makes the error texts in a command plain text, and returns the command. A program often
// wrote them for a terminal; from here on the lead, models and logs read them. Messages between
// members stay as they are.
func inWords(body team.Body) team.Body {
	for _, words := range errorsIn(body) {
		*words = sanitize.Strip(*words)
	}
	return body
}

// errorsIn returns the texts of the command that describe errors.
func errorsIn(body team.Body) []*string {
	switch b := body.(type) {
	case *team.ReportTrouble:
		return []*string{&b.Text, &b.Note}
	case *team.ReportFailed:
		return []*string{&b.Reason}
	case *team.ReportStopped:
		return []*string{&b.Reason}
	case *team.DetachMember:
		return []*string{&b.Reason, &b.Note}
	case *team.FailTask:
		return []*string{&b.Reason}
	case *team.ReleaseTask:
		return []*string{&b.Reason}
	}
	return nil
}
