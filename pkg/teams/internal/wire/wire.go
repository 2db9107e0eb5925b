// Package wire lets package client make the values of package teams, so that both make them alike.
//
// # Authority
//
// It finds the function that makes a value. Package teams says which functions there are when it is
// linked, and decides what a value has.
//
// # Guarantees
//
//   - A type that package teams has no value for is a mistake of its caller, and panics.
package wire

import (
	"fmt"
	"reflect"

	"cadre/internal/team"
)

// conversions make values, by the types that they take. They are complete before the first call of
// Of.
var conversions = map[reflect.Type]func(core any) any{}

// Add says which function makes the value that stands for a Core. Only init functions may call it.
func Add[Core, Value any](convert func(Core) Value) {
	conversions[reflect.TypeFor[Core]()] = func(core any) any { return convert(core.(Core)) }
}

// Of returns the value of package teams that stands for a value of the packages below it.
func Of(core any) any {
	convert := conversions[reflect.TypeOf(core)]
	if convert == nil {
		panic(fmt.Sprintf("no value stands for a %T", core))
	}
	return convert(core)
}

// Items are what waits in a team of that name.
type Items struct {
	Team  string
	Items []team.Item
}
