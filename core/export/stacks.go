package export

import (
	"cmp"
	"slices"
	"strconv"

	"github.com/stackglass/stackglass/core/answers"
	"github.com/stackglass/stackglass/core/profile"
	"github.com/stackglass/stackglass/core/report"
)

// divideByPath splits each entry into separate entries for the call paths. The totals of each path
// and of each source location remain unchanged. If a function has several paths, the profile does
// not contain the references of each line on each path. Therefore, the counts of all lines of the
// function are divided in the same proportions.
func (s *Sheet) divideByPath(of *Places) {
	c := answers.NewCalls(of.Profile, of.Levels, of.Name)
	s.Calls = c
	var further []int // each of these paths combines several call paths
	byFunction := map[string][]int{}
	for i := range c.Paths {
		f := c.Paths[i].Function
		if byFunction[f] = append(byFunction[f], i); f == profile.FurtherPaths {
			further = append(further, i)
		}
	}
	last := 0 // the path for counts that do not belong to any other path
	if len(further) > 0 {
		last = further[len(further)-1]
	}
	entries, events := s.Entries, len(s.Events)
	made := map[[2]int]int{}
	s.Entries = nil
	add := func(entry, path, event int, n uint64) {
		if n == 0 {
			return
		}
		at, known := made[[2]int{entry, path}]
		if !known {
			at = len(s.Entries)
			made[[2]int{entry, path}] = at
			e := entries[entry]
			e.Path, e.Counts = path, make([]uint64, events)
			s.Entries = append(s.Entries, e)
		}
		s.Entries[at].Counts[event] += n
	}
	functions := map[string][]int{}
	var order []string
	for i := range entries {
		f := entries[i].Symbol
		if functions[f] == nil {
			order = append(order, f)
		}
		functions[f] = append(functions[f], i)
	}
	for event := range s.Events {
		counts := pathCounts(c, s.Events[event].Key)
		by := counts
		if by == nil {
			by = pathCounts(c, "accesses")
		}
		// for each path in the slice "further": the count that is not yet assigned to a function
		open := make([]uint64, len(further))
		for at, path := range further {
			open[at] = by[path]
		}
		for _, f := range order {
			rows, columns := functions[f], byFunction[f]
			if f == "" || f == profile.FurtherPaths {
				columns = nil
			}
			left := make([]uint64, len(rows))
			for at, i := range rows {
				left[at] = entries[i].Counts[event]
			}
			want := make([]uint64, len(columns))
			for at, path := range columns {
				want[at] = by[path]
			}
			// the counts of each path are unknown: divide the total in proportion to the accesses
			if counts == nil {
				sum := uint64(0)
				for _, n := range left {
					sum = saturatingAdd(sum, n)
				}
				want = divideTotal(sum, want)
			}
			for at, path := range columns {
				for row, n := range subtractShares(left, want[at]) {
					add(rows[row], path, event, n)
				}
			}
			for row, n := range left {
				parts := subtractShares(open, n)
				for at, path := range further {
					add(rows[row], path, event, parts[at])
					n -= parts[at]
				}
				add(rows[row], last, event, n)
			}
		}
	}
	s.addInstructions()
	slices.SortStableFunc(s.Entries, func(a, b Entry) int { return a.Path - b.Path })
}

// pathCounts returns an event's count for each path, or nil if these counts are unknown.
func pathCounts(c *answers.Calls, key string) []uint64 {
	switch key {
	case "accesses":
		return accessesOf(c, func(r *profile.Reuse) uint64 { return r.Accesses() })
	case "cold":
		return accessesOf(c, func(r *profile.Reuse) uint64 { return r.Cold })
	}
	for i := range c.Events {
		if eventWord(c.Events[i].Key) == key {
			return c.Events[i].Self
		}
	}
	return nil
}

func accessesOf(c *answers.Calls, count func(*profile.Reuse) uint64) []uint64 {
	list := make([]uint64, len(c.Paths))
	for i := range list {
		list[i] = count(&c.Paths[i].Reuse)
	}
	return list
}

