package capture

import (
	"fmt"
	"syscall"
	"testing"
)

// TestSignalsOfTheKernel: what no process sends ends a program, too, as it would
// end it without us.
func TestSignalsOfTheKernel(t *testing.T) {
	program := play(t, "deaths.c", "-pthread")
	for how, signal := range map[string]syscall.Signal{
		"alarm": syscall.SIGALRM, "virtual": syscall.SIGVTALRM, "profile": syscall.SIGPROF, "trap": syscall.SIGTRAP,
	} {
		o := run(t, nil, program, how)
		wantDeath(t, how, o, signal)
	}
}

// wantDeath wants that a signal ended a program silently, and that its trace is
// whole, with its hundred loads.
func wantDeath(t *testing.T, how string, o *outcome, signal syscall.Signal) {
	t.Helper()
	if ws := o.state.Sys().(syscall.WaitStatus); ws.Signal() != signal || len(o.stdout) > 0 {
		t.Errorf("%s: the program ended by %v, and said %q; want signal %d", how, o.state, o.stdout, signal)
	}
	got := o.trace(t, everything)
	sameAddresses(t, how, got.addresses(), counting([2]uint64{0, 100}))
	if want := fmt.Sprintf("signal %d", signal); got.ending.How != want {
		t.Errorf("%s: the trace says that it ended by %q, want %q", how, got.ending.How, want)
	}
}
