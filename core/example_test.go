package core_test

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/stackglass/stackglass/core/analysis"
	"github.com/stackglass/stackglass/core/ask"
	"github.com/stackglass/stackglass/core/hierarchy"
	"github.com/stackglass/stackglass/core/open"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
	"github.com/stackglass/stackglass/core/simulate"
	"github.com/stackglass/stackglass/core/stack"
	"github.com/stackglass/stackglass/core/trace"
)

// The constant "references" is a trace in DineroIV's format. Each line contains a label (0 load, 1
// store) and an address.
const references = "0 1000\n0 2000\n0 1000\n1 3000\n0 2008\n0 4000\n0 4004\n0 1010\n"

// onePass analyses a trace and returns its profile. A real program would pass an *os.File.
func onePass(r io.Reader) (*profile.Profile, error) {
	t, err := open.Open("example.din", r, open.Options{})
	if err != nil {
		return nil, err
	}
	runner, err := analysis.NewRunner(analysis.Spec{LineBytes: []uint32{64}}, t)
	if err != nil {
		return nil, err
	}
	for err == nil {
		err = runner.Step()
	}
	if !errors.Is(err, io.EOF) {
		return nil, err
	}
	return runner.Finish(profile.State{}), nil
}

// One pass over a trace yields a profile, which contains the miss ratios of caches of every size.
func Example() {
	p, err := onePass(strings.NewReader(references))
	if err != nil {
		fmt.Println(err)
		return
	}
	curve := profile.NewCurve(p.LocalityAt(64).Histogram(trace.AllKinds))
	for _, lines := range []uint64{1, 2, 4} {
		fmt.Printf("%d-line cache: %d misses\n", lines, curve.Misses(lines))
	}
	// Output:
	// 1-line cache: 7 misses
	// 2-line cache: 6 misses
	// 4-line cache: 4 misses
}

// A profile predicts the hits and misses of a cache hierarchy.
func Example_hierarchy() {
	p, err := onePass(strings.NewReader(references))
	if err != nil {
		fmt.Println(err)
		return
	}
	l1, err := hierarchy.ParseCache("L1=128,full")
	if err != nil {
		fmt.Println(err)
		return
	}
	prediction, warnings, err := hierarchy.Predict(p, hierarchy.Hierarchy{Levels: []hierarchy.Cache{l1}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, level := range prediction.Levels {
		fmt.Printf("%s: %v of %v accesses miss, %s, %d warnings\n", level.Cache.Name, level.Misses, level.Accesses, level.Method, len(warnings))
	}
	// Output:
	// L1: 6 of 8 accesses miss, exact, 0 warnings
}

// Package ask answers all questions that the command can answer. The answers are documents that
// package report prints.
func Example_ask() {
	p, err := onePass(strings.NewReader(references))
	if err != nil {
		fmt.Println(err)
		return
	}
	question, err := ask.Parse([]string{"histogram"})
	if err != nil {
		fmt.Println(err)
		return
	}
	document, err := ask.NewRun("example.din", p).Answer(question)
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := document.Write(os.Stdout, report.CSV); err != nil {
		fmt.Println(err)
	}
	// Output:
	// distance,count
	// 0,1
	// 1,1
	// 2,1
	// 3,1
	// inf,4
}

// Package stack computes the stack distances of any stream of numbers, such as the keys of a
// key-value store.
func Example_stack() {
	model := stack.NewExact()
	keys := []trace.Line{'a', 'b', 'a', 'c', 'b', 'd', 'd', 'a'}
	distances := make([]uint32, len(keys))
	model.Distances(keys, distances)
	for i, key := range keys {
		if distances[i] == stack.Cold {
			fmt.Printf("%c: first access\n", rune(key))
		} else {
			fmt.Printf("%c: %d\n", rune(key), distances[i])
		}
	}
	// Output:
	// a: first access
	// b: first access
	// a: 1
	// c: first access
	// b: 2
	// d: first access
	// d: 0
	// a: 3
}

// Package simulate simulates a hierarchy access by access, with any replacement policy.
func Example_simulate() {
	t, err := open.Open("example.din", strings.NewReader(references), open.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	l1, err := hierarchy.ParseCache("L1=128,2,plru")
	if err != nil {
		fmt.Println(err)
		return
	}
	simulator, err := simulate.New(hierarchy.Hierarchy{Levels: []hierarchy.Cache{l1}}, simulate.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for b := trace.NewBatch(0); ; {
		if err = t.Next(b); err != nil {
			break
		}
		if err := simulator.Consume(b); err != nil {
			fmt.Println(err)
			return
		}
	}
	result := simulator.Finish()
	fmt.Println(result.Levels[0].Run.Misses(), "misses")
	// Output:
	// 6 misses
}
