package byfl

import (
	"cmp"
	"errors"
	"slices"
	"strings"

	"github.com/stackglass/stackglass/core/profile"
)

// ErrNoProgram reports that a file has no table for the whole program.
var ErrNoProgram = errors.New(`the file has no table "Program"; let the instrumented program run to its end`)

// Notes returns sentences that state how Byfl's numbers differ from the numbers of package
// analysis/counters.
func Notes() []string {
	return []string{
		"flops are counted as in Byfl, so they include comparisons and conversions of floating-point numbers",
		"integer operations are counted as in Byfl: all operations except flops, loads, stores and branches; calls are included",
		"operation bits and flop bits are counted as in Byfl, without constant operands",
	}
}

// counterOf maps the names of columns in the tables "Program", "Functions" and "Basic blocks" to
// counters.
var counterOf = map[string]profile.Counter{
	"Load operations":           profile.Loads,
	"Store operations":          profile.Stores,
	"Floating-point operations": profile.Flops,
	"Integer operations":        profile.IntegerOps,
	"Function-call operations (non-exception-throwing)":      profile.CallOps,
	"Function-call operations (exception-throwing)":          profile.CallOps,
	"Unconditional and direct branch operations (removable)": profile.UnconditionalBranches,
	"Unconditional and direct branch operations (mandatory)": profile.UnconditionalBranches,
	"Conditional branch operations (not taken)":              profile.ConditionalBranches,
	"Conditional branch operations (taken)":                  profile.ConditionalBranches,
	"Unconditional but indirect branch operations":           profile.ConditionalBranches,
	"Multi-target (switch) branch operations":                profile.ConditionalBranches,
	"Function-return operations":                             profile.Returns,
	"Observed function-return operations":                    profile.Returns,
	"Floating-point operation bits":                          profile.FlopBits,
	"Integer operation bits":                                 profile.OpBits, // according to Byfl's source code, the bits in all operations
	"Bytes loaded":                                           profile.BytesLoaded,
	"Bytes stored":                                           profile.BytesStored,
	"Calls to memset":                                        profile.RangesWritten,
	"Bytes stored by memset":                                 profile.RangeBytesWritten,
	"Calls to memcpy and memmove":                            profile.RangesRead,
	"Bytes loaded and stored by memcpy and memmove":          profile.RangeBytesRead,
}

// Counters converts the tables to counters. Tables of tags, which the program defines, are ignored.
// The result skipped lists the names of all other tables whose contents package profile cannot
// represent.
func Counters(tables []Table) (c *profile.Counters, skipped []string, err error) {
	s := &file{c: &profile.Counters{Ops: true}, numbers: map[string]uint32{}, places: map[location]int{}, tallies: map[profile.Tally]profile.Tally{}}
	for i := range tables {
		if !s.addTable(&tables[i]) && len(tables[i].Rows) > 0 {
			skipped = append(skipped, tables[i].Name)
		}
	}
	if !s.whole {
		return nil, skipped, ErrNoProgram
	}
	return s.finish(), skipped, nil
}

// file collects the counters of all tables in a file.
type file struct {
	c       *profile.Counters
	whole   bool
	program profile.Counts
	numbers map[string]uint32 // indices of functions, by name
	places  map[location]int  // indices of blocks, by source location
	blocks  []profile.BlockCounters
	tallies map[profile.Tally]profile.Tally // tallies, by the fields that identify a tally
}

// readers maps the name of a table to the function that reads a row of the table.
var readers = map[string]func(s *file, t *Table, row []Cell){
	"Program":                      (*file).readProgram,
	"Functions":                    (*file).readFunction,
	"Basic blocks":                 (*file).readBlock,
	"Called functions":             (*file).readCall,
	"Instruction mix":              (*file).readMix,
	"Vector operations":            (*file).readVector,
	"Memory accesses by data type": (*file).readTypes,
}

