package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"cadre/internal/sys/proc"
	"cadre/internal/sys/sleep"
	"cadre/internal/team"
)

// These set how long a write retries while other processes write to the same repository.
const (
	patience   = 30 * time.Second
	retryPause = 20 * time.Millisecond
)

// The errors of a store. Test for them with [errors.Is].
var (
	// ErrNone reports that there is no checkpoint.
	ErrNone = errors.New("there is no checkpoint")
	// ErrBlocked reports that another branch prevents the branch of the checkpoints.
	ErrBlocked = errors.New("another branch is in the way")
	// ErrForked reports that the team continues elsewhere: it was restored from a checkpoint and
	// has written since.
	ErrForked = errors.New("the team continues elsewhere")
	// ErrTaken reports that the place belongs to another, later team of that name, which is not
	// finished.
	ErrTaken = errors.New("another team of that name has its checkpoints there")
)

// errMoved reports that another process has written first.
var errMoved = errors.New("another process writes there")

// DamageError says why a checkpoint cannot be read.
type DamageError struct{ Place, Reason string }

func (e *DamageError) Error() string {
	return "no checkpoint can be read from " + e.Place + ": " + e.Reason
}

// Source is a team in use: a replica.
type Source interface {
	View(see func(*team.State))
	Read(ctx context.Context, after int64) iter.Seq2[*team.Record, error]
}

// Checkpoint is an existing checkpoint.
type Checkpoint struct {
	Team    string    // id of the team
	Seq     int64     // number of the team's records that it covers: its [team.State.Position]
	History string    // which of its histories; "" for the first
	At      team.Time // when the last of these records was written
	Commit  string    // "" in a folder
	Place   string    // for people
	Written bool      // this call wrote it
	Notice  string    // a line for the user if it is not on a branch, else ""
	Left    []Left    // paths of the shared directory that it does not carry; the first ones
	More    int       // number of further ones
	Unknown string    // why it carries nothing of the shared directory; "" if it does
	Nested  []Nested  // the teams in the team
}

// tip is the newest checkpoint in a place.
type tip struct {
	id    string
	image *image
}

// shelf is a place for checkpoints.
type shelf interface {
	// place names the shelf for people.
	place() string
	// load returns the newest checkpoint, or nil.
	load(ctx context.Context) (*tip, error)
	// save puts the next checkpoint on top of on, which is nil for the first one. It returns
	// errMoved if there is another checkpoint by now. With fresh set, the next checkpoint keeps
	// nothing of the present one.
	save(ctx context.Context, on *tip, next *image, files map[string][]byte, fresh bool) (id string, err error)
	// read returns files of a checkpoint; nil for a missing file.
	read(ctx context.Context, at *tip, files []string) ([][]byte, error)
}

// Store is the place of one team's checkpoints. Its methods may be called from any goroutine, and
// other processes may have stores of the same team.
type Store struct {
	team  string
	shelf shelf
	why   string // why it is not a branch
	aside *Store // store beside the team, used while the branch is not available

	mu   sync.Mutex
	last *tip // the newest checkpoint that this store knows
}

// Open finds the place for the checkpoints of a team that works in the directory project and has
// its own folder. Neither has to exist.
func Open(ctx context.Context, procs *proc.Register, project, name, own string) (*Store, error) {
	if err := team.CheckName("team", name); err != nil {
		return nil, err
	}
	repo, why, err := find(ctx, procs, project)
	if err != nil {
		return nil, fmt.Errorf("checkpoints of team %s: %w", name, err)
	}
	beside := &Store{team: name, why: why, shelf: &folder{filepath.Join(own, "checkpoint")}}
	if why != "" {
		return beside, nil
	}
	return &Store{team: name, shelf: newBranch(procs, repo, name), aside: beside}, nil
}

// Place names where the checkpoints are.
func (s *Store) Place() string { return s.shelf.place() }

// Notice returns a line for the user if there is no repository for the checkpoints, else "".
func (s *Store) Notice() string {
	if s.why == "" {
		return ""
	}
	return s.stays(s.why)
}

func (s *Store) stays(why string) string {
	return fmt.Sprintf("checkpoints of team %s stay in %s, because %s", s.team, s.shelf.place(), why)
}

// Lasting reports whether the error of a checkpoint will repeat until a person removes its cause.
func Lasting(err error) bool {
	var damage *DamageError
	return errors.Is(err, ErrForked) || errors.Is(err, ErrTaken) || errors.Is(err, ErrBlocked) ||
		errors.As(err, &damage)
}

func (s *Store) none() error {
	if b, ok := s.shelf.(*branch); ok {
		return team.Hinted(fmt.Errorf("%w of team %s: %s does not exist", ErrNone, s.team, b.place()),
			b.hint(team.ActFetchBranch, b.name))
	}
	return fmt.Errorf("%w of team %s: %s has none", ErrNone, s.team, s.shelf.place())
}

func (s *Store) describe(at *tip) Checkpoint {
	c := Checkpoint{Team: at.image.doc.TeamID, Seq: at.image.doc.Sequence, History: at.image.doc.History,
		At: at.image.doc.Updated, Place: s.shelf.place()}
	if _, commits := s.shelf.(*branch); commits {
		w := at.image.doc.Work
		c.Commit, c.Left, c.More, c.Unknown, c.Nested = at.id, w.Left, w.More, w.Unknown, at.image.doc.Nested
	}
	return c
}

