package capture

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

// TestCancelledThreads checks that pthread_cancel has the same effect as without tracing, whatever
// the thread is doing, and that the trace contains all steps of each thread before the
// cancellation.
func TestCancelledThreads(t *testing.T) {
	t.Parallel()
	program, runs := buildPlay(t, "cancel.c"), 1
	if soak {
		runs = 200
	}
	for _, c := range []struct {
		state     string
		least     int  // the minimum number of loads in each thread
		exact     bool // whether the number of loads must be exact
		cancelled bool // whether pthread_join must report a cancelled thread
	}{
		{state: "deferred", cancelled: true},
		{state: "asynchronous", cancelled: true},
		{state: "begins", cancelled: true},
		{state: "pointless", least: 150_000, exact: true, cancelled: true},
		{state: "disabled", least: 150_000, exact: true, cancelled: true},
		{state: "blocked", least: 1000, cancelled: true},
		{state: "cleanup", least: 0, cancelled: true},
		{state: "ending", least: 150_000, exact: true},
		{state: "detached"},
	} {
		for range runs {
			t.Run(c.state, func(t *testing.T) {
				o := runProgram(t, nil, program, c.state)
				if !o.state.Success() || !strings.HasSuffix(string(o.stdout), "\ndone\n") {
					t.Fatalf("the program printed %q and ended with %v", o.stdout, o.state)
				}
				rows := o.readTrace(t, everything)
				loads := cancelledLoads(t, rows)
				for i, line := range strings.Split(strings.TrimSuffix(string(o.stdout), "\ndone\n"), "\n") {
					var made, cancelled int
					if _, err := fmt.Sscan(line, &made, &cancelled); err != nil {
						t.Fatal(err)
					}
					if n := loads[i+1]; made < c.least || c.exact && made != c.least || (cancelled == 1) != c.cancelled {
						t.Errorf("thread %d made %d loads, want at least %d (exactly: %t); cancelled = %t, want %t", i+1, made, c.least, c.exact, cancelled == 1, c.cancelled)
					} else if n != made && (c.state != "asynchronous" || n != made+1) {
						// Asynchronous cancellation may occur between a load and the increment of
						// the counter for that load.
						t.Errorf("thread %d: the trace has %d loads, the thread made %d", i+1, n, made)
					}
				}
				if lost := rows.ending.Lost; lost > 0 && (c.state != "asynchronous" || lost > 10) {
					t.Errorf("%d steps were lost, want none", lost)
				}
			})
		}
	}
}

// cancelledLoads counts the loads of each worker thread in cancel.c, and checks that the loads are
// in order.
func cancelledLoads(t *testing.T, rows *traceContent) map[int]int {
	t.Helper()
	loads := map[int]int{}
	for i, kind := range rows.Kind {
		worker := int(rows.Addr[i] >> 40)
		if kind != trace.Load || worker == 0 {
			continue
		}
		if want := uint64(loads[worker]) * 0x9e3779b97f4a7c15 >> 24; rows.Addr[i]&(1<<40-1) != want {
			t.Fatalf("worker %d: load %d has address %#x, want %#x", worker, loads[worker], rows.Addr[i]&(1<<40-1), want)
		}
		loads[worker]++
	}
	return loads
}
