package counters

import (
	"strconv"
	"strings"
)

// shape is what a datatype's text tells of its values.
type shape struct {
	lanes uint64 // 1 but for vectors
	bits  uint64 // of each; 0 where they are not known, as of structures
	float bool
}

// maxLanes and maxBits are beyond every type that a compiler makes; text that
// says more is not believed.
const (
	maxLanes = 1 << 16
	maxBits  = 1 << 24
)

var floatBits = map[string]uint64{
	"half": 16, "bfloat": 16, "float": 32, "double": 64, "x86_fp80": 80, "fp128": 128, "ppc_fp128": 128,
}

// shapeOf reads a type in LLVM's words: double, i32, ptr, float*, <4 x float>.
// A vector whose length only the machine knows has its least one.
func shapeOf(text string) shape {
	if inner, ok := strings.CutPrefix(text, "<"); ok {
		inner = strings.TrimPrefix(inner, "vscale x ")
		count, element, found := strings.Cut(strings.TrimSuffix(inner, ">"), " x ")
		lanes, err := strconv.ParseUint(count, 10, 32)
		if !found || err != nil || lanes == 0 || lanes > maxLanes {
			return shape{lanes: 1}
		}
		s := scalarOf(element)
		s.lanes = lanes
		return s
	}
	return scalarOf(text)
}

func scalarOf(text string) shape {
	s := shape{lanes: 1}
	if bits, ok := floatBits[text]; ok {
		return shape{lanes: 1, bits: bits, float: true}
	}
	if strings.HasSuffix(text, "*") || text == "ptr" || strings.HasPrefix(text, "ptr ") {
		s.bits = 64
	} else if digits, ok := strings.CutPrefix(text, "i"); ok {
		if bits, err := strconv.ParseUint(digits, 10, 32); err == nil && bits <= maxBits {
			s.bits = bits
		}
	}
	return s
}
