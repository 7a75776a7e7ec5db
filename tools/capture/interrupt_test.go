package capture

import (
	"fmt"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/stackglass/stackglass/core/trace"
)

// A step is a record of a trace without its time.
type step struct {
	kind trace.Kind
	site uint32
	addr uint64
}

// stepsByFunction returns the steps of each function, in the order of the trace.
func (g *traceContent) stepsByFunction() map[string][]step {
	rows, program := map[string][]step{}, g.header.Program
	for i, kind := range g.Kind {
		block := g.Site[i]
		if kind.IsReference() {
			block = program.Sites[block].Block
		} else if kind != trace.BlockEntry {
			continue // there are no other events, and calls and returns can be derived from the blocks
		}
		f := program.Blocks[block].Function
		if f == trace.NoFunction {
			continue // the runtime recorded this event itself
		}
		name := program.Functions[f].Name
		rows[name] = append(rows[name], step{kind, g.Site[i], g.Addr[i]})
	}
	return rows
}

// buildInterrupted builds a program that sends itself a signal before every instruction.
func buildInterrupted(t *testing.T) string {
	t.Helper()
	if runtime.GOARCH != "amd64" {
		t.Skip("skipped: the traced program runs only on x86-64")
	}
	clang := newestClang(t)
	r, err := BuildRuntime(clang)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	stepping, program := filepath.Join(dir, "stepping.o"), filepath.Join(dir, "interrupted")
	plainCompile(t, clang, "-O1", "-I", r.Folder, "-c", sourceOf(t, "stepping.c"), "-o", stepping)
	traceCompile(t, clang, "-O2", sourceOf(t, "interrupted.c"), stepping, "-o", program)
	return program
}

// calls contains the number of calls to each function.
type calls struct{ interrupted, handler, inner int }

// runInterrupted runs the program, and returns its trace and the number of calls to each function.
func runInterrupted(t *testing.T, program, how string) (got *traceContent, n calls) {
	t.Helper()
	o := runProgram(t, nil, program, strings.Fields(how)...)
	var instructions int
	if _, err := fmt.Sscan(string(o.stdout), &n.interrupted, &n.handler, &n.inner, &instructions); err != nil || instructions < 100 {
		t.Fatalf("the program printed %q and ended with %v, want at least 100 instructions", o.stdout, o.state)
	}
	return o.readTrace(t, everything), n
}

// TestEveryInterruption checks that, if a signal arrives before any instruction of a traced
// function, all steps of the function and of the signal handlers are recorded correctly.
func TestEveryInterruption(t *testing.T) {
	program := buildInterrupted(t)
	for _, how := range []string{
		"", "stale", "fills", "fills stale", "room=20", "room=20 stale", "room=20 fills", "room=2 fills stale",
		"nests stride=4", "nests fills stride=4", "nests stale stride=7", "nests room=7 stride=19", "nests room=7 fills stride=19",
	} {
		t.Run(how, func(t *testing.T) {
			got, n := runInterrupted(t, program, how)
			if got.ending.Lost != 0 {
				t.Errorf("%d steps were lost, want none", got.ending.Lost)
			}
			rows := got.stepsByFunction()
			for name, times := range map[string]int{"interrupted": n.interrupted, "nothing": n.interrupted, "handler": n.handler, "inner": n.inner} {
				all := rows[name]
				if len(all) == 0 || len(all)%times != 0 {
					t.Fatalf("function %s has %d records in %d calls, want a multiple of the number of calls", name, len(all), times)
				}
				one := len(all) / times
				for i := range times {
					if call := all[i*one : (i+1)*one]; !slices.Equal(call, all[:one]) {
						t.Fatalf("call %d of %s has the records\n%v, want\n%v", i, name, call, all[:one])
					}
				}
			}
		})
	}
}

// TestEveryInterruptionWithSiglongjmp makes the same check for a handler that leaves the function
// with siglongjmp. Only the interrupted step may be missing.
func TestEveryInterruptionWithSiglongjmp(t *testing.T) {
	program := buildInterrupted(t)
	for _, how := range []string{"jumps", "jumps stale", "jumps fills", "jumps room=20", "jumps room=20 fills stale"} {
		t.Run(how, func(t *testing.T) {
			got, n := runInterrupted(t, program, how)
			rows := got.stepsByFunction()
			var begun [][]step // calls to the function that completed at least one step
			for _, row := range rows["interrupted"] {
				if row == rows["interrupted"][0] {
					begun = append(begun, nil)
				}
				begun[len(begun)-1] = append(begun[len(begun)-1], row)
			}
			complete := 0
			for i, call := range begun {
				if len(call) > len(begun[0]) || !slices.Equal(call, begun[0][:len(call)]) {
					t.Fatalf("call %d has the records\n%v, want the first records of\n%v", i, call, begun[0])
				}
				if len(call) == len(begun[0]) {
					complete++
				}
			}
			if complete < n.interrupted {
				t.Errorf("%d calls are complete, want at least %d", complete, n.interrupted)
			}
			if all := rows["handler"]; len(all)%n.handler != 0 || !slices.Equal(all, slices.Repeat(all[:len(all)/n.handler], n.handler)) {
				t.Errorf("the handler has %d records in %d calls, want the same records in each call", len(all), n.handler)
			}
		})
	}
}
