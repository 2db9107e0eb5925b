package layout_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"cadre/internal/journal/store"
	"cadre/internal/journal/store/memstore"
	"cadre/internal/layout"
	"cadre/internal/replica"
	"cadre/internal/team"
)

// machines returns homes of several machines with one place.
func machines(t *testing.T, n int) (homes []layout.Home, place *memstore.Teams) {
	t.Helper()
	place = &memstore.Teams{}
	for range n {
		h := newHome(t)
		h.Place = layout.NewPlace("the place", filepath.Base, func(context.Context) (store.Teams, func(), error) {
			return place, func() {}, nil
		})
		homes = append(homes, h)
	}
	return homes, place
}

// TestPlace: two machines have the same teams, each with a folder of its own for them.
func TestPlace(t *testing.T) {
	homes, _ := machines(t, 2)
	one, two := homes[0].In("/one/shop"), homes[1].In("/two/shop")
	if err := create(one, "demo"); err != nil {
		t.Fatal(err)
	}
	if err := create(two, "demo"); team.CodeOf(err) != team.Taken || !strings.Contains(err.Error(), "demo-2") {
		t.Errorf("the name again: %v", err)
	}
	names, err := two.Names()
	if err != nil || !slices.Equal(names, []string{"demo"}) {
		t.Errorf("the other machine has %v, %v", names, err)
	}
	folder, err := two.Folder("demo")
	if err != nil || filepath.Dir(folder) != filepath.Join(two.Root, "placed") {
		t.Fatalf("its folder is %s, %v", folder, err)
	}
	j, err := two.OpenFolder(folder, nil)
	if err != nil {
		t.Fatal(err)
	}
	rep, err := replica.Open(t.Context(), j, replica.Options{})
	if err != nil || rep.Team().Name != "demo" {
		t.Errorf("there is %s, %v", rep.Team().Name, err)
	}
	rep.Close()
	here, err := one.Folder("demo")
	if err != nil {
		t.Fatal(err)
	}
	held, err := one.Shared(here)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := held.Acquire(t.Context(), store.Lead)
	if err != nil {
		t.Fatal(err)
	}
	defer lease.Release()
	if shared, err := two.Shared(folder); err != nil || !shared.Held(t.Context(), store.Lead) {
		t.Errorf("the other machine does not see the lease: %v", err)
	}
}

// TestPlaceIsNotHere: a process that does not know the place says which one it needs, and teams on
// files are not mixed with those of a place.
func TestPlaceIsNotHere(t *testing.T) {
	homes, _ := machines(t, 1)
	h := homes[0]
	if err := create(h, "demo"); err != nil {
		t.Fatal(err)
	}
	folder, err := h.Folder("demo")
	if err != nil {
		t.Fatal(err)
	}
	files := h
	files.Place = nil
	if _, err := files.OpenFolder(folder, nil); team.CodeOf(err) != team.Invalid ||
		!strings.Contains(err.Error(), "lives in the place; give its address with --store or CADRE_STORE") {
		t.Errorf("without the place: %v", err)
	}
	if names, err := files.Names(); err != nil || len(names) > 0 {
		t.Errorf("on files are %v, %v", names, err)
	}
	if err := create(files, "demo"); team.CodeOf(err) != team.Taken ||
		!strings.Contains(err.Error(), "lives in the place; give its address") {
		t.Errorf("on files, in the same project: %v", err)
	}
	if err := create(files, "other"); err != nil {
		t.Errorf("on files: %v", err)
	}
	if names, err := h.Names(); err != nil || len(names) != 1 {
		t.Errorf("in the place are %v, %v", names, err)
	}
}

// TestArchiveOfAPlace: a team that one machine archives is archived on the other one.
func TestArchiveOfAPlace(t *testing.T) {
	homes, _ := machines(t, 2)
	one, two := homes[0], homes[1]
	if err := create(one, "demo"); err != nil {
		t.Fatal(err)
	}
	here, _ := one.Folder("demo")
	there, err := two.Folder("demo")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(there, "host.log"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	id := filepath.Base(here)
	if _, err := one.PutInArchive(here, id); err != nil {
		t.Fatal(err)
	}
	for _, h := range homes {
		if names, err := h.Names(); err != nil || len(names) > 0 {
			t.Errorf("in use are %v, %v", names, err)
		}
		folder, err := h.Folder(id)
		if err != nil || !h.Archived(folder) {
			t.Errorf("its folder is %s, %v", folder, err)
		}
	}
	if _, err := os.Stat(filepath.Join(two.InArchive(id), "host.log")); err != nil {
		t.Errorf("the folder of the other machine did not move: %v", err)
	}
	if err := one.Remove(one.InArchive(id), nil); err != nil {
		t.Error(err)
	}
	if _, err := two.Folder(id); team.CodeOf(err) != team.NotFound {
		t.Errorf("removed, it is %v", err)
	}
}

// TestTreeOfAPlace: of several teams none stays if one cannot be made.
func TestTreeOfAPlace(t *testing.T) {
	homes, _ := machines(t, 1)
	h := homes[0]
	if err := create(h, "taken"); err != nil {
		t.Fatal(err)
	}
	if err := h.CreateAll(beginning("inner"), beginning("taken")); team.CodeOf(err) != team.Taken {
		t.Errorf("got %v", err)
	}
	if names, err := h.Names(); err != nil || !slices.Equal(names, []string{"taken"}) {
		t.Errorf("there are %v, %v", names, err)
	}
}

// TestPlaceThatFails: an attempt to connect that failed is repeated.
func TestPlaceThatFails(t *testing.T) {
	down := errors.New("it is down")
	tries := 0
	h := newHome(t)
	h.Place = layout.NewPlace("the place", filepath.Base, func(context.Context) (store.Teams, func(), error) {
		if tries++; tries == 1 {
			return nil, nil, down
		}
		return &memstore.Teams{}, func() {}, nil
	})
	if _, err := h.Names(); !errors.Is(err, down) {
		t.Errorf("got %v", err)
	}
	if names, err := h.Names(); err != nil || len(names) > 0 {
		t.Errorf("then %v, %v", names, err)
	}
}
