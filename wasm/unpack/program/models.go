//go:build js && wasm

package main

import (
	"github.com/stackglass/stackglass/core/answers/loopcount"
	"github.com/stackglass/stackglass/core/compute"
	"github.com/stackglass/stackglass/workers"
)

// openModels gives the models of what the page asks about.
func openModels(s workers.Subject) (workers.Model, error) {
	m, err := compute.Open(s.Profile, s.Name, s.Module)
	if err != nil {
		return nil, err // a nil *compute.Models would be no nil Model
	}
	return m, nil
}

// openLoops gives who counts in the loops of what the page asks about.
func openLoops(s workers.Subject) (workers.Loops, error) {
	c, err := loopcount.Open(s.Profile)
	if err != nil {
		return nil, err
	}
	return c, nil
}