// addTable adds the counters of a table, and reports whether package profile can represent the
// table.
func (s *file) addTable(t *Table) bool {
	if read := readers[t.Name]; read != nil {
		for _, row := range t.Rows {
			read(s, t, row)
		}
		return true
	}
	if t.Name == "Memory locality" {
		s.readLocality(t)
		return true
	}
	return strings.HasSuffix(t.Name, "variables") ||
		slices.Contains([]string{"Command line", "Byfl options", "System information"}, t.Name)
}

func counts(t *Table, row []Cell) (sum profile.Counts) {
	for i, column := range t.Columns {
		if counter, ok := counterOf[column.Name]; ok && column.Type == Number {
			sum[counter] += row[i].Number
		}
	}
	// A move reads one range and writes another. A memset only writes a range.
	sum[profile.RangesWritten] += sum[profile.RangesRead]
	sum[profile.RangeBytesWritten] += sum[profile.RangeBytesRead]
	return sum
}

func (t *Table) cell(row []Cell, name string) Cell {
	if i := slices.IndexFunc(t.Columns, func(c Column) bool { return c.Name == name }); i >= 0 {
		return row[i]
	}
	return Cell{}
}

func (t *Table) number(row []Cell, name string) uint64 { return t.cell(row, name).Number }
func (t *Table) text(row []Cell, name string) string   { return t.cell(row, name).Text }

// functionName returns the name of a row's function: the source name if it is known, and otherwise
// the linker's name.
func functionName(t *Table, row []Cell) string {
	return cmp.Or(t.text(row, "Demangled function name"), t.text(row, "Mangled function name"))
}

func (s *file) readProgram(t *Table, row []Cell) {
	s.whole = true
	s.program = counts(t, row)
	s.c.UniqueBytes = t.number(row, "Unique addresses loaded or stored")
}

func (s *file) readFunction(t *Table, row []Cell) {
	name := functionName(t, row) + t.text(row, "Demangled call stack")
	at := s.functionIndex(name, fileName(t.text(row, "File name")+t.text(row, "Leaf file name")),
		t.number(row, "Line number")+t.number(row, "Leaf line number"))
	f, sum := &s.c.Functions[at], counts(t, row)
	f.Loose.Add(&sum)
	f.Invocations += t.number(row, "Invocations")
	f.UniqueBytes += t.number(row, "Unique bytes")
}

// functionIndex returns the index of a function, and adds the function if necessary.
func (s *file) functionIndex(name, file string, line uint64) uint32 {
	n, known := s.numbers[name]
	if !known {
		n = uint32(len(s.c.Functions))
		s.numbers[name] = n
		s.c.Functions = append(s.c.Functions, profile.FunctionCounters{
			Number: n, Name: name, File: file, Line: uint32(min(line, 1<<32-1)),
		})
	}
	return n
}

// location is the source location of a basic block.
type location struct {
	function, file string
	line           uint64
}

// readBlock adds a row to the counters of a block. Byfl writes a row for each execution of a block,
// or for each group of executions.
func (s *file) readBlock(t *Table, row []Cell) {
	p := location{functionName(t, row), fileName(t.text(row, "File name")), t.number(row, "Line number")}
	if p.function == "" {
		return // a group of blocks without a source location
	}
	i, known := s.places[p]
	if !known {
		i = len(s.blocks)
		s.places[p] = i
		line := uint32(min(p.line, 1<<32-1))
		s.blocks = append(s.blocks, profile.BlockCounters{
			Number: uint32(i), Function: s.functionIndex(p.function, p.file, 0), File: p.file, FirstLine: line, LastLine: line,
		})
	}
	sum := counts(t, row)
	s.blocks[i].Counts.Add(&sum)
	s.blocks[i].Executions++
}

// addTally adds a count to the tally of the same kind, name, number of lanes and size.
func (s *file) addTally(t profile.Tally) {
	key := profile.Tally{Kind: t.Kind, Name: t.Name, Lanes: t.Lanes, Size: t.Size}
	t.Count += s.tallies[key].Count
	s.tallies[key] = t
}