// Write makes a checkpoint of the team's present state. If another process has made one that covers
// the state, Write returns that one. If the branch belongs to another program or cannot be made,
// Write writes beside the team, and says so in the notice. It does not do that if the team
// continues elsewhere.
func (s *Store) Write(ctx context.Context, source Source, beside Beside) (Checkpoint, error) {
	made, err := s.put(ctx, source, beside)
	if s.aside == nil || !Lasting(err) || errors.Is(err, ErrForked) {
		made.Notice = s.Notice()
		return made, err
	}
	made, again := s.aside.put(ctx, source, beside)
	if again != nil {
		return made, errors.Join(err, again)
	}
	made.Notice = s.aside.stays(err.Error())
	return made, nil
}

func (s *Store) put(ctx context.Context, source Source, beside Beside) (Checkpoint, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, gitTimeout, errors.New("the checkpoint took too long"))
	defer cancel()
	waiting, stop := context.WithTimeout(ctx, patience)
	defer stop()
	for {
		known := s.last
		made, err := s.write(ctx, source, beside)
		if err == nil {
			return made, nil
		}
		s.last = nil
		if ctx.Err() != nil {
			return Checkpoint{}, errors.Join(err, context.Cause(ctx))
		}
		switch {
		case errors.Is(err, errMoved):
		case known != nil: // its objects may be deleted, after the branch was moved or removed
			continue
		default:
			return Checkpoint{}, fmt.Errorf("checkpoint of team %s: %w", s.team, err)
		}
		if sleep.For(waiting, retryPause) != nil {
			return Checkpoint{}, fmt.Errorf("checkpoint of team %s: %w", s.team, err)
		}
	}
}

// write makes one attempt, on the tip that it knows or finds.
func (s *Store) write(ctx context.Context, source Source, beside Beside) (Checkpoint, error) {
	if s.last == nil {
		var err error
		if s.last, err = s.shelf.load(ctx); err != nil {
			return Checkpoint{}, err
		}
	}
	on := s.last
	var prev *image
	var after, base, seq int64
	var covered bool
	var err error
	source.View(func(state *team.State) {
		if prev, covered, err = succeeds(on, state); err == nil {
			base, seq = state.Position()-state.Seq(), state.Seq()
		}
	})
	if err != nil {
		return Checkpoint{}, fmt.Errorf("%s: %w", s.shelf.place(), err)
	}
	if covered && prev.doc.Sequence > base+seq {
		return s.describe(on), nil
	}
	if prev != nil {
		after = max(0, prev.doc.Sequence-base)
	}
	d := follow(prev, base)
	b, commits := s.shelf.(*branch)
	if err := d.readTree(ctx, source, after, seq, beside, b); err != nil {
		return Checkpoint{}, err
	}
	// Do this after reading the state, so that it finds the commits of all tasks that the state
	// calls completed.
	if commits {
		if err := d.addWork(ctx, b, prev, beside); err != nil {
			return Checkpoint{}, err
		}
	}
	if d.equals(prev) {
		return s.describe(on), nil
	}
	next, files, err := d.finish()
	if err != nil {
		return Checkpoint{}, err
	}
	id, err := s.shelf.save(ctx, on, next, files, prev == nil)
	if err != nil {
		return Checkpoint{}, err
	}
	s.last = &tip{id, next}
	made := s.describe(s.last)
	made.Written = true
	return made, nil
}

// readAll reads the records after a sequence number, those that arrive meanwhile too, and the state
// after them. It returns the sequence number of the last one.
func (d *draft) readAll(ctx context.Context, source Source, after, seq int64, beside Beside) (int64, error) {
	after, err := d.read(ctx, source, after, seq)
	if err != nil {
		return after, err
	}
	source.View(func(state *team.State) {
		if after, err = d.read(ctx, source, after, state.Seq()); err == nil {
			d.see(state, beside)
		}
	})
	return after, err
}

// addWork adds the work that is in the repository.
func (d *draft) addWork(ctx context.Context, b *branch, prev *image, beside Beside) error {
	var before *Work
	if prev != nil {
		before = &prev.doc.Work
	}
	w, err := b.gather(ctx, d.team, before, beside)
	if err != nil {
		return err
	}
	d.carry(w)
	d.works, err = b.works(ctx, d.team.Base, &w, d.done)
	return err
}

// equals reports whether a checkpoint has all that the draft has.
func (d *draft) equals(prev *image) bool {
	return prev != nil && prev.doc.Sequence == d.doc.Sequence && prev.doc.History == d.doc.History &&
		prev.doc.Completed == d.doc.Completed && prev.doc.Work.same(&d.doc.Work) &&
		slices.EqualFunc(prev.doc.Nested, d.doc.Nested, Nested.is)
}

// succeeds says whether a checkpoint of the state may follow the present one. prev is the present
// one, or nil if none of it can be used. With covered set the state needs no new checkpoint.
func succeeds(on *tip, s *team.State) (prev *image, covered bool, err error) {
	t := s.Team()
	if t.ID == "" {
		return nil, false, errors.New("there is no team to make a checkpoint of")
	}
	if on == nil {
		return nil, false, nil
	}
	there := &on.image.doc
	over := there.Status == team.TeamComplete || there.Status == team.TeamAborted
	switch {
	case there.TeamID != t.ID && (over || there.Created < t.CreatedAt):
		return nil, false, nil
	case there.TeamID != t.ID:
		return nil, false, fmt.Errorf("%w: team %s, which is %s", ErrTaken, there.TeamID, there.Status)
	case there.History == t.Restored.ID:
		return on.image, there.Sequence >= s.Position(), nil
	case t.Restored.ID != "" && there.History == t.Restored.From && there.Sequence <= t.Restored.Seq:
		return on.image, false, nil
	}
	return nil, false, fmt.Errorf("%w: it was restored from a checkpoint, and its checkpoint %d there is of another "+
		"history than this one", ErrForked, there.Sequence)
}