// divideTotal divides a total into whole numbers in proportion to weights.
func divideTotal(total uint64, weights []uint64) []uint64 {
	shares := make([]portion, len(weights))
	for i, w := range weights {
		shares[i].weight = w
	}
	apportion(total, shares)
	parts := make([]uint64, len(weights))
	for i := range shares {
		parts[i] = shares[i].part
	}
	return parts
}

// subtractShares subtracts a total of n from the numbers in a slice, in proportion to these
// numbers. If their sum is less than n, all numbers become 0. It returns the subtracted amounts.
func subtractShares(left []uint64, n uint64) []uint64 {
	sum := uint64(0)
	for _, x := range left {
		sum = saturatingAdd(sum, x)
	}
	parts := divideTotal(min(n, sum), left)
	for i := range left {
		parts[i] = min(parts[i], left[i])
		left[i] -= parts[i]
	}
	return parts
}

// addInstructions adds an entry with the executed instructions of each path. The entry's location
// is the line that defines the path's function.
func (s *Sheet) addInstructions() {
	counts := pathCounts(s.Calls, "instructions")
	s.Events = append(s.Events, Event{"instructions", "count", "executed instructions of the compiler's intermediate representation"})
	for i := range s.Entries {
		s.Entries[i].Counts = append(s.Entries[i].Counts, 0)
	}
	for i, n := range counts {
		if n == 0 {
			continue
		}
		at := &s.Calls.Paths[i]
		e := Entry{Function: s.Calls.Names[i], Symbol: at.Function, File: at.File, Line: at.Line, Path: i, Counts: make([]uint64, len(s.Events))}
		e.Counts[len(s.Events)-1] = n
		s.Entries = append(s.Entries, e)
	}
}

// callerPaths returns the paths of the direct and indirect callers of an entry's function, starting
// with the first function of the thread.
func (s *Sheet) callerPaths(e *Entry) []int {
	if s.Calls == nil {
		return nil
	}
	stack := s.Calls.Stack(e.Path)
	if last := len(stack) - 1; last >= 0 && s.Calls.Paths[stack[last]].Function == e.Symbol {
		stack = stack[:last]
	}
	return stack
}

// frame is a frame of a call stack: a function, with the file and line of its definition if they
// are known.
type frame struct {
	name, file string
	line       uint32
}

// frames returns the call stack of an entry, including its own function. If call paths are unknown,
// the frames are the entry's file, function and line.
func (s *Sheet) frames(e *Entry) (frames []frame) {
	if s.Calls == nil {
		return e.frames()
	}
	paths, callers := s.Calls.Stack(e.Path), s.callerPaths(e)
	for _, i := range callers {
		frames = append(frames, s.frameOf(i))
	}
	if len(callers) < len(paths) {
		return append(frames, s.frameOf(e.Path))
	}
	return append(frames, frame{e.Name(), e.File, 0})
}

func (s *Sheet) frameOf(path int) frame {
	return frame{s.Calls.Names[path], s.Calls.Paths[path].File, s.Calls.Paths[path].Line}
}

// callEdge is an edge of the call graph, from a caller to a callee.
type callEdge struct{ from, to int } // each function is represented by its first path

