package ppt

import (
	"bytes"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/stackglass/stackglass/core/trace"
	"github.com/stackglass/stackglass/core/trace/lines"
)

// BlockName is a line of the block table, which Byfl prints during compilation:
//
//	BasicBlock: b2f3727763ed2e86: (main, entry)
//
// The line may end with a colon and the probability of the block.
type BlockName struct {
	ID              string // the label after BB START: in the trace
	Function, Block string
	Probability     float64 // probability that the block is executed; negative if the table does not contain the probability
}

// Shared reports whether the block contains declarations of shared variables, according to PPT's
// naming convention.
func (b BlockName) Shared() bool {
	return slices.ContainsFunc([]string{"shared_trace", "shared_var_trace", "global_var_trace"},
		func(prefix string) bool { return strings.HasPrefix(b.Block, prefix) })
}

// Parallel reports whether the block's function is the body of a parallel region. Parallel
// recognises the function names that ROSE, clang, gcc and flang generate for parallel regions.
func (b BlockName) Parallel() bool {
	return slices.ContainsFunc([]string{"OUT__", ".omp_outlined", "._omp_fn.", ".omp_par"},
		func(mark string) bool { return strings.Contains(b.Function, mark) })
}

// ParseBlocks reads a block table. Errors refer to the file by the given name.
func ParseBlocks(name string, text []byte) ([]BlockName, error) {
	var all []BlockName
	err := eachLine(name, text, func(line []byte) *trace.SyntaxError {
		b, wrong := blockName(line)
		all = append(all, b)
		return wrong
	})
	return all, err
}

func blockName(line []byte) (b BlockName, wrong *trace.SyntaxError) {
	const want = "BasicBlock: ID: (function, block), optionally followed by a colon and a probability"
	id, after, found := bytes.Cut(bytes.TrimPrefix(line, []byte("BasicBlock: ")), []byte(": "))
	end := bytes.LastIndexByte(after, ')')
	if !bytes.HasPrefix(line, []byte("BasicBlock: ")) || !found || len(id) == 0 || end < 0 {
		return b, lines.Wrong("line", line, want)
	}
	function, block := splitLabel(after[:end+1])
	if function == nil {
		return b, lines.Wrong("block", after, "(function, block)")
	}
	b = BlockName{ID: string(id), Function: string(function), Block: string(block), Probability: -1}
	if rest := lines.Trim(after[end+1:]); len(rest) > 0 {
		p, err := strconv.ParseFloat(string(lines.Trim(bytes.TrimPrefix(rest, []byte(":")))), 64)
		if err != nil || rest[0] != ':' || !(p >= 0 && p <= 1) {
			return b, lines.Wrong("probability", rest, "a colon and a number from 0 to 1")
		}
		b.Probability = p
	}
	return b, nil
}

// BlockCount is a line of bb_counts.dat. The line contains a block's ID in the trace, and the
// number of times that the block was executed.
//
//	b2f3727763ed2e86, 1
//
// The separator may also be a colon.
type BlockCount struct {
	ID         string
	Executions uint64
}

// ParseCounts reads bb_counts.dat.
func ParseCounts(name string, text []byte) ([]BlockCount, error) {
	var all []BlockCount
	err := eachLine(name, text, func(line []byte) *trace.SyntaxError {
		end := bytes.LastIndexAny(line, ",:") // IDs of the form (function, block) also contain a comma
		if end <= 0 {
			return lines.Wrong("line", line, "ID, count")
		}
		count := lines.Trim(line[end+1:])
		n, ok := lines.Decimal(count)
		if !ok {
			return lines.Wrong("count", count, "a decimal number")
		}
		all = append(all, BlockCount{ID: string(lines.Trim(line[:end])), Executions: n})
		return nil
	})
	return all, err
}

// ParseShared reads shared_addresses.dat. Each line contains the address of a shared byte.
func ParseShared(name string, text []byte) ([]trace.Addr, error) {
	var all []trace.Addr
	err := eachLine(name, text, func(line []byte) *trace.SyntaxError {
		addr, wrong := lines.Address("address", line)
		all = append(all, addr)
		return wrong
	})
	return all, err
}

// Bounds contains the lowest and the highest address of a trace.
type Bounds struct{ Low, High trace.Addr }

// ParseBounds reads min_max_addr.dat:
//
//	Min value of address: 0x7ffd96665d00
//	Max value of address: 0x7ffd966691b3
func ParseBounds(name string, text []byte) (Bounds, error) {
	b := Bounds{Low: math.MaxUint64}
	var low, high bool
	err := eachLine(name, text, func(line []byte) (wrong *trace.SyntaxError) {
		label, value, _ := bytes.Cut(line, []byte(":"))
		value = lines.Trim(value)
		switch {
		case bytes.HasPrefix(label, []byte("Min")):
			low = true
			b.Low, wrong = lines.Address("lowest address", value)
		case bytes.HasPrefix(label, []byte("Max")):
			high = true
			b.High, wrong = lines.Address("highest address", value)
		default:
			wrong = lines.Wrong("line", line, "\"Min value of address:\" or \"Max value of address:\", followed by an address with 0x")
		}
		return wrong
	})
	if err == nil && (!low || !high || b.Low > b.High) {
		err = &trace.SyntaxError{File: name, Line: 1, What: "file", Got: lines.Got(text), Want: "a \"Min value of address\" that does not exceed the \"Max value of address\""}
	}
	return b, err
}

// eachLine calls read with every nonblank line, without surrounding blanks. eachLine stops at the
// first error, and adds the position to the error.
func eachLine(name string, text []byte, read func(line []byte) *trace.SyntaxError) error {
	for number, line := range lines.All(text) {
		if line = lines.Trim(line); len(line) == 0 {
			continue
		}
		if wrong := read(line); wrong != nil {
			wrong.SetPlace(name, number)
			return wrong
		}
	}
	return nil
}
