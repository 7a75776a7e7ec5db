// Package probe is a test binary that ends in every way that wasmtest must report.
package probe

import (
	"fmt"
	"os"
	"testing"
	"time"
)

func TestPasses(t *testing.T) {
	fmt.Println("to stdout")
	fmt.Fprintln(os.Stderr, "to stderr")
	time.Sleep(time.Millisecond)
}

func TestFails(t *testing.T) { t.Error("failed as asked") }

func TestPanics(t *testing.T) { panic("panicked as asked") }

func TestHangs(t *testing.T) {
	println("hanging as asked")
	for {
	}
}

func TestEnvironment(t *testing.T) {
	if os.Getenv("WASMTEST_URL") == "" || os.Getenv("STACKGLASS_PROBE") != "seen" {
		t.Error(os.Environ())
	}
}

func TestFindsNoFile(t *testing.T) {
	if _, err := os.ReadDir("testdata"); !os.IsNotExist(err) {
		t.Error(err)
	}
}

func FuzzSeeds(f *testing.F) {
	f.Add(1)
	f.Fuzz(func(t *testing.T, n int) {
		if n != 1 {
			t.Error(n)
		}
	})
}

func BenchmarkCounts(b *testing.B) {
	for b.Loop() {
	}
}