// callEdges returns the edges of the call graph, with the number of calls and the inclusive counts
// (the counts of the callee and of all functions that it calls). If a recursive call occurs within
// another call of the same edge, its counts are not added, because the counts of the outer call
// already include them.
func (s *Sheet) callEdges() (order []callEdge, calls map[callEdge]uint64, counts map[callEdge][]uint64) {
	c := s.Calls
	first, of := map[string]int{}, make([]int, len(c.Paths))
	for i := range c.Paths {
		name := c.Names[i] + "\n" + c.Paths[i].File
		if _, known := first[name]; !known {
			first[name] = i
		}
		of[i] = first[name]
	}
	all := make([][]uint64, len(c.Paths))
	for i := range all {
		all[i] = make([]uint64, len(s.Events))
	}
	for i := range s.Entries {
		for event, n := range s.Entries[i].Counts {
			at := &all[s.Entries[i].Path][event]
			*at = saturatingAdd(*at, n)
		}
	}
	for i := len(all) - 1; i > 0; i-- {
		for event, n := range all[i] {
			at := &all[c.Paths[i].Parent][event]
			*at = saturatingAdd(*at, n)
		}
	}
	calls, counts = map[callEdge]uint64{}, map[callEdge][]uint64{}
	add := func(a callEdge, n uint64, sums []uint64) {
		if n == 0 {
			return
		}
		if counts[a] == nil {
			order = append(order, a)
			counts[a] = make([]uint64, len(s.Events))
		}
		calls[a] += n
		for event, n := range sums {
			counts[a][event] = saturatingAdd(counts[a][event], n)
		}
	}
	for i := range c.Paths {
		at := &c.Paths[i]
		parent := int(at.Parent)
		add(callEdge{of[i], of[i]}, at.Again, nil)
		if parent == 0 {
			continue
		}
		a, sums := callEdge{of[parent], of[i]}, all[i]
		for n := parent; c.Paths[n].Parent != 0; n = int(c.Paths[n].Parent) {
			if (callEdge{of[c.Paths[n].Parent], of[n]}) == a {
				sums = nil
			}
		}
		add(a, at.Calls, sums)
		add(callEdge{of[i], of[parent]}, at.Back, nil)
	}
	return order, calls, counts
}

// Speedscope returns all events in speedscope's file format
// (https://www.speedscope.app/file-format-schema.json), with a stack for each sample.
func (s *Sheet) Speedscope() []byte {
	numbers := map[frame]int{}
	var frames []byte
	stacks := make([][]byte, len(s.Entries))
	for i := range s.Entries {
		for _, f := range s.frames(&s.Entries[i]) {
			n, known := numbers[f]
			if !known {
				n = len(numbers)
				if numbers[f] = n; n > 0 {
					frames = append(frames, ',')
				}
				frames = report.AppendString(append(frames, `{"name":`...), f.name)
				if f.file != "" {
					frames = report.AppendString(append(frames, `,"file":`...), f.file)
				}
				if f.line != 0 {
					frames = strconv.AppendUint(append(frames, `,"line":`...), uint64(f.line), 10)
				}
				frames = append(frames, '}')
			}
			stacks[i] = strconv.AppendInt(append(stacks[i], ','), int64(n), 10)
		}
	}
	b := []byte(`{"$schema":"https://www.speedscope.app/file-format-schema.json","exporter":"stackglass","name":`)
	b = report.AppendString(b, cmp.Or(s.Command, "stackglass"))
	b = append(append(append(b, `,"activeProfileIndex":`...), strconv.Itoa(s.Main)...), `,"shared":{"frames":[`...)
	b = append(append(b, frames...), `]},"profiles":[`...)
	totals := s.Totals()
	for event := range s.Events {
		if event > 0 {
			b = append(b, ',')
		}
		b = report.AppendString(append(b, "\n"+`{"type":"sampled","unit":"none","startValue":0,"name":`...), s.Events[event].Text)
		b = strconv.AppendUint(append(b, `,"endValue":`...), totals[event], 10)
		samples, weights := []byte{}, []byte{}
		for i := range s.Entries {
			if n := s.Entries[i].Counts[event]; n > 0 {
				samples = append(append(append(samples, ",["...), stacks[i][1:]...), ']')
				weights = strconv.AppendUint(append(weights, ','), n, 10)
			}
		}
		b = append(append(b, `,"samples":[`...), samples[min(1, len(samples)):]...)
		b = append(append(append(b, `],"weights":[`...), weights[min(1, len(weights)):]...), "]}"...)
	}
	return append(b, "]}\n"...)
}
