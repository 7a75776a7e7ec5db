package misses

import (
	"errors"

	"github.com/stackglass/stackglass/core/loops"
)

// ErrStopped tells that a run was stopped by whoever was asked.
var ErrStopped = errors.New("loops: stopped while misses were counted")

// pauseEvery is how many accesses are made from one question to the next, about.
const pauseEvery = 1 << 17

// pauses asks now and then whether to go on.
type pauses struct {
	ask  func() bool // nil: nobody is asked
	left int         // accesses until the next question
	over bool
}

// spend is for accesses that were made.
func (p *pauses) spend(accesses int) {
	if p.left -= accesses; p.left > 0 || p.ask == nil {
		return
	}
	p.left = pauseEvery
	p.over = p.over || !p.ask()
}

// RunAsking is [Run] for trees that may take long: goOn is called every some hundred
// thousand accesses that are made one by one, and may let others have a turn; if it
// gives false the run ends with [ErrStopped].
func RunAsking(t *loops.Tree, c Cache, goOn func() bool) (*Result, error) {
	return run(t, c, &pauses{ask: goOn, left: pauseEvery})
}

// CountAsking is [RunAsking] without kinds of misses.
func CountAsking(t *loops.Tree, c Cache, goOn func() bool) (*Result, error) {
	if err := c.check(); err != nil {
		return nil, err
	}
	p, err := Prepare(t, c.LineBytes)
	if err != nil {
		return nil, err
	}
	e := newEngine(p.layout, c.Sets, c.Ways)
	e.pauses = &pauses{ask: goOn, left: pauseEvery}
	e.run()
	if e.pauses.over {
		return nil, ErrStopped
	}
	return e.result(c, nil, nil), nil
}
