package hardware_test

import (
	"reflect"
	"testing"

	"github.com/stackglass/stackglass/core/trace/ppt/hardware"
)

func TestRead(t *testing.T) {
	number := func(line int, x float64) hardware.Value {
		return hardware.Value{Kind: hardware.Number, Line: line, Numbers: []float64{x}}
	}
	for text, want := range map[string]map[string]hardware.Value{
		"a = 2 * 3 + 4 // 3 - -2 ** 2 # four":         {"a": number(1, 11)},
		"a = 2 ** 3 ** 2 / 2e+1":                      {"a": number(1, 25.6)},
		"self.a = (\n1 + \\\n 2)\nb = f(3)\nprint(a)": {"a": number(1, 3), "b": {Line: 4}},
		"a = [1, 2 * 3,]\nb = a[1]\nc = a[2]":         {"a": {Kind: hardware.List, Line: 1, Numbers: []float64{1, 6}}, "b": number(2, 6), "c": {Line: 3}},
		"a = 1\n'''\na = 2\n'''\na = 3":               {"a": {Kind: hardware.Number, Line: 5, Before: 1, Numbers: []float64{3}}},
		"a = {'x': 1, # one\n\"y\": f({2, 3}),\nz: {'w': 4} }\n": {
			"x": number(1, 1), "z": {Kind: hardware.Dictionary, Line: 3, Members: []hardware.Member{{Key: "w", Value: number(3, 4)}}},
			"a": {Kind: hardware.Dictionary, Line: 1, Members: []hardware.Member{
				{Key: "x", Value: number(1, 1)}, {Key: "y", Value: hardware.Value{Line: 2}},
				{Key: "z", Value: hardware.Value{Kind: hardware.Dictionary, Line: 3, Members: []hardware.Member{{Key: "w", Value: number(3, 4)}}}}}},
		},
	} {
		if got := hardware.Read(text); !reflect.DeepEqual(got, want) {
			t.Errorf("Read(%q) =\n%+v, want\n%+v", text, got, want)
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add("a = {'x': [1, 2 ** 3], \"y\": -(4 / b)}\nb = a[0]\n'''c = 1'''")
	f.Fuzz(func(t *testing.T, text string) { hardware.Read(text) })
}
