package opclass

import (
	"testing"

	"github.com/stackglass/stackglass/core/profile"
)

func TestShapeOf(t *testing.T) {
	for text, want := range map[string]Shape{
		"double": {1, 64, true}, "x86_fp80": {1, 80, true}, "half": {1, 16, true}, "i1": {1, 1, false}, "i24": {1, 24, false},
		"ptr": {1, 64, false}, "ptr addrspace(1)": {1, 64, false}, "%struct.node*": {1, 64, false}, "[4 x double]*": {1, 64, false},
		"<4 x float>": {4, 32, true}, "<16 x i8>": {16, 8, false}, "<2 x ptr>": {2, 64, false}, "<2 x double*>": {2, 64, false},
		"<vscale x 4 x i32>": {4, 32, false}, "[4 x double]": {1, 0, false}, "{ i32, i8 }": {1, 0, false}, "<{ i8, i32 }>": {1, 0, false},
		"void": {1, 0, false}, "": {1, 0, false}, "integer": {1, 0, false}, "<0 x i8>": {1, 0, false}, "<999999999 x i8>": {1, 0, false},
		"<4 x": {1, 0, false}, "<": {1, 0, false}, "i99999999999999999999": {1, 0, false}, "label": {1, 0, false},
	} {
		if got := shapeOf(text); got != want {
			t.Errorf("shapeOf(%q) = %+v, want %+v", text, got, want)
		}
	}
}

type key struct {
	opcode, datatype string
	several          bool
}

// TestKinds checks the instructions that the program generator never emits.
func TestKinds(t *testing.T) {
	for _, c := range []struct {
		key  key
		want profile.Counts
	}{
		{key{"llvm.fmuladd", "double", false}, profile.Counts{profile.Flops: 2, profile.FlopBits: 256, profile.OpBits: 256}},
		{key{"llvm.fma", "<4 x float>", false}, profile.Counts{profile.Flops: 8, profile.VectorOps: 8, profile.FlopBits: 512, profile.OpBits: 512}},
		{key{"call sin", "double", false}, profile.Counts{profile.CallOps: 1}},
		{key{"asm sideeffect", "void", false}, profile.Counts{}},
		{key{"llvm.memcpy", "void", false}, profile.Counts{}},
		{key{"fneg", "float", false}, profile.Counts{profile.Flops: 1, profile.FlopBits: 64, profile.OpBits: 64}},
		{key{"insertelement", "<8 x i16>", false}, profile.Counts{profile.IntegerOps: 1, profile.OpBits: 32}},
		{key{"shufflevector", "<8 x i16>", false}, profile.Counts{profile.IntegerOps: 8, profile.VectorOps: 8, profile.OpBits: 256}},
		{key{"switch", "i32", false}, profile.Counts{profile.ConditionalBranches: 1}},
		{key{"br", "", true}, profile.Counts{profile.ConditionalBranches: 1}},
		{key{"br", "", false}, profile.Counts{profile.UnconditionalBranches: 1}},
		{key{"ret", "i32", false}, profile.Counts{profile.Returns: 1}},
		{key{"invoke", "void", false}, profile.Counts{profile.CallOps: 1}},
		{key{"bitcast", "<4 x i32>", false}, profile.Counts{}},
	} {
		c.want[profile.Instructions] = 1
		var got profile.Counts
		for _, add := range ClassOf(c.key.opcode, c.key.datatype, c.key.several).Adds {
			got[add.Counter] += add.Amount
		}
		if got != c.want {
			t.Errorf("counters of %+v = %v, want %v", c.key, got, c.want)
		}
	}
}
