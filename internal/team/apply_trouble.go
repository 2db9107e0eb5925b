package team

func (e *MemberTroubled) apply(s *State, r *Record) {
	if m := s.alive(e.Member); m != nil {
		m.Setbacks, m.RetryAt = e.Setbacks, e.RetryAt
		if e.Setbacks > 0 {
			m.Summary, m.Turn = e.Text, 0
			if m.Status == Active || m.Status == Idle {
				m.become(Blocked, r.At)
			}
		} else if m.Status == Blocked && m.Limited == 0 {
			m.become(Idle, r.At)
		}
	}
}

func (e *HandoverRequested) apply(s *State, _ *Record) {
	if m := s.alive(e.Member); m != nil {
		m.Handover = e.Reason
	}
}

func (e *InterruptRequested) apply(s *State, r *Record) {
	if m := s.alive(e.Member); m != nil {
		m.Interrupt = r.Seq
	}
}
