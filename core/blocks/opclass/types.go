package opclass

import (
	"strconv"
	"strings"
)

// Shape is what a datatype's text tells of its values.
type Shape struct {
	Lanes uint64 // 1 but for vectors
	Bits  uint64 // of each; 0 where they are not known, as of structures
	Float bool
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
func shapeOf(text string) Shape {
	if inner, ok := strings.CutPrefix(text, "<"); ok {
		inner = strings.TrimPrefix(inner, "vscale x ")
		count, element, found := strings.Cut(strings.TrimSuffix(inner, ">"), " x ")
		lanes, err := strconv.ParseUint(count, 10, 32)
		if !found || err != nil || lanes == 0 || lanes > maxLanes {
			return Shape{Lanes: 1}
		}
		s := scalarOf(element)
		s.Lanes = lanes
		return s
	}
	return scalarOf(text)
}

func scalarOf(text string) Shape {
	s := Shape{Lanes: 1}
	if bits, ok := floatBits[text]; ok {
		return Shape{Lanes: 1, Bits: bits, Float: true}
	}
	if strings.HasSuffix(text, "*") || text == "ptr" || strings.HasPrefix(text, "ptr ") {
		s.Bits = 64
	} else if digits, ok := strings.CutPrefix(text, "i"); ok {
		if bits, err := strconv.ParseUint(digits, 10, 32); err == nil && bits <= maxBits {
			s.Bits = bits
		}
	}
	return s
}
