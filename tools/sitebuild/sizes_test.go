package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestSizes(t *testing.T) {
	var names bytes.Buffer
	program, err := changeData(buildProgram(t), dropLines, takeNames(&names))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := len(functionLengths(program)), bytes.Count(names.Bytes(), []byte("\n")); got != want {
		t.Errorf("%d functions have code, but %d have names", got, want)
	}
	to := filepath.Join(t.TempDir(), "sizes.txt")
	if err := writeSizes(to, program, names.Bytes()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(to)
	if err != nil || !strings.HasSuffix(strings.SplitN(string(text), "\n", 2)[0], " runtime") || !strings.Contains(string(text), " main\n") {
		t.Errorf("%.100s, %v", text, err)
	}
}

func TestPackageOf(t *testing.T) {
	for function, want := range map[string]string{
		"main.main": "main", "github.com/a/b/core/stack.(*Set).Add": "github.com/a/b/core/stack",
		"slices.SortFunc[go.shape.[]github.com/a/b.C]": "slices", "type:.eq.os.File": "os", "memchr": "memchr",
	} {
		if got := packageOf(function); got != want {
			t.Errorf("packageOf(%s) = %q, want %q", function, got, want)
		}
	}
}
