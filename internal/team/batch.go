package team

// Batch sends several commands of one actor as one command: all of them happen, in one record, or
// none does. Each is decided on the state that the commands before it leave.
type Batch struct{ Bodies []Body }

// MaxBatch limits the commands of a batch.
const MaxBatch = 10_000

func (b *Batch) decide(d *decision) error {
	if len(b.Bodies) > MaxBatch {
		return refuse(TooLarge, "%d commands at once are too many; %d are enough", len(b.Bodies), MaxBatch)
	}
	// The events so far are applied to a copy, because the rules read only a state.
	s, err := DecodeSnapshot(d.seq, string(AppendSnapshot(nil, d.State)))
	if err != nil {
		return err
	}
	for _, body := range b.Bodies {
		if _, is := body.(*Batch); is {
			return refuse(Invalid, "a batch has no batch in it")
		}
		one := &decision{State: s, Command: d.Command}
		one.Body = body
		if err := one.enter(); err != nil {
			return err
		}
		if err := body.decide(one); err != nil {
			return err
		}
		if err := one.settleSkips(); err != nil {
			return err
		}
		one.returnToSenders()
		d.take(s, one)
	}
	// Groups wait for the whole batch: a command may still change for which items they make tasks.
	for {
		due := s.overdueGroups()
		if len(due) == 0 {
			return nil
		}
		for _, body := range due {
			if d.madeBytes > maxMade { // the others have records of their own
				return nil
			}
			one := &decision{State: s, Command: d.Command}
			one.Body = body
			one.advance(s.task(body.(*ExpandTask).Task))
			if err := one.settleSkips(); err != nil {
				return err
			}
			one.returnToSenders()
			d.take(s, one)
		}
	}
}

// take applies the events of a decision to s, and makes them events of d.
func (d *decision) take(s *State, one *decision) {
	d.madeBytes += one.madeBytes
	r := &Record{Seq: s.seq, ID: d.ID, Actor: d.Actor, At: d.At, Events: one.events}
	clean(r)
	for _, e := range r.Events {
		e.apply(s, r)
	}
	d.emit(r.Events...)
}
