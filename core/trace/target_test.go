package trace

import "testing"

func TestTarget(t *testing.T) {
	for _, c := range []struct {
		target           Target
		floats, integers int
		fused            bool
	}{
		{0, 0, 0, true}, // an unknown machine, or a machine without these extensions
		{X86, 128, 128, false},
		{X86 | SSE41 | AVX, 256, 128, false},
		{X86 | SSE41 | AVX | AVX2 | FMA, 256, 256, true},
		{X86 | AVX | AVX2 | FMA | AVX512, 512, 512, true},
		{FMA | AVX512, 0, 0, true}, // invalid target, with x86 features but without the X86 bit
	} {
		if f, i, fused := c.target.VectorBits(true), c.target.VectorBits(false), !c.target.Lacks(FMA); f != c.floats || i != c.integers || fused != c.fused {
			t.Errorf("target %b: vectors of %d and %d bits, fused multiply-add %v, want %d, %d, %v", c.target, f, i, fused, c.floats, c.integers, c.fused)
		}
	}
	if all := Target(1<<32 - 1).Known(); all != X86|SSE41|POPCNT|AVX|AVX2|FMA|AVX512|Contract {
		t.Errorf("Known() of all bits = %b", all)
	}
	p := &Program{Functions: []Function{{Target: X86}}, Blocks: []Block{{}, {Function: NoFunction}}}
	if p.TargetOf(0) != X86 || p.TargetOf(1) != 0 {
		t.Errorf("targets of the blocks: %b and %b, want X86 and 0", p.TargetOf(0), p.TargetOf(1))
	}
}