func (s *file) readCall(t *Table, row []Cell) {
	s.addTally(profile.Tally{Kind: profile.Callees, Name: functionName(t, row), Count: t.number(row, "Invocations")})
}

func (s *file) readMix(t *Table, row []Cell) {
	for i, column := range t.Columns {
		s.addTally(profile.Tally{Kind: profile.Opcodes, Name: strings.ToLower(column.Name), Count: row[i].Number})
		s.program[profile.Instructions] += row[i].Number
	}
}

// readVector adds up vector operations that have equal numbers and types of elements. Byfl lists
// these operations separately for each function.
func (s *file) readVector(t *Table, row []Cell) {
	small := func(column string) uint32 { return uint32(min(t.number(row, column), 1<<32-1)) }
	v := profile.Tally{
		Kind: profile.IntegerVectors, Lanes: small("Elements per vector"), Size: small("Bits per element"),
		Count: t.number(row, "Tally"),
	}
	if t.number(row, "Floating point") == 1 {
		v.Kind = profile.FloatVectors
	}
	s.program[profile.VectorOps] += uint64(v.Lanes) * v.Count
	s.addTally(v)
}

// readTypes reads columns with names such as "Loads of vectors of 64-bit floating-point values".
// Byfl reports numbers of bytes only as totals over all types.
func (s *file) readTypes(t *Table, row []Cell) {
	for i, column := range t.Columns {
		name := strings.ToLower(column.Name)
		kind := profile.LoadTypes
		if strings.HasPrefix(name, "stores of ") {
			kind = profile.StoreTypes
		}
		datatype := strings.TrimPrefix(strings.TrimPrefix(name, "loads of "), "stores of ")
		s.addTally(profile.Tally{Kind: kind, Name: datatype, Count: row[i].Number})
	}
}

// readLocality reads the memory locality in steps of 5 %, and skips the finer steps that Byfl
// writes.
func (s *file) readLocality(t *Table) {
	if len(t.Rows) == 0 {
		return
	}
	total := t.number(t.Rows[len(t.Rows)-1], "Maximum possible hit count")
	for step := range uint64(profile.UsageSteps) {
		at, _ := slices.BinarySearchFunc(t.Rows, step, func(row []Cell, step uint64) int {
			if float64(t.number(row, "Maximum possible hit count")) >= float64(total)*float64(step+1)/profile.UsageSteps {
				return 1
			}
			return -1
		})
		s.c.Usage[step] = t.number(t.Rows[min(at, len(t.Rows)-1)], "Capacity in bytes")
	}
	s.c.Touched = true
	s.c.UniqueBytes = s.c.Usage[profile.UsageSteps-1]
}

// finish attributes the remaining counts to code outside functions, so that all rows add up to
// the program's totals, and sorts the tallies.
func (s *file) finish() *profile.Counters {
	c := s.c
	for i := range s.blocks {
		subtract(&c.Functions[s.blocks[i].Function].Loose, &s.blocks[i].Counts)
	}
	rest := s.program
	for i := range c.Functions {
		subtract(&rest, &c.Functions[i].Loose)
	}
	for i := range s.blocks {
		subtract(&rest, &s.blocks[i].Counts)
	}
	c.Code, c.Blocks = s.blocks, len(s.blocks) > 0
	if rest != (profile.Counts{}) {
		c.Functions = append(c.Functions, profile.FunctionCounters{Number: profile.NoFunction, Loose: rest})
	}
	for _, t := range s.tallies {
		c.Tallies = append(c.Tallies, t)
	}
	slices.SortFunc(c.Tallies, func(x, y profile.Tally) int { return profile.CompareTallies(&x, &y) })
	return c
}

func subtract(from, what *profile.Counts) {
	for i := range from {
		from[i] -= min(from[i], what[i])
	}
}

func fileName(path string) string { return path[strings.LastIndexAny(path, `/\`)+1:] }
