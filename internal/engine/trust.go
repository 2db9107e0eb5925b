package engine

import (
	"time"

	"cadre/internal/hook"
)

// ProjectHooks reads the hooks of the project, so that a person can decide whether they may run.
func (e *Engine) ProjectHooks(dir string) (hook.Examined, error) {
	config, err := hook.Load(e.Home.Claude, dir, nil)
	if err != nil {
		return hook.Examined{}, err
	}
	return hook.Examine(config)
}

// Trust allows the hooks to run from now on, in the form in which they were read.
func (e *Engine) Trust(read hook.Examined) error { return e.trust().Record(read, time.Now()) }

// Distrust stops the hooks and templates of the project from running.
func (e *Engine) Distrust(dir string) error { return e.trust().Remove(dir) }

// Trusted returns the projects whose hooks or templates may run.
func (e *Engine) Trusted() ([]hook.Entry, error) { return e.trust().List() }

func (e *Engine) trust() hook.Trust { return hook.Trust{File: e.Home.Trust()} }
