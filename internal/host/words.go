package host

import (
	"cadre/internal/render/sanitize"
	"cadre/internal/team"
)

// inWords makes what a command says of an error plain text, and returns the command. An error is
// often what a program wrote for a terminal, and from here on it is read by the lead, by models and
// in logs. What members say to each other is left as it is.
func inWords(body team.Body) team.Body {
	for _, words := range errorsIn(body) {
		*words = sanitize.Strip(*words)
	}
	return body
}

// errorsIn returns the texts of the command that tell of errors.
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
