package team

import (
	"reflect"
	"testing"
)

func TestEveryEventIsMadeByItsKind(t *testing.T) {
	for _, e := range everyEvent() {
		if made := newEvent(e.Kind()); reflect.TypeOf(made) != reflect.TypeOf(e) {
			t.Errorf("the kind %s makes a %T, not a %T", e.Kind(), made, e)
		}
	}
	if e := newEvent("unheard_of"); e != nil {
		t.Errorf("an unknown kind makes a %T", e)
	}
	if files, kinds := len(eventKinds(t)), len(Kinds()); files != kinds {
		t.Errorf("there are %d kinds, and %d golden files", kinds, files)
	}
}
