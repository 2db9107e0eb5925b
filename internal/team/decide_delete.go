package team

// DeleteTask takes a task off the list. With a group it takes the tasks off that the group made and
// that are not completed.
type DeleteTask struct{ Task string }

func (b *DeleteTask) decide(d *decision) error {
	t, err := d.live(b.Task)
	if err != nil {
		return err
	}
	if err := d.mayDelete(t); err != nil {
		return err
	}
	var made []*Task
	for _, one := range d.madeBy(t) {
		if one.Status.open() {
			if err := d.mayDelete(one); err != nil {
				return err
			}
			made = append(made, one)
		}
	}
	d.remove(t)
	for _, one := range made {
		d.remove(one)
	}
	if of := d.verified(t); of != nil {
		return d.count(of, t, vote{}, "")
	}
	return nil
}

// mayDelete checks that the actor may delete the task.
func (d *decision) mayDelete(t *Task) error {
	if d.asks(t.ID) != nil {
		if err := d.leads("decide that a branch is not merged"); err != nil {
			return err
		}
	}
	if d.Actor != t.CreatedBy && d.Actor != t.Owner {
		if err := d.leads("delete a task that is neither its own nor created by it"); err != nil {
			return err
		}
	}
	if d.Actor != t.CreatedBy && (len(t.Schema) > 0 || t.Check != nil || t.Verify != nil || t.Submission != nil) {
		if err := d.leads("delete a task that another created and whose result is examined"); err != nil {
			return err
		}
	}
	if t.Status == InProgress && t.Owner != d.Actor {
		if err := d.leads("delete a task that another member works on"); err != nil {
			return err
		}
	}
	return d.mayDrop(t)
}

// remove deletes the task, and says so to the member that works on it.
func (d *decision) remove(t *Task) {
	if t.Status == InProgress && t.Owner != d.Actor {
		d.tell(t.Owner, t.ID, "Task %s was deleted by %s; stop working on it.", t.titled(), d.Actor)
	}
	free := d.freedBy(t)
	d.emit(&TaskDeleted{Task: t.ID, Unblocked: free})
	d.dropVerifications(t, "was deleted")
	if t.OutOfRetries() { // the tasks behind it can be done now
		d.runAgain(d.turning(t, false)[1:], "task "+t.Called()+", which had failed, was deleted")
	}
	d.wakeOwners(free, "task "+t.Called()+" was deleted")
	d.givesUp(t, "was deleted")
}
